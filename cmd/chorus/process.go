package main

import (
	"github.com/spf13/cobra"

	"chorus/internal/transport/cli"
)

func (c *program) processCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "process", Short: "What agents left running: list, show, logs, kill, hook", RunE: onlySubcommands,
		Long: `Agents leave commands running with run_background: servers, builds, anything long. Each has a sandbox
of its own, and goes on when chorus serve is restarted or killed. Hooks say what happens when it ends, prints
something or takes long; they act while chorus serve or chorus chat runs, else at its next start.`,
		Example: `  chorus process list --running
  chorus process logs 01J9 -n 100
  chorus process hook 01J9 'when it fails, look at the log and fix it'
  chorus process kill 01J9`,
	}
	return c.group(cmd, func(*cli.Commands) {})
}
