package banner

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	"chorus/internal/provider"
)

// What the banner tells a person to type works from where they are.
func TestBannerNamesTheProgramAsItWasCalled(t *testing.T) {
	t.Parallel()
	found := func(string) (string, error) { return "/usr/bin/chorus", nil }
	missing := func(string) (string, error) { return "", errors.New("not found") }
	if got := CommandName("/opt/x/chorus", found); got != "chorus" {
		t.Errorf("in the PATH: %s", got)
	}
	if got := CommandName("bin/chorus", missing); got != "bin/chorus" {
		t.Errorf("not in the PATH: %s", got)
	}
	b := Banner{URL: "http://127.0.0.1:9000", Command: "bin/chorus", Home: "/srv/home"}
	if got := b.link(); got != "bin/chorus token link --home /srv/home --url http://127.0.0.1:9000" {
		t.Errorf("the link: %s", got)
	}
	b.Home, b.Usual = "", true
	if got := b.link(); got != "bin/chorus token link" {
		t.Errorf("the usual link: %s", got)
	}
}

// On a terminal of 80 columns nothing wraps but the link.
func TestBannerFits(t *testing.T) {
	t.Parallel()
	for _, model := range []string{provider.Offline, "anthropic/claude-sonnet-4-5"} {
		var shown bytes.Buffer
		b := Banner{URL: "http://127.0.0.1:8420", SignIn: "http://127.0.0.1:8420/sign-in?code=" + strings.Repeat("x", 120), Command: "bin/chorus", Usual: true, Model: model,
			Note: strings.Repeat("something that is worth knowing, ", 5), Missing: []string{"a sandbox for commands: install bubblewrap"}, Log: "/home/ada/.chorus/logs/chorus.log"}
		b.Write(&shown)
		for line := range strings.Lines(shown.String()) {
			if width := utf8.RuneCountInString(strings.TrimRight(line, "\n")); width > 79 && !strings.Contains(line, "code=") {
				t.Errorf("%d columns: %s", width, line)
			}
		}
		if strings.Count(shown.String(), "  Note ") != 1 {
			t.Errorf("the note:\n%s", shown.String())
		}
		if !strings.Contains(shown.String(), b.SignIn+"\n") || !strings.Contains(shown.String(), "within 15 minutes") {
			t.Errorf("the link:\n%s", shown.String())
		}
	}
}

// A program that reads the first line and leaves gets all of it at once.
func TestBannerIsOneWrite(t *testing.T) {
	t.Parallel()
	var writes countWrites
	Banner{URL: "http://127.0.0.1:1", Model: "x/y", Command: "chorus"}.Lines(&writes)
	if writes != 1 {
		t.Errorf("%d writes", writes)
	}
}

// Whoever starts a server reads which bots it connects; a server without bots says nothing of them.
func TestBannerNamesTheBots(t *testing.T) {
	t.Parallel()
	var shown, lines bytes.Buffer
	b := Banner{URL: "http://127.0.0.1:1", Model: "x/y", Command: "chorus", Bots: []string{"ada on Discord", "bea on Discord"}}
	b.Write(&shown)
	b.Lines(&lines)
	if !strings.Contains(shown.String(), "\n  Bots     ada on Discord\n           bea on Discord\n") {
		t.Errorf("on a terminal:\n%s", shown.String())
	}
	if !strings.Contains(lines.String(), "\nbots: ada on Discord, bea on Discord\n") {
		t.Errorf("in a file:\n%s", lines.String())
	}
	lines.Reset()
	b.Bots = nil
	if b.Lines(&lines); strings.Contains(lines.String(), "bots") {
		t.Errorf("without bots:\n%s", lines.String())
	}
}

type countWrites int

func (c *countWrites) Write(p []byte) (int, error) { *c++; return len(p), nil }
