package main

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	"chorus/internal/provider"
)

// A browser is opened only for somebody who sits in front of this machine.
func TestBrowserOnlyWhereSomebodySees(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name     string
		goos     string
		env      string
		terminal bool
		want     string
	}{
		{"a desktop", "linux", "DISPLAY=:0", true, "xdg-open"},
		{"a desktop with Wayland", "linux", "WAYLAND_DISPLAY=wayland-0", true, "xdg-open"},
		{"a Mac", "darwin", "", true, "open"},
		{"no screen", "linux", "", true, ""},
		{"no terminal", "linux", "DISPLAY=:0", false, ""},
		{"over ssh with a forwarded screen", "linux", "DISPLAY=:10 SSH_CONNECTION=10.0.0.1", true, ""},
		{"over ssh on a Mac", "darwin", "SSH_TTY=/dev/ttys001", true, ""},
		{"in CI", "linux", "DISPLAY=:0 CI=true", true, ""},
		{"switched off", "linux", "DISPLAY=:0 CHORUS_NO_BROWSER=1", true, ""},
	} {
		env := map[string]string{}
		for pair := range strings.FieldsSeq(c.env) {
			name, value, _ := strings.Cut(pair, "=")
			env[name] = value
		}
		if got := browserCommand(c.goos, func(name string) string { return env[name] }, c.terminal); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

// What the banner tells a person to type works from where they are.
func TestBannerNamesTheProgramAsItWasCalled(t *testing.T) {
	t.Parallel()
	found := func(string) (string, error) { return "/usr/bin/chorus", nil }
	missing := func(string) (string, error) { return "", errors.New("not found") }
	if got := commandName("/opt/x/chorus", found); got != "chorus" {
		t.Errorf("in the PATH: %s", got)
	}
	if got := commandName("bin/chorus", missing); got != "bin/chorus" {
		t.Errorf("not in the PATH: %s", got)
	}
	b := banner{url: "http://127.0.0.1:9000", command: "bin/chorus", home: "/srv/home"}
	if got := b.link(); got != "bin/chorus token link --home /srv/home --url http://127.0.0.1:9000" {
		t.Errorf("the link: %s", got)
	}
	b.home, b.usual = "", true
	if got := b.link(); got != "bin/chorus token link" {
		t.Errorf("the usual link: %s", got)
	}
}

// On a terminal of 80 columns nothing wraps but the link.
func TestBannerFits(t *testing.T) {
	t.Parallel()
	for _, model := range []string{provider.Offline, "anthropic/claude-sonnet-4-5"} {
		var shown bytes.Buffer
		b := banner{url: "http://127.0.0.1:8420", signIn: "http://127.0.0.1:8420/sign-in?code=" + strings.Repeat("x", 120), command: "bin/chorus", usual: true, model: model,
			missing: []string{"a sandbox for commands: install bubblewrap"}, log: "/home/ada/.chorus/logs/chorus.log"}
		b.write(&shown)
		for line := range strings.Lines(shown.String() + stopping) {
			if width := utf8.RuneCountInString(strings.TrimRight(line, "\n")); width > 79 && !strings.Contains(line, "code=") {
				t.Errorf("%d columns: %s", width, line)
			}
		}
		if !strings.Contains(shown.String(), b.signIn+"\n") || !strings.Contains(shown.String(), "within 15 minutes") {
			t.Errorf("the link:\n%s", shown.String())
		}
	}
}

// A program that reads the first line and leaves gets all of it at once.
func TestBannerIsOneWrite(t *testing.T) {
	t.Parallel()
	var writes countWrites
	banner{url: "http://127.0.0.1:1", model: "x/y", command: "chorus"}.lines(&writes)
	if writes != 1 {
		t.Errorf("%d writes", writes)
	}
}

type countWrites int

func (c *countWrites) Write(p []byte) (int, error) { *c++; return len(p), nil }
