package main

import (
	"os"
	"os/exec"
	"runtime"
)

// browserOff is the environment's way to say --no-browser.
const browserOff = "CHORUS_NO_BROWSER"

// browserCommand is the program that opens a page in a browser of the person who started us, or "" where there is nobody to see it: without
// a terminal, on another machine (ssh), in CI, without a screen.
func browserCommand(goos string, getenv func(string) string, terminal bool) string {
	if !terminal || getenv(browserOff) != "" {
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

// openBrowser opens a page. Nothing depends on it: the link is on the terminal too.
func (c *program) openBrowser(link string) {
	name := browserCommand(runtime.GOOS, c.getenv, c.console.InTTY && c.console.OutTTY)
	path, err := exec.LookPath(name)
	if name == "" || err != nil {
		return
	}
	cmd := exec.Command(path, link)
	cmd.Env = os.Environ()
	if cmd.Start() != nil {
		return
	}
	go func() { _ = cmd.Wait() }() // it may stay as long as the browser does
	c.console.Out.Write([]byte("  The page opens in your browser; --no-browser leaves that out.\n\n"))
}
