package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"

	"chorus/cmd/chorus/banner"
	"chorus/cmd/chorus/browser"
	"chorus/internal/app"
	"chorus/internal/doctor/checks"
)

// announce prints the address, the model, how to sign in and how to stop. Programs parse the first line, so it must not change.
func (c *program) announce(ctx context.Context, a *app.App, url, signIn string) {
	b := banner.Banner{URL: url, Command: banner.CommandName(os.Args[0], exec.LookPath), Home: c.home, Usual: strings.HasSuffix(url, "://"+defaultAddr(c.getenv)),
		Model: a.Service.Handler().Defaults("").Model, Bots: a.Host.BotNames(), Log: a.Logs.File()}
	if c.console.OutTTY {
		b.SignIn, b.Missing, b.Note = signIn, missingHere(ctx, a), checks.AsRoot(os.Geteuid())
		b.Write(c.out())
		return
	}
	b.Lines(c.out())
}

// missingHere lists what a newcomer lacks on this machine, and how to get it.
func missingHere(ctx context.Context, a *app.App) []string {
	if a.Service.Handler().Defaults("").Sandbox != "auto" {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	if _, err := a.Isolation.Probe.Executor(ctx, a.Isolation); err != nil {
		return []string{"a sandbox for commands: install bubblewrap"}
	}
	return nil
}

// openBrowser opens a page for the person at the terminal.
func (c *program) openBrowser(link string) {
	if browser.Open(link, c.getenv, c.console.InTTY && c.console.OutTTY) {
		fmt.Fprint(c.out(), "  The page opens in your browser; turn that off with --no-browser.\n\n")
	}
}
