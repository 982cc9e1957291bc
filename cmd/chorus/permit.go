package main

import (
	"github.com/spf13/cobra"

	"chorus/internal/permit"
)

func (c *cli) permitCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "permit", Short: "Try permission rules", RunE: oneOf}
	rules := ""
	var who permit.Who
	check := c.jsonFlag(&cobra.Command{
		Use: "check --rules FILE ACTION", Short: "Print allow, ask or deny for an action string", Args: exactly(1),
		Example: `  chorus permit check --rules standard 'tool:write:src/a.go'
  chorus permit check --rules rules.json 'tool:bash:git push origin main'`,
		RunE: func(_ *cobra.Command, args []string) error {
			return permit.Check(c.out(), rules, args[0], who, c.json)
		},
	})
	explain := c.jsonFlag(&cobra.Command{
		Use: "explain [--rules FILE] COMMAND", Short: "Show how a shell command is taken apart and judged", Args: exactly(1),
		Example: `  chorus permit explain 'cd src && rm -rf build; git push'
  chorus permit explain --rules rules.yaml --role dev --channel ops 'make deploy'`,
		RunE: func(_ *cobra.Command, args []string) error {
			return permit.Explain(c.out(), rules, args[0], who, c.json, c.console.OutTTY && c.console.Color)
		},
	})
	narrow := c.jsonFlag(&cobra.Command{
		Use: "narrow [--rules FILE] COMMAND [OTHER…]", Short: "Show which rules would allow a command, and which others they allow too",
		Args:    cobra.MinimumNArgs(1),
		Example: `  chorus permit narrow 'go test ./...' 'go test -exec sh ./...' 'go vet ./...'`,
		RunE: func(_ *cobra.Command, args []string) error {
			return permit.Propose(c.out(), rules, args[0], args[1:], who, c.json)
		},
	})
	for _, sub := range []*cobra.Command{check, explain, narrow} {
		sub.Flags().StringVar(&rules, "rules", "", "preset (open, standard, guarded, locked) or file with {allow, ask, deny} (default standard)")
		sub.Flags().StringSliceVar(&who.Roles, "role", nil, "judge as somebody with this role (may be repeated)")
		sub.Flags().StringVar(&who.Agent, "agent", "", "judge for this agent")
		sub.Flags().StringVar(&who.Channel, "channel", "", "judge in this channel")
	}
	cmd.AddCommand(check, explain, narrow, c.allowedCommand())
	return cmd
}
