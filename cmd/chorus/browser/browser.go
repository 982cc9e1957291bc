// Package browser opens pages in the browser of the person at the terminal.
package browser

import (
	"os"
	"os/exec"
	"runtime"
)

// Off is the environment variable that acts like --no-browser.
const Off = "CHORUS_NO_BROWSER"

// command is the program that opens a page in a browser, or "" if nobody would see it: without a terminal, on another machine (ssh), in CI,
// or without a screen.
func command(goos string, getenv func(string) string, terminal bool) string {
	if !terminal || getenv(Off) != "" {
		return ""
	}
	for _, name := range []string{"CI", "SSH_CONNECTION", "SSH_CLIENT", "SSH_TTY"} {
		if getenv(name) != "" {
			return ""
		}
	}
	switch {
	case goos == "darwin":
		return "open"
	case goos != "windows" && (getenv("DISPLAY") != "" || getenv("WAYLAND_DISPLAY") != ""):
		return "xdg-open"
	}
	return ""
}

// Open opens a page and reports whether it did. Callers must not depend on it: the link is also printed on the terminal.
func Open(link string, getenv func(string) string, terminal bool) bool {
	name := command(runtime.GOOS, getenv, terminal)
	path, err := exec.LookPath(name)
	if name == "" || err != nil {
		return false
	}
	cmd := exec.Command(path, link)
	cmd.Env = os.Environ()
	if cmd.Start() != nil {
		return false
	}
	go func() { _ = cmd.Wait() }() // it may run as long as the browser
	return true
}
