package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"chorus/internal/config"
	"chorus/internal/operation"
	"chorus/internal/operations"
	"chorus/internal/provider"
	"chorus/internal/settings"
	"chorus/internal/transport/cli"
	"chorus/internal/usage"
)

// answers are what chorus init asks, or is told by flags.
type answers struct {
	model, where, may string
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

func (c *program) initCommand() *cobra.Command {
	var a answers
	folder, force, show := "", false, false
	cmd := &cobra.Command{
		Use: "init", Short: "Write a configuration, by three questions", Args: exactly(0),
		Long: `Asks which model answers, where people talk to it and what it may do without asking, and
writes a configuration with comments into the home. Every answer has a flag, so that it works
without a terminal; what nobody says is as it would be without a configuration. A
configuration that is there is never replaced without a yes (or --force), and is then
kept beside the new one.`,
		Example: `  chorus init
  chorus init --model anthropic/claude-sonnet-4-5 --where local --permissions standard
  chorus init --print                the configuration on standard output, nothing is written`,
	}
	f := cmd.Flags()
	f.StringVarP(&a.model, "model", "m", "", "provider/model (chorus models lists them)")
	f.StringVar(&a.where, "where", "", "local, discord or proxy")
	f.StringVar(&a.may, "permissions", "", "standard, guarded, locked or open")
	f.StringVar(&folder, "config", "", "folder of the files (default $CHORUS_CONFIG, $CONFIG_PATH or config in the home folder)")
	f.BoolVar(&force, "force", false, "replace a configuration that is there; it is kept as shared.yaml.old")
	f.BoolVar(&show, "print", false, "print it and write nothing")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		o, err := settings.ConfigOptions(c.getenv, c.home, folder)
		if err != nil {
			return err
		}
		path := filepath.Join(o.Dir, "shared.yaml")
		in := bufio.NewReader(c.console.In)
		if !show {
			if err := c.mayReplace(in, path, force); err != nil {
				return err
			}
		}
		if err := c.askAll(cmd.Context(), in, &a); err != nil {
			return err
		}
		text := a.yaml()
		if show {
			_, err := fmt.Fprint(c.out(), text)
			return err
		}
		if err := writeConfig(path, text); err != nil {
			return err
		}
		fmt.Fprintf(c.out(), "Written: %s\n", path)
		if _, problems := config.Load(o, config.Ask{}); problems.Err() != nil {
			return fmt.Errorf("something else is wrong with the configuration: %w; `chorus config check` says all of it", problems.Err())
		}
		fmt.Fprint(c.out(), a.next())
		return nil
	}
	return cmd
}

var errKept = errors.New("nothing was changed")

// mayReplace asks before a configuration is replaced.
func (c *program) mayReplace(in *bufio.Reader, path string, force bool) error {
	if _, err := os.Stat(path); err != nil || force {
		return nil
	}
	if !c.console.CanAsk() {
		return &usage.Error{Err: fmt.Errorf("%s is there already; --force replaces it and keeps it as shared.yaml.old, --print shows the new one", path)}
	}
	fmt.Fprintf(c.console.Err, "%s is there already. Replace it? The old one is kept as shared.yaml.old. [y/N] ", path)
	line, err := in.ReadString('\n')
	if answer := strings.ToLower(strings.TrimSpace(line)); err != nil || answer != "y" && answer != "yes" {
		return errKept
	}
	return nil
}

