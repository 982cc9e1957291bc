package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"chorus/internal/app"
)

func (c *cli) importCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "import", Short: "Take over what other programs left", RunE: oneOf}
	var o app.SessionOptions
	lca := &cobra.Command{
		Use: "lca PATH…", Short: "Session logs of the Local Coding Agent (.agent/session_*.jsonl)", Args: between(1, anyNumber),
		Example: "  chorus import lca .agent/session_20240115103000_ab12cd34.jsonl",
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.with(cmd.Context(), func(a *app.App) error {
				for _, path := range args {
					got, err := a.ImportLCA(cmd.Context(), path, o, c.warn)
					if err != nil {
						return err
					}
					if got.Already {
						fmt.Fprintf(c.out(), "%s: session %s is here already\n", path, got.ID)
						continue
					}
					fmt.Fprintf(c.out(), "%s: %d messages; go on with: chorus chat --session-id %s\n", path, got.Messages, got.ID)
				}
				return nil
			})
		},
	}
	lca.Flags().StringVarP(&o.Dir, "repo", "r", "", "directory the session works in (default: the one in the log, else here)")
	lca.Flags().StringVar(&o.ResumeMode, "resume-mode", "", "how much of it counts: full, last-N or summary (default full)")
	cmd.AddCommand(lca)
	return cmd
}
