package browser

import (
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
		if got := command(c.goos, func(name string) string { return env[name] }, c.terminal); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}
