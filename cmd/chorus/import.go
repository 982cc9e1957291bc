package main

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"

	"chorus/internal/app"
	"chorus/internal/config"
	"chorus/internal/runsetup"
	"chorus/internal/settings"
	"chorus/internal/transport/repl/local"
)

func (c *program) importCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "import", Short: "Import data from other programs", RunE: onlySubcommands}
	var o runsetup.SessionOptions
	lca := c.jsonFlag(&cobra.Command{
		Use: "lca PATH…", Short: "Import session logs of the Local Coding Agent (.agent/session_*.jsonl)", Args: between(1, anyNumber),
		Example: "  chorus import lca .agent/session_20240115103000_ab12cd34.jsonl",
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.with(cmd.Context(), func(a *app.App) error {
				type taken struct {
					File      string `json:"file"`
					SessionID string `json:"sessionId"`
					Messages  int    `json:"messages"`
					Already   bool   `json:"already"`
				}
				all := []taken{}
				for _, path := range args {
					got, err := a.Sessions.ImportLCA(cmd.Context(), path, o, c.warn)
					if err != nil {
						return err
					}
					if c.json {
						all = append(all, taken{path, got.ID, got.Messages, got.Already})
						continue
					}
					if got.Already {
						fmt.Fprintf(c.out(), "%s: session %s was already imported\n", path, got.ID)
						continue
					}
					fmt.Fprintf(c.out(), "%s: %d messages; continue with: chorus chat --session-id %s\n", path, got.Messages, got.ID)
				}
				if c.json {
					return c.printJSON(all)
				}
				return nil
			})
		},
	})
	lca.Flags().StringVarP(&o.Dir, "repo", "r", "", "directory the session works in (default: the one in the log, else here)")
	lca.Flags().StringVar(&o.ResumeMode, "resume-mode", "", "how much of it to include: full, last-N or summary (default full)")
	cmd.AddCommand(lca, c.importChapter2(), c.importChapter3())
	return cmd
}

func (c *program) importChapter3() *cobra.Command {
	var o config.ImportOptions
	folder := ""
	cmd := c.jsonFlag(&cobra.Command{
		Use: "chapter3 DIR", Short: "Import configuration and tool files of a Chapter3 installation", Args: exactly(1),
		Long: `Converts config/ of a Chapter3 installation (shared.yaml, guilds/, bots/) into Chorus's
configuration: canonical names, and a comment that says which keys were left out and why.
Secrets go to separate files that only you can read (secrets/), and prompts are copied.
Existing files that differ are only overwritten with --force; importing twice is harmless.
Comments in the old files are not kept. Tool files in tools/ become a thread for each bot
and channel (chorus thread show).`,
		Example: `  chorus import chapter3 ../chapter3 --dry-run
  chorus import chapter3 ../chapter3
  chorus config check`,
		RunE: func(cmd *cobra.Command, args []string) error {
			taken, err := settings.ImportChapter3(c.getenv, c.home, folder, args[0], o)
			if err != nil {
				return err
			}
			tools, err := c.importTools(cmd.Context(), args[0], o.DryRun)
			if err != nil {
				return err
			}
			taken = append(taken, tools...)
			return c.showTaken(taken, o.DryRun)
		},
	})
	importFlags(cmd, &folder, &o)
	return cmd
}

func importFlags(cmd *cobra.Command, folder *string, o *config.ImportOptions) {
	cmd.Flags().StringVar(folder, "config", "", "folder to write to (default $CHORUS_CONFIG, $CONFIG_PATH or config in the home folder)")
	cmd.Flags().BoolVar(&o.DryRun, "dry-run", false, "only show what would be done")
	cmd.Flags().BoolVar(&o.Force, "force", false, "overwrite existing files that differ")
}

// showTaken prints what an import did or would do.
func (c *program) showTaken(taken []config.Taken, dry bool) error {
	if c.json {
		return c.printJSON(nonNil(taken))
	}
	w := c.columns()
	fmt.Fprintln(w, "FROM\tTO\tDONE\tREMARK")
	for _, t := range taken {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", t.From, cmp.Or(t.To, "–"), t.Action, t.Detail)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if dry {
		fmt.Fprintln(c.out(), "\nnothing was written (--dry-run)")
	} else {
		fmt.Fprintln(c.out(), "\ncheck it with: chorus config check")
	}
	return nil
}

func (c *program) importChapter2() *cobra.Command {
	var o config.ImportOptions
	folder := ""
	cmd := c.jsonFlag(&cobra.Command{
		Use: "chapter2 DIR", Short: "Import the configuration of a chapter2 installation", Args: exactly(1),
		Long: `Converts a chapter2 installation into Chorus's configuration, as chorus import chapter3
does: canonical names, comments for the keys that were left out, secrets in separate files.
DIR is the folder that EMS_PATH named: config.yaml for all bots, and for each bot a folder
with config.yaml, guilds/ and discord_token. Other files are listed but not imported;
messages are read from Discord again. Existing files that differ are only overwritten with
--force; importing twice is harmless.`,
		Example: `  chorus import chapter2 ../ems --dry-run
  chorus import chapter2 ../ems
  chorus config check`,
		RunE: func(_ *cobra.Command, args []string) error {
			taken, err := settings.ImportChapter2(c.getenv, c.home, folder, args[0], o)
			if err != nil {
				return err
			}
			return c.showTaken(taken, o.DryRun)
		},
	})
	importFlags(cmd, &folder, &o)
	return cmd
}

// importTools imports the tool files. Without any it does not open the home.
func (c *program) importTools(ctx context.Context, dir string, dry bool) ([]config.Taken, error) {
	channels, rows, err := local.ToolFiles(dir)
	if err != nil || len(channels) == 0 {
		return rows, err
	}
	if dry {
		for _, ch := range channels {
			rows = append(rows, config.Taken{From: filepath.Join("tools", ch.Agent, ch.Name), To: "a thread", Action: "written", Detail: fmt.Sprintf("%d calls", len(ch.Entries))})
		}
		return rows, nil
	}
	err = c.with(ctx, func(a *app.App) error {
		for _, ch := range channels {
			row, err := a.Sessions.ImportToolFiles(ctx, ch)
			if err != nil {
				return err
			}
			rows = append(rows, row)
		}
		return nil
	})
	return rows, err
}
