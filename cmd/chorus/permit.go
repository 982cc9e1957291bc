package main

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"chorus/internal/app"
	"chorus/internal/chat"
	"chorus/internal/gate"
	"chorus/internal/permit"
	"chorus/internal/permit/always"
	"chorus/internal/transport/cli"
)

func (c *program) permitCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "permit", Short: "Try and inspect permission rules", RunE: onlySubcommands}
	rules := ""
	var who permit.Who
	check := c.jsonFlag(&cobra.Command{
		Use: "check --rules FILE ACTION", Short: "Print allow, ask or deny for an action string", Args: exactly(1),
		Example: `  chorus permit check --rules standard 'tool:write:src/a.go'
  chorus permit check --rules rules.json 'tool:bash:git push origin main'`,
		RunE: func(_ *cobra.Command, args []string) error {
			p, err := gate.PermitRules(c.getenv, c.home, who.Agent, rules)
			if err != nil {
				return err
			}
			return p.WriteCheck(c.out(), args[0], who, c.json)
		},
	})
	explain := c.jsonFlag(&cobra.Command{
		Use: "explain [--rules FILE] COMMAND", Short: "Show how a shell command is split up and judged", Args: exactly(1),
		Example: `  chorus permit explain 'cd src && rm -rf build; git push'
  chorus permit explain --rules rules.yaml --role dev --channel ops 'make deploy'`,
		RunE: func(_ *cobra.Command, args []string) error {
			p, err := gate.PermitRules(c.getenv, c.home, who.Agent, rules)
			if err != nil {
				return err
			}
			return p.WriteExplained(c.styled(), args[0], who, c.json, c.look())
		},
	})
	narrow := c.jsonFlag(&cobra.Command{
		Use: "narrow [--rules FILE] COMMAND [OTHER…]", Short: "Show which rules would allow a command, and what else they would allow",
		Args:    between(1, anyNumber),
		Example: `  chorus permit narrow 'go test ./...' 'go test -exec sh ./...' 'go vet ./...'`,
		RunE: func(_ *cobra.Command, args []string) error {
			p, err := gate.PermitRules(c.getenv, c.home, who.Agent, rules)
			if err != nil {
				return err
			}
			return always.WriteProposals(c.out(), p, args[0], args[1:], who, c.json)
		},
	})
	for _, sub := range []*cobra.Command{check, explain, narrow} {
		sub.Flags().StringVar(&rules, "rules", "", "profile of the configuration, preset (open, standard, guarded, locked) or file with {allow, ask, deny} (default the agent's, else standard)")
		sub.Flags().StringSliceVar(&who.Roles, "role", nil, "judge for somebody with this role; may be given more than once")
		sub.Flags().StringVar(&who.Agent, "agent", "", "judge for this agent")
		sub.Flags().StringVar(&who.Channel, "channel", "", "judge in this channel")
	}
	cmd.AddCommand(check, explain, narrow, c.permitRights(), c.allowedCommand())
	return c.addOperations(cmd, func(commands *cli.Commands) {
		allowedOverrides(commands)
		profileOverrides(commands)
	})
}

func (c *program) permitRights() *cobra.Command {
	var ask gate.RightsAsk
	cmd := c.jsonFlag(&cobra.Command{
		Use: "rights", Short: "Show what agents may do for somebody, and why", Args: exactly(0),
		Long: `An action must be allowed by the agent's profile, by the channel's profile, and by the
profile that access in the configuration gives to the person who asked. If a run contains
words of several people, it must be allowed for all of them.`,
		Example: `  chorus permit rights
  chorus permit rights --as discord:123 --role admin --agent frontend --channel 1/42`,
		RunE: func(*cobra.Command, []string) error {
			ask.Me = app.Me(c.getenv)
			got, err := gate.RightsOf(c.getenv, c.home, ask)
			if err != nil {
				return err
			}
			if c.json {
				return c.printJSON(got)
			}
			w := c.columns()
			for _, r := range got.Limits {
				who := r.Who
				if r.Part == gate.SenderPart {
					who = chat.PrincipalOf(who).Label()
				}
				fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", r.Part, who, r.Profile, r.From)
			}
			if err := w.Flush(); err != nil {
				return err
			}
			fmt.Fprintf(c.out(), "combined: %s\n", cmp.Or(strings.Join(got.Together, " and "), "nothing; "+got.Nothing))
			fmt.Fprintf(c.out(), "may grant an agent: %s\n", cmp.Or(strings.Join(got.Gives, ", "), "nothing"))
			return nil
		},
	})
	cmd.Flags().StringVar(&ask.As, "as", "", "person: discord:123, token:NAME, local:NAME (default: you)")
	cmd.Flags().StringSliceVar(&ask.Roles, "role", nil, "a role they have; may be given more than once")
	cmd.Flags().StringVar(&ask.Agent, "agent", "", "with this agent")
	cmd.Flags().StringVar(&ask.Channel, "channel", "", "in this channel: PLACE or TRANSPORT:PLACE")
	return cmd
}
