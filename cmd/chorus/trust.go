package main

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"chorus/internal/app"
	"chorus/internal/markdown"
	"chorus/internal/settings"
	"chorus/internal/text"
	"chorus/internal/transport/cli"
	"chorus/internal/trust"
)

func (c *program) trustCommand() *cobra.Command {
	var repo string
	var yes bool
	cmd := c.jsonFlag(&cobra.Command{
		Use: "trust", Short: "Let a repository's MCP servers and tool hooks run", Args: exactly(0),
		Long: `A repository may name MCP servers in its .mcp.json, and commands that look at calls of
tools in its .chorus/settings.json or .claude/settings.json. They are programs that work in
your files, so they are left out until you have seen what they are. This shows them, asks,
and remembers the files that name them and the files of the repository that their commands
name, as they are now: a change is asked for again, and shown. With --json nothing is asked:
without --yes it only says what there is.`,
		Example: `  chorus config trust
  chorus config trust --repo ../other --yes
  chorus config trust --json`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			dir, err := filepath.Abs(repo)
			if err != nil {
				return err
			}
			if real, err := filepath.EvalSymlinks(dir); err == nil {
				dir = real
			}
			return c.with(cmd.Context(), func(a *app.App) error { return c.trust(cmd.Context(), a, dir, yes) })
		},
	})
	cmd.Flags().StringVarP(&repo, "repo", "r", ".", "the repository")
	cmd.Flags().BoolVarP(&yes, "yes", "y", false, "do not ask")
	return cmd
}

func (c *program) trust(ctx context.Context, a *app.App, dir string, yes bool) error {
	servers, err := a.Settings.RepositoryServers(dir)
	if err != nil {
		return err
	}
	all, err := a.Settings.RepositoryHooks(dir)
	if err != nil {
		return err
	}
	if len(servers.Servers) > 0 {
		all = append([]settings.Repository{servers}, all...)
	}
	if len(all) == 0 {
		return fmt.Errorf("%s names no servers, and no settings file beside it names hooks", servers.File)
	}
	if c.json {
		return c.trustJSON(ctx, a, all, yes)
	}
	for _, r := range all {
		if err := c.trustFile(ctx, a, r, yes); err != nil {
			return err
		}
	}
	return nil
}

// trustFile shows what one file names, and asks.
func (c *program) trustFile(ctx context.Context, a *app.App, r settings.Repository, yes bool) error {
	fmt.Fprint(c.out(), markdown.Visible(described(r)))
	if r.Trusted {
		fmt.Fprintln(c.out(), "trusted already")
		return nil
	}
	if !yes {
		if !c.console.CanAsk() {
			return fmt.Errorf("there is no terminal to ask on; if you have looked at %s, say so with --yes", r.File)
		}
		fmt.Fprint(c.out(), "let them run? [y/N] ")
		var answer string
		if _, err := fmt.Fscanln(os.Stdin, &answer); err != nil || answer != "y" && answer != "yes" {
			fmt.Fprintln(c.out(), "nothing was changed")
			return nil
		}
	}
	if err := a.Gate.TrustRepository(ctx, r); err != nil {
		return err
	}
	fmt.Fprintf(c.out(), "trusted %s as it is now\n", r.File)
	return nil
}

// trusted is a file that names servers or hooks, as a script reads it.
type trusted struct {
	File     string         `json:"file"`
	Trusted  bool           `json:"trusted"`
	Servers  []trustServer  `json:"servers,omitempty"`
	Hooks    []trustHook    `json:"hooks,omitempty"`
	Bound    []string       `json:"bound,omitempty"`
	Unbound  []string       `json:"unbound,omitempty"`
	Problems []string       `json:"problems,omitempty"`
	Changes  []trust.Change `json:"changes,omitempty"`
}

