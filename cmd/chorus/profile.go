package main

import (
	"fmt"
	"strings"
	"text/tabwriter"

	"chorus/internal/markdown"
	"chorus/internal/operations"
	"chorus/internal/transport/cli"
)

// profileOverrides defines how permission profiles are displayed.
func profileOverrides(commands *cli.Commands) {
	cli.Render(commands, operations.GetProfile, showProfile)
	cli.Render(commands, operations.TryProfile, showTrial)
}

func showProfile(v cli.View, _ operations.ProfileRef, p operations.ProfileDetail) error {
	fmt.Fprintln(v.Out, strings.TrimSuffix(p.Name+": "+p.About, ": "))
	cut := false
	for _, l := range []struct {
		name  string
		rules []operations.RuleWords
	}{{"refused", p.Deny}, {"allowed", p.Allow}, {"asked", p.Ask}} {
		for _, r := range l.rules {
			rule := r.Rule
			if v.Width > 0 {
				rule = markdown.Truncate(rule, v.Width-5)
			}
			cut = cut || rule != r.Rule
			fmt.Fprintf(v.Out, "  %s: %s\n    %s\n", l.name, r.Words, rule)
		}
	}
	if len(p.Agents) > 0 {
		fmt.Fprintf(v.Out, "agents: %s\n", strings.Join(p.Agents, ", "))
	}
	if cut {
		fmt.Fprintln(v.Out, "see the full expressions with --json")
	}
	_, err := fmt.Fprintf(v.Out, "version %s\n", p.Version)
	return err
}

func showTrial(v cli.View, _ operations.ProfileDraft, t operations.ProfileTrial) error {
	fmt.Fprintf(v.Out, "tried on %d decisions\n", t.Looked)
	w := tabwriter.NewWriter(v.Out, 0, 4, 2, ' ', 0)
	fmt.Fprintf(w, "\tallow\task\tdeny\nbefore\t%d\t%d\t%d\nafter\t%d\t%d\t%d\n", t.Before.Allow, t.Before.Ask, t.Before.Deny, t.After.Allow, t.After.Ask, t.After.Deny)
	if err := w.Flush(); err != nil {
		return err
	}
	for _, c := range t.Changes {
		fmt.Fprintf(v.Out, "%s → %s  %s  (%d times)\n", c.Before, c.After, strings.TrimPrefix(c.Action, "tool:bash:"), c.Times)
	}
	if len(t.Changes) == 0 {
		fmt.Fprintln(v.Out, "nothing would change")
	}
	if t.More > 0 {
		fmt.Fprintf(v.Out, "… and %d more\n", t.More)
	}
	return nil
}
