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
		Use: "schedule", Short: "Manage messages sent to agents at set times", RunE: onlySubcommands,
		Long: `A schedule sends a message to an agent at set times, in a session of its own or in an existing
one. It uses the rights and the budget of the person who added it, and works only in folders
of its own or below the key workspaces. chorus serve runs schedules; what came due while it
was off is made up for once (--catch-up skip|once|all).`,
		Example: `  chorus schedule next 'every weekday at 9'         show how it is understood, with the next five dates
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