// askAll fills in what no flag said: by questions on a terminal, else with what would hold anyway.
func (c *program) askAll(ctx context.Context, in *bufio.Reader, a *answers) error {
	models, usual, err := c.readyModels(ctx)
	if err != nil {
		return err
	}
	for _, q := range []struct {
		title   string
		to      *string
		choices []choice
		usual   string
		free    bool // another answer is one too
	}{
		{"Which model answers?", &a.model, models, usual, true},
		{"Where do people talk to it?", &a.where, places, "local", false},
		{"What may it do without asking?", &a.may, profiles, "standard", false},
	} {
		known := func(name string) bool {
			return slices.ContainsFunc(q.choices, func(c choice) bool { return c.name == name }) || q.free && strings.Contains(name, "/")
		}
		switch {
		case *q.to != "" && !known(*q.to):
			return &usage.Error{Err: fmt.Errorf("%q is no answer to “%s”; there are %s", *q.to, q.title, names(q.choices))}
		case *q.to != "":
		case !c.console.CanAsk():
			*q.to = q.usual
		default:
			if *q.to, err = c.askOne(in, q.title, q.choices, q.usual, known); err != nil {
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

// askOne asks until the answer is one; an empty one is the usual.
func (c *program) askOne(in *bufio.Reader, title string, choices []choice, usual string, known func(string) bool) (string, error) {
	w := c.console.Err
	fmt.Fprintf(w, "\n%s\n", title)
	for i, o := range choices {
		fmt.Fprintf(w, "  %d  %-34s %s\n", i+1, o.name, o.about)
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

// readyModels are models that there is a key for, a few of each provider, and the one that answers where nobody chose.
func (c *program) readyModels(ctx context.Context) (out []choice, usual string, err error) {
	err = c.execute(ctx, func(to cli.Connection) error {
		list, err := operations.ListModels.Call(ctx, to, to.Caller, operation.None{})
		if err != nil {
			return err
		}
		of := map[string]int{}
		offline, _, _ := strings.Cut(provider.Offline, "/")
		for _, m := range list.Items {
			if m.Default {
				usual = m.Name
			}
			if m.Ready && (m.Name == provider.Offline || m.Provider != offline && of[m.Provider] < 3) {
				of[m.Provider]++
				out = append(out, choice{m.Name, priceOf(m)})
			}
		}
		return nil
	})
	if usual == "" {
		usual = provider.Offline
	}
	return out, usual, err
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

// yaml is the configuration.
func (a answers) yaml() string {
	var b strings.Builder
	line := func(parts ...string) { b.WriteString(strings.Join(parts, "") + "\n") }
	line("# The configuration of Chorus, for all agents; written by chorus init. Change it as you like: a running server reads it anew.")
	line("# Every key is in `chorus docs configuration`; `chorus config check` says what is wrong, `chorus config show` what holds.")
	line()
	line("# Who answers where nobody chose: provider/model. Keys come from the environment (ANTHROPIC_API_KEY, OPENAI_API_KEY, …).")
	line("model: ", a.model)
	line("# When it cannot answer, the next of these does.")
	line("# fallback: [openai/gpt-5, demo/guide]")
	line()
	line("# What may be done without asking: open, standard, guarded, locked, or a profile of yours.")
	line("permissions: ", a.may)
	line("# Where commands run. auto is the strongest sandbox that works here.")
	line("sandbox: auto")
	line()
	if a.where == "discord" {
		line("# On Discord: the bot's token comes from DISCORD_BOT_TOKEN, or DISCORD_BOT_TOKEN_FILE.")
		line("# Where it answers without being mentioned:")
		line("channels:")
		line("  allow: [general]")
		line("# What people there may have done; you, at this machine, are not held by it.")
		line("access:")
		line("  discord: locked")
		line("editors: [local]")
	} else {
		line("# On Discord, once DISCORD_BOT_TOKEN is set: where it answers without being mentioned, and what people there may have done.")
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

// next is what to do now.
func (a answers) next() string {
	switch a.where {
	case "discord":
		return "Next: DISCORD_BOT_TOKEN=… chorus serve (without a token of yours: chorus docs community)\n"
	case "proxy":
		return "Next: chorus serve --behind-proxy --host chorus.example.org (chorus docs reverse-proxy)\n"
	}
	return "Next: chorus serve, or chorus chat in a folder of yours\n"
}

// writeConfig writes the file whole or not at all, and keeps the one before. A kill in between leaves the old one under one of the two names.
func writeConfig(path, text string) error {
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
