package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"chorus/internal/app"
)

func (c *program) trustCommand() *cobra.Command {
	var repo string
	var yes bool
	cmd := &cobra.Command{
		Use: "trust", Short: "Let a repository's MCP servers run", Args: exactly(0),
		Long: `A repository may name MCP servers in its .mcp.json. They are programs that run as you,
so they are left out until you have seen what they are. This shows them, asks, and
remembers the file as it is now: a changed file is asked for again.`,
		Example: `  chorus config trust
  chorus config trust --repo ../other --yes`,
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
	}
	cmd.Flags().StringVarP(&repo, "repo", "r", ".", "the repository")
	cmd.Flags().BoolVarP(&yes, "yes", "y", false, "do not ask")
	return cmd
}

func (c *program) trust(ctx context.Context, a *app.App, dir string, yes bool) error {
	r, err := a.Settings.RepositoryServers(dir)
	if err != nil {
		return err
	}
	if len(r.Servers) == 0 {
		return fmt.Errorf("%s names no servers", r.File)
	}
	for _, s := range r.Servers {
		fmt.Fprintf(c.out(), "%s\n", s.Name)
		if s.Command != "" {
			fmt.Fprintf(c.out(), "  runs  %s", s.Command)
			for _, arg := range s.Args {
				fmt.Fprintf(c.out(), " %q", arg)
			}
			fmt.Fprintln(c.out())
		} else {
			fmt.Fprintf(c.out(), "  asks  %s\n", s.URL)
		}
		for name := range s.Env {
			fmt.Fprintf(c.out(), "  gets  %s\n", name)
		}
	}
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
