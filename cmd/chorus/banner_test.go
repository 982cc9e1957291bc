package main

import (
	"errors"
	"strings"
	"testing"
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
