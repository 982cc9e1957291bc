// Package firstconfig writes a first configuration, by three questions.
package firstconfig

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"chorus/internal/operation"
	"chorus/internal/operations"
	"chorus/internal/provider"
	"chorus/internal/text"
	"chorus/internal/transport/cli"
	"chorus/internal/transport/repl"
	"chorus/internal/usage"
)

// Answers are what is asked, or told by flags.
type Answers struct {
	Model, Where, May string
}

// choice is one possible answer.
type choice struct{ name, about string }

var (
	places = []choice{
		{"local", "the web page and the terminal, on this machine alone"},
		{"discord", "on Discord too, with a bot's token"},
		{"proxy", "the web page reached from elsewhere, behind a proxy that does TLS"},
	}
	profiles = []choice{
		{"standard", "read and edit files of the folder; everything else is asked"},
		{"guarded", "commands run unasked in the sandbox; what leaves it is asked"},
		{"locked", "read and answer, nothing else"},
		{"open", "everything; only for folders and machines that may break"},
	}
)

var errKept = errors.New("nothing was changed")

// MayReplace asks before a configuration is replaced.
func MayReplace(console repl.Console, in *bufio.Reader, path string, force bool) error {
	if _, err := os.Stat(path); err != nil || force {
		return nil
	}
	if !console.CanAsk() {
		return &usage.Error{Err: fmt.Errorf("%s is there already; --force replaces it and keeps it as shared.yaml.old, --print shows the new one", path)}
	}
	fmt.Fprintf(console.Err, "%s is there already. Replace it? The old one is kept as shared.yaml.old. [y/N] ", path)
	line, err := in.ReadString('\n')
	if answer := strings.ToLower(strings.TrimSpace(line)); err != nil || answer != "y" && answer != "yes" {
		return errKept
	}
	return nil
}

// Ask fills in what no flag said: by questions on a terminal, else with what would hold anyway.
func (a *Answers) Ask(console repl.Console, in *bufio.Reader, models Models) (err error) {
	for _, q := range []struct {
		title   string
		to      *string
		choices []choice
		usual   string
		free    bool // another answer is one too
	}{
		{"Which model answers?", &a.Model, models.ready, models.usual, true},
		{"Where do people talk to it?", &a.Where, places, "local", false},
		{"What may it do without asking?", &a.May, profiles, "standard", false},
	} {
		known := func(name string) bool {
			return slices.ContainsFunc(q.choices, func(c choice) bool { return c.name == name }) || q.free && strings.Contains(name, "/")
		}
		switch {
		case *q.to != "" && !known(*q.to):
			return &usage.Error{Err: fmt.Errorf("%q is no answer to “%s”; there are %s", *q.to, q.title, names(q.choices))}
		case *q.to != "":
		case !console.CanAsk():
			*q.to = q.usual
		default:
			if *q.to, err = askOne(console.Err, console.Width(), in, q.title, q.choices, q.usual, known); err != nil {
				return err
			}
		}
	}
	return nil
}

func names(choices []choice) string {
	var out []string
	for _, c := range choices {
		out = append(out, c.name)
	}
	return strings.Join(out, ", ")
}

// leastAbout is how narrow what a choice means becomes.
const leastAbout = 20

// askOne asks until the answer is one; an empty one is the usual.
func askOne(w io.Writer, width int, in *bufio.Reader, title string, choices []choice, usual string, known func(string) bool) (string, error) {
	fmt.Fprintf(w, "\n%s\n", title)
	longest := 0
	for _, o := range choices {
		longest = max(longest, utf8.RuneCountInString(o.name))
	}
	for i, o := range choices {
		before := fmt.Sprintf("  %d  %-*s  ", i+1, longest, o.name)
		about := text.WrapWords(o.about, max(width-len(before)-1, leastAbout), utf8.RuneCountInString)
		fmt.Fprintf(w, "%s%s\n", before, strings.Join(about, "\n"+strings.Repeat(" ", len(before))))
	}
	for {
		fmt.Fprintf(w, "number or name [%s]: ", usual)
		line, err := in.ReadString('\n')
		if err != nil {
			fmt.Fprintln(w)
			return "", errKept
		}
		answer := strings.TrimSpace(line)
		if answer == "" {
			return usual, nil
		}
		if n, err := strconv.Atoi(answer); err == nil && n >= 1 && n <= len(choices) {
			return choices[n-1].name, nil
		}
		if known(answer) {
			return answer, nil
		}
		fmt.Fprintf(w, "%q is none of them.\n", answer)
	}
}

