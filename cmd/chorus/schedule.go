package main

import (
	"context"
	"path/filepath"

	"github.com/spf13/cobra"

	"chorus/internal/operations"
	"chorus/internal/transport/cli"
)

func (c *program) scheduleCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "schedule", Short: "What is said to agents at set times: add, list, show, pause, remove", RunE: onlySubcommands,
		Long: `A schedule says something to an agent at set times, in a session of its own or in one that
is there. It acts with the rights and the money of whoever added it, and only in folders of
its own or below the key workspaces. chorus serve keeps schedules; what was due while it
was off is caught up with once (--catch-up skip|once|all).`,
		Example: `  chorus schedule next 'every weekday at 9'         how it is understood, with the next five dates
  chorus schedule add 'every weekday at 9' 'What is new in the issues?'
  chorus schedule add 'tomorrow at 17:30' 'Remind me of the release' --zone Europe/Berlin
  chorus schedule list`,
	}
	return c.group(cmd, func(commands *cli.Commands) {
		cli.Prepare(commands, operations.AddSchedule, func(*cobra.Command) func(context.Context, cli.Connection, *operations.NewSchedule, []string) error {
			return func(_ context.Context, _ cli.Connection, in *operations.NewSchedule, _ []string) (err error) {
				if in.Workspace != "" {
					in.Workspace, err = filepath.Abs(in.Workspace)
				}
				return err
			}
		})
	})
}
