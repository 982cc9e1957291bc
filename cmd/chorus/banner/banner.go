// Package banner prints the message of a server that is ready.
package banner

import (
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"chorus/internal/provider"
	"chorus/internal/text"
)

// Banner holds the address, the model, how to sign in and how to stop.
type Banner struct {
	URL     string
	SignIn  string // empty if no person reads it at a terminal, so that no log keeps it
	Command string // how to call this program from where it was started
	Home    string // value of --home, if given
	Usual   bool   // the address is the default of other commands
	Model   string
	Bots    []string // each with its platform
	Missing []string // what a newcomer lacks here, each with a remedy
	Note    string   // a note for the person who starts the server
	Log     string   // the log file
}

// CommandName is how a person calls this program again: by its bare name if that resolves to it.
func CommandName(arg string, look func(string) (string, error)) string {
	if path, err := look(filepath.Base(arg)); err == nil && path != "" {
		return filepath.Base(arg)
	}
	return arg
}

// link is the command that prints another sign-in link.
func (b Banner) link() string {
	words := []string{b.Command, "token", "link"}
	if b.Home != "" {
		words = append(words, "--home", b.Home)
	}
	if !b.Usual {
		words = append(words, "--url", b.URL)
	}
	return strings.Join(words, " ")
}

func (b Banner) offline() bool { return b.Model == provider.Offline }

// Write prints the banner for a person.
func (b Banner) Write(w io.Writer) {
	row := func(name, words string) { fmt.Fprintf(w, "  %-8s %s\n", name, words) }
	fmt.Fprintf(w, "\nChorus listens on %s\n\n", b.URL)
	row("Sign in", "open this link (works once, within 15 minutes):")
	fmt.Fprintf(w, "\n%s\n\n", b.SignIn) // unindented, so that a terminal that wraps it still recognises one link
	row("", "`"+b.link()+"` makes another")
	if b.offline() {
		row("Model", "the built-in offline guide (no language model, but real tools)")
		row("", "for a real one, export ANTHROPIC_API_KEY=… (or OPENAI_API_KEY,")
		row("", "GEMINI_API_KEY, OPENROUTER_API_KEY; or run Ollama) and restart")
	} else {
		row("Model", b.Model)
	}
	for i, bot := range b.Bots {
		row([]string{"Bots", ""}[min(i, 1)], bot)
	}
	for _, what := range b.Missing {
		row("Missing", what)
	}
	if b.Note != "" {
		for i, line := range text.WrapWords(b.Note, 68, utf8.RuneCountInString) {
			row([]string{"Note", ""}[min(i, 1)], line)
		}
	}
	row("Log", b.Log)
	row("Stop", "Ctrl-C; unfinished work continues at the next start")
	fmt.Fprintln(w)
}

// Lines prints the same for a file or a pipe, without the link. It uses a single write, so a reader that leaves after the first line cannot kill us.
func (b Banner) Lines(w io.Writer) {
	model := b.Model
	if b.offline() {
		model = "the built-in offline guide, because no key is set (ANTHROPIC_API_KEY, OPENAI_API_KEY, GEMINI_API_KEY, OPENROUTER_API_KEY)"
	}
	bots := ""
	if len(b.Bots) > 0 {
		bots = "bots: " + strings.Join(b.Bots, ", ") + "\n"
	}
	fmt.Fprintf(w, "listening on %s\nsign in with the link that `%s` prints\nmodel: %s\n%slog: %s\n", b.URL, b.link(), model, bots, b.Log)
}