// Models are those that there is a key for, a few of each provider, and the one that answers where nobody chose.
type Models struct {
	ready []choice
	usual string
}

// FindModels looks for models.
func FindModels(ctx context.Context, to cli.Connection) (out Models, err error) {
	list, err := operations.ListModels.Call(ctx, to, to.Caller, operation.None{})
	of := map[string]int{}
	offline, _, _ := strings.Cut(provider.Offline, "/")
	for _, m := range list.Items {
		if m.Default {
			out.usual = m.Name
		}
		if m.Ready && (m.Name == provider.Offline || m.Provider != offline && of[m.Provider] < 3) {
			of[m.Provider]++
			out.ready = append(out.ready, choice{m.Name, priceOf(m)})
		}
	}
	out.usual = cmp.Or(out.usual, provider.Offline)
	return out, err
}

func priceOf(m operations.Model) string {
	switch {
	case m.Name == provider.Offline:
		return "built in and offline, no language model; a key in the environment (ANTHROPIC_API_KEY, …) offers more"
	case m.InputPrice == 0 && m.OutputPrice == 0:
		return ""
	}
	return fmt.Sprintf("$%g in, $%g out for a million tokens", m.InputPrice, m.OutputPrice)
}

// YAML is the configuration.
func (a Answers) YAML() string {
	var b strings.Builder
	line := func(parts ...string) { b.WriteString(strings.Join(parts, "") + "\n") }
	line("# The configuration of Chorus, for all agents; written by chorus init.")
	line("# Change it as you like: a running server reads it anew.")
	line("# Every key is in `chorus docs configuration`; `chorus config check` says what")
	line("# is wrong, `chorus config show` what holds.")
	line()
	line("# Who answers where nobody chose: provider/model. Keys come from the")
	line("# environment (ANTHROPIC_API_KEY, OPENAI_API_KEY, …).")
	line("model: ", a.Model)
	line("# When it cannot answer, the next of these does.")
	line("# fallback: [openai/gpt-5, demo/guide]")
	line()
	line("# What may be done without asking: open, standard, guarded, locked, or a")
	line("# profile of yours.")
	line("permissions: ", a.May)
	line("# Where commands run. auto is the strongest sandbox that works here.")
	line("sandbox: auto")
	line()
	if a.Where == "discord" {
		line("# On Discord: the bot's token comes from DISCORD_BOT_TOKEN, or")
		line("# DISCORD_BOT_TOKEN_FILE.")
		line("# Where it answers without being mentioned:")
		line("channels:")
		line("  allow: [general]")
		line("# What agents may do for people there; you, at this machine, are not held")
		line("# by it.")
		line("access:")
		line("  discord: locked")
		line("editors: [local]")
	} else {
		line("# On Discord, once DISCORD_BOT_TOKEN is set: where it answers without being")
		line("# mentioned, and what agents may do for people there.")
		line("# channels:")
		line("#   allow: [general]")
		line("# access:")
		line("#   discord: locked")
	}
	line()
	line("# What may be spent, in dollars. Without a key nothing is.")
	line("# budgets:")
	line("#   person: {day: 5, month: 50}")
	return b.String()
}

// Next is what to do now.
func (a Answers) Next() string {
	switch a.Where {
	case "discord":
		return "Next: DISCORD_BOT_TOKEN=… chorus serve (without a token of yours: chorus docs community)\n"
	case "proxy":
		return "Next: chorus serve --behind-proxy --host chorus.example.org (chorus docs reverse-proxy)\n"
	}
	return "Next: chorus serve, or chorus chat in a folder of yours\n"
}

// Write writes the file whole or not at all, and keeps the one before. A kill in between leaves the old one under one of the two names.
func Write(path, text string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	made := path + ".new"
	if err := os.WriteFile(made, []byte(text), 0o600); err != nil {
		return err
	}
	if _, err := os.Stat(path); err == nil {
		if err := os.Rename(path, path+".old"); err != nil {
			return err
		}
	}
	return os.Rename(made, path)
}
