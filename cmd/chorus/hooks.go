package main

import (
	"github.com/spf13/cobra"

	"chorus/cmd/chorus/hookflags"
	"chorus/internal/operations"
	"chorus/internal/transport/cli"
)

func (c *program) hookCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "hook", Short: "Manage hooks, which run when something happens", RunE: onlySubcommands,
		Long: `A hook gathers context, asks a model and acts when an event happens, at set times, or when a
webhook arrives. It uses the rights and the budget of the person who made it. chorus serve
runs hooks.`,
		Example: `  chorus hook create 'Broken build' 'The tests failed: {{step_0}} Why?' --when 'every hour' --run 'make test' --skip-ok --approve
  chorus hook list
  chorus hook fire broken-build
  chorus hook runs broken-build`,
	}
	return c.group(cmd, func(commands *cli.Commands) {
		cli.Prepare(commands, operations.CreateHook, hookflags.Prepare)
		cli.Prepare(commands, operations.PreviewHook, hookflags.Prepare)
	})
}
