package main

import (
	"github.com/spf13/cobra"

	"chorus/internal/transport/cli"
)

func (c *program) processCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "process", Short: "Manage processes that agents left running", RunE: onlySubcommands,
		Long: `Agents leave commands running with run_background: servers, builds, anything long. Each has its own
sandbox and keeps running when chorus serve is restarted or killed. Hooks say what happens when a process
ends, prints something or takes long. They act while chorus serve or chorus chat runs, or at its next start.`,
		Example: `  chorus process list --running
  chorus process logs 01J9 -n 100
  chorus process hook 01J9 'when it fails, look at the log and fix it'
  chorus process kill 01J9`,
	}
	return c.group(cmd, func(*cli.Commands) {})
}
