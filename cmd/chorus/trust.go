package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"chorus/cmd/chorus/trustview"
	"chorus/internal/app"
	"chorus/internal/markdown"
	"chorus/internal/settings"
)

func (c *program) trustCommand() *cobra.Command {
	var repo string
	var yes bool
	cmd := c.jsonFlag(&cobra.Command{
		Use: "trust", Short: "Let a repository's MCP servers and tool hooks run", Args: exactly(0),
		Long: `A repository may name MCP servers in its .mcp.json, and commands that check tool calls in its
.chorus/settings.json or .claude/settings.json. They are programs that work in your files, so
they are off until you have reviewed them. This command shows them, asks, and remembers the
files that name them, and the repository files that their commands name, as they are now. If
any of them changes, you are asked again and shown the change. With --json it does not ask;
without --yes it only reports.`,
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
		return fmt.Errorf("%s names no servers, and no settings file next to it names hooks", servers.File)
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
	fmt.Fprint(c.out(), markdown.Visible(trustview.Text(r)))
	if r.Trusted {
		fmt.Fprintln(c.out(), "already trusted")
		return nil
	}
	if !yes {
		if !c.console.CanAsk() {
			return fmt.Errorf("there is no terminal to ask on; review %s, then add --yes", r.File)
		}
		fmt.Fprint(c.out(), "Let them run? [y/N] ")
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

// trustJSON prints what the files name. With yes it trusts them first.
func (c *program) trustJSON(ctx context.Context, a *app.App, all []settings.Repository, yes bool) error {
	out := []trustview.File{}
	for _, r := range all {
		if yes && !r.Trusted {
			if err := a.Gate.TrustRepository(ctx, r); err != nil {
				return err
			}
			r.Trusted = true
		}
		out = append(out, trustview.Of(r))
	}
	return c.printJSON(out)
}
