// Package browser opens pages in the browser of the person at the terminal.
package browser

import (
	"os"
	"os/exec"
	"runtime"
)

// Off is the environment's way to say --no-browser.
const Off = "CHORUS_NO_BROWSER"

// command is the program that opens a page in a browser of the person who started us, or "" where there is nobody to see it: without
// a terminal, on another machine (ssh), in CI, without a screen.
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

// Open opens a page, and reports whether it does. Nothing depends on it: the link is on the terminal too.
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
	go func() { _ = cmd.Wait() }() // it may stay as long as the browser does
	return true
}
