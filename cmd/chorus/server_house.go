package main

import (
	"context"
	"fmt"
	"strings"
	"text/tabwriter"

	"chorus/internal/app"
	"chorus/internal/command"
)

// keys does something with the tokens of this home, or of the server that was named.
func (c *cli) keys(ctx context.Context, do func(command.Keys, command.Caller) error) error {
	if c.remote() {
		return c.at(func(service command.Service) error { return do(service, command.Caller{}) })
	}
	return c.with(ctx, func(a *app.App) error { return do(a.Tokens(), a.LocalCaller()) })
}

// farAgents lists the agents of a server.
func (c *cli) farAgents(ctx context.Context) error {
	return c.at(func(service command.Service) error {
		list, err := service.ListAgents(ctx, command.Caller{})
		if err != nil {
			return err
		}
		if c.json {
			return c.printJSON(nonNil(list.Items))
		}
		w := tabwriter.NewWriter(c.out(), 0, 4, 2, ' ', 0)
		fmt.Fprintln(w, "NAME\tMODEL\tPERMISSIONS\tCREATED")
		for _, a := range list.Items {
			fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", a.Name, orElse(a.Model, "(default)"), orElse(a.Permissions, "standard"), day(a.CreatedAt))
		}
		return w.Flush()
	})
}

// farModels lists the models of a server.
func (c *cli) farModels(ctx context.Context) error {
	return c.at(func(service command.Service) error {
		list, err := service.Models(ctx, command.Caller{})
		if err != nil {
			return err
		}
		if c.json {
			return c.printJSON(nonNil(list.Items))
		}
		w := tabwriter.NewWriter(c.out(), 0, 4, 2, ' ', 0)
		fmt.Fprintln(w, "MODEL\tREADY\tWINDOW\tOUTPUT\t$ IN\t$ OUT\tCAN")
		for _, m := range list.Items {
			ready := "no key"
			if m.Ready {
				ready = "yes"
			}
			if m.Default {
				ready = "default"
			}
			fmt.Fprintf(w, "%s\t%s\t%d\t%d\t%g\t%g\t%s\n", m.Name, ready, m.ContextWindow, m.MaxOutput, m.InputPrice, m.OutputPrice, strings.Join(m.Can, " "))
		}
		return w.Flush()
	})
}

// farCosts sums what was spent on a server.
func (c *cli) farCosts(ctx context.Context, by, since string) error {
	return c.at(func(service command.Service) error {
		costs, err := service.Costs(ctx, command.Caller{}, command.CostQuery{By: by, Since: since})
		if err != nil {
			return wrongUse(err)
		}
		if c.json {
			return c.printJSON(costs)
		}
		if len(costs.Rows) == 0 {
			fmt.Fprintln(c.out(), "nothing was spent")
			return nil
		}
		w := tabwriter.NewWriter(c.out(), 0, 4, 2, ' ', 0)
		fmt.Fprintf(w, "%s\tSPENT\tCALLS\tIN\tOUT\tCACHED\n", strings.ToUpper(costs.By))
		for _, r := range costs.Rows {
			fmt.Fprintf(w, "%s\t$%.4f\t%d\t%d\t%d\t%d\n", orElse(r.Key, "–"), r.Dollars, r.Calls, r.InputTokens+r.CacheWriteTokens, r.OutputTokens, r.CacheReadTokens)
		}
		fmt.Fprintf(w, "together\t$%.4f\n", costs.Total)
		return w.Flush()
	})
}
