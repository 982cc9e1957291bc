// Package banner writes what a server says of itself when it is ready.
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

// Banner is where a server is, who answers, how to get in and how to stop it.
type Banner struct {
	URL     string
	SignIn  string // empty: nobody at a terminal reads it, and a log would keep it
	Command string // how this program is called from where it was started
	Home    string // as --home says, if at all
	Usual   bool   // the address is the one that other commands take by themselves
	Model   string
	Missing []string // what a newcomer would miss here, each with what to do
	Note    string   // what whoever starts it should know
	Log     string   // the file
}

// CommandName is how a person calls this program again: by its name alone where that leads to it.
func CommandName(arg string, look func(string) (string, error)) string {
	if path, err := look(filepath.Base(arg)); err == nil && path != "" {
		return filepath.Base(arg)
	}
	return arg
}

// link is the command that makes a further link.
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

// Write is the banner for a person.
func (b Banner) Write(w io.Writer) {
	row := func(name, words string) { fmt.Fprintf(w, "  %-8s %s\n", name, words) }
	fmt.Fprintf(w, "\nChorus listens on %s\n\n", b.URL)
	row("Sign in", "open this link (works once, within 15 minutes):")
	fmt.Fprintf(w, "\n%s\n\n", b.SignIn) // at the margin, so that a terminal that wraps it still sees one link
	row("", "`"+b.link()+"` makes another")
	if b.offline() {
		row("Model", "the built-in offline guide (no language model, but real tools)")
		row("", "for a real one, export ANTHROPIC_API_KEY=… (or OPENAI_API_KEY,")
		row("", "GEMINI_API_KEY, OPENROUTER_API_KEY; or run Ollama) and restart")
	} else {
		row("Model", b.Model)
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

// Lines is the same for a file or a pipe, without the link. It is one write: whoever reads the first line and leaves must not end us.
func (b Banner) Lines(w io.Writer) {
	model := b.Model
	if b.offline() {
		model = "the built-in offline guide, because no key is set (ANTHROPIC_API_KEY, OPENAI_API_KEY, GEMINI_API_KEY, OPENROUTER_API_KEY)"
	}
	fmt.Fprintf(w, "listening on %s\nsign in with the link that `%s` prints\nmodel: %s\nlog: %s\n", b.URL, b.link(), model, b.Log)
}