type trustServer struct {
	Name    string   `json:"name"`
	Command string   `json:"command,omitempty"`
	Args    []string `json:"args,omitempty"`
	Hosts   []string `json:"hosts,omitempty"`
	URL     string   `json:"url,omitempty"`
	Env     []string `json:"env,omitempty"` // names alone: values may be secrets
}

type trustHook struct {
	Event   string `json:"event"`
	Tools   string `json:"tools"`
	Command string `json:"command"`
	Seconds int    `json:"timeoutSeconds"`
}

// trustJSON says what the files name, and with yes trusts them first.
func (c *program) trustJSON(ctx context.Context, a *app.App, all []settings.Repository, yes bool) error {
	out := []trusted{}
	for _, r := range all {
		if yes && !r.Trusted {
			if err := a.Gate.TrustRepository(ctx, r); err != nil {
				return err
			}
			r.Trusted = true
		}
		one := trusted{File: r.File, Trusted: r.Trusted, Unbound: r.Unbound, Problems: r.Problems, Changes: r.Changes}
		for _, s := range r.Servers {
			one.Servers = append(one.Servers, trustServer{s.Name, s.Command, s.Args, s.Hosts, s.URL, slices.Sorted(maps.Keys(s.Env))})
		}
		for _, h := range r.Hooks {
			one.Hooks = append(one.Hooks, trustHook{h.Event, cmp.Or(h.Tools, "*"), h.Command, int(h.Timeout.Seconds())})
		}
		for _, name := range slices.Sorted(maps.Keys(r.Files)) {
			if r.Files[name] != trust.Absent {
				one.Bound = append(one.Bound, name)
			}
		}
		out = append(out, one)
	}
	return cli.PrintJSON(c.out(), out)
}

// described is what a yes would be for: the servers, the hooks, the files that it covers, and how they
// differ from what was trusted before.
func described(r settings.Repository) string {
	var out strings.Builder
	for _, s := range r.Servers {
		fmt.Fprintf(&out, "%s\n", s.Name)
		if s.Command != "" {
			fmt.Fprintf(&out, "  runs  %s", s.Command)
			for _, arg := range s.Args {
				fmt.Fprintf(&out, " %q", arg)
			}
			reaches := "nothing"
			if len(s.Hosts) > 0 {
				reaches = strings.Join(s.Hosts, ", ")
			}
			fmt.Fprintf(&out, "\n  reaches  %s\n", reaches)
		} else {
			fmt.Fprintf(&out, "  asks  %s\n", s.URL)
		}
		for _, name := range slices.Sorted(maps.Keys(s.Env)) {
			fmt.Fprintf(&out, "  gets  %s\n", name)
		}
	}
	for _, h := range r.Hooks {
		tools := cmp.Or(h.Tools, "*")
		fmt.Fprintf(&out, "%s calls of %s\n  runs  %s\n  for at most %s, where the agent's commands run\n", h.Event, tools, h.Command, h.Timeout)
	}
	for _, p := range r.Problems {
		fmt.Fprintf(&out, "problem: %s\n", p)
	}
	absent := 0
	for _, name := range slices.Sorted(maps.Keys(r.Files)) {
		if r.Files[name] == trust.Absent {
			absent++
			continue
		}
		fmt.Fprintf(&out, "covered: %s\n", name)
	}
	if absent > 0 {
		fmt.Fprintf(&out, "covered: that there is nothing at %s where it would be loaded\n", text.Count(absent, "place"))
	}
	if len(r.Files) > 0 {
		fmt.Fprintln(&out, "not covered: installed packages, and what these files find only while they run")
	}
	for _, text := range r.Unbound {
		fmt.Fprintf(&out, "not covered: %s\n", text)
	}
	for _, change := range r.Changes {
		fmt.Fprintf(&out, "since you trusted it, %s %s\n", change.Path, change.How)
		out.WriteString(change.Diff)
		if change.Diff != "" && !strings.HasSuffix(change.Diff, "\n") {
			out.WriteString("\n")
		}
	}
	return out.String()
}
