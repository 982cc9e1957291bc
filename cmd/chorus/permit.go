package main

import (
	"github.com/spf13/cobra"

	"chorus/internal/permit"
)

func (c *cli) permitCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "permit", Short: "Try permission rules", RunE: oneOf}
	rules := ""
	check := c.jsonFlag(&cobra.Command{
		Use: "check --rules FILE ACTION", Short: "Print allow, ask or deny for an action string", Args: exactly(1),
		Example: `  chorus permit check --rules standard 'tool:write:src/a.go'
  chorus permit check --rules rules.json 'tool:bash:git push origin main'`,
		RunE: func(_ *cobra.Command, args []string) error {
			return permit.Check(c.out(), rules, args[0], c.json)
		},
	})
	explain := c.jsonFlag(&cobra.Command{
		Use: "explain [--rules FILE] COMMAND", Short: "Show how a shell command is taken apart and judged", Args: exactly(1),
		Example: `  chorus permit explain 'cd src && rm -rf build; git push'`,
		RunE: func(_ *cobra.Command, args []string) error {
			return permit.Explain(c.out(), rules, args[0], c.json, c.console.OutTTY && c.console.Color)
		},
	})
	for _, sub := range []*cobra.Command{check, explain} {
		sub.Flags().StringVar(&rules, "rules", "", "preset (open, standard, guarded, locked) or file with {allow, ask, deny} (default standard)")
	}
	cmd.AddCommand(check, explain)
	return cmd
}
