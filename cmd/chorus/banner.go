package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"chorus/internal/app"
	"chorus/internal/provider"
)

// banner is what a server says of itself when it is ready.
type banner struct {
	url     string
	signIn  string // empty: nobody at a terminal reads it, and a log would keep it
	command string // how this program is called from where it was started
	home    string // as --home says, if at all
	usual   bool   // the address is the one that other commands take by themselves
	model   string
	missing []string
	log     string // the file
}

// announce says where the server is, who answers, how to get in and how to stop it. The first line is for programs too: it stays as it is.
func (c *program) announce(ctx context.Context, a *app.App, url, signIn string) {
	b := banner{url: url, command: commandName(os.Args[0], exec.LookPath), home: c.home, usual: strings.HasSuffix(url, "://"+defaultAddr(c.getenv)),
		model: a.Service.Handler().Defaults("").Model, log: a.Logs.File()}
	if c.console.OutTTY {
		b.signIn, b.missing = signIn, missingHere(ctx, a)
		b.write(c.out())
		return
	}
	b.lines(c.out())
}

// missingHere is what a newcomer would miss on this machine, each with what to do.
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

// commandName is how a person calls this program again: by its name alone where that leads to it.
func commandName(arg string, look func(string) (string, error)) string {
	if path, err := look(filepath.Base(arg)); err == nil && path != "" {
		return filepath.Base(arg)
	}
	return arg
}

// link is the command that makes a further link.
func (b banner) link() string {
	words := []string{b.command, "token", "link"}
	if b.home != "" {
		words = append(words, "--home", b.home)
	}
	if !b.usual {
		words = append(words, "--url", b.url)
	}
	return strings.Join(words, " ")
}

func (b banner) offline() bool { return b.model == provider.Offline }

// write is the banner for a person.
func (b banner) write(w io.Writer) {
	row := func(name, text string) { fmt.Fprintf(w, "  %-8s %s\n", name, text) }
	fmt.Fprintf(w, "\nChorus listens on %s\n\n", b.url)
	row("Sign in", "open this link; it works once, within 15 minutes:")
	fmt.Fprintf(w, "\n%s\n\n", b.signIn) // at the margin, so that a terminal that wraps it still sees one link
	row("", "`"+b.link()+"` makes another")
	if b.offline() {
		row("Model", "the built-in offline guide: no language model, but real tools")
		row("", "for a real one: export ANTHROPIC_API_KEY=… (or OPENAI_API_KEY,")
		row("", "GEMINI_API_KEY, OPENROUTER_API_KEY; or run Ollama), start again")
	} else {
		row("Model", b.model)
	}
	for _, text := range b.missing {
		row("Missing", text)
	}
	row("Log", b.log)
	row("Stop", "Ctrl-C; what is unfinished goes on at the next start")
	fmt.Fprintln(w)
}

// lines is the same for a file or a pipe, without the link. It is one write: whoever reads the first line and leaves must not end us.
func (b banner) lines(w io.Writer) {
	model := b.model
	if b.offline() {
		model = "the built-in offline guide, since no key is set (ANTHROPIC_API_KEY, OPENAI_API_KEY, GEMINI_API_KEY, OPENROUTER_API_KEY)"
	}
	fmt.Fprintf(w, "listening on %s\nsign in with the link that `%s` prints\nmodel: %s\nlog: %s\n", b.url, b.link(), model, b.log)
}
