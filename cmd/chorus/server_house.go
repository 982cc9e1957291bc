package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"

	"chorus/internal/app"
	"chorus/internal/chat"
	"chorus/internal/command"
	"chorus/internal/service"
	"chorus/internal/usage"
)

// keys does something with the tokens of this home, or of the server that was named.
func (c *cli) keys(ctx context.Context, do func(command.Keys, command.Caller) error) error {
	if c.remote() {
		return c.at(func(service command.Service) error { return do(service, command.Caller{}) })
	}
	return c.with(ctx, func(a *app.App) error { return do(a.Service.Tokens(), a.Service.LocalCaller()) })
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
func (c *cli) farCosts(ctx context.Context, q service.CostQuery) error {
	if !slices.Contains(service.CostBy(), q.By) {
		return &usage.Error{Err: fmt.Errorf("costs cannot be grouped by %q; there are %s", q.By, strings.Join(service.CostBy(), ", "))}
	}
	return c.at(func(remote command.Service) error {
		asked := command.CostQuery{By: q.By, Since: q.Since}
		if q.By == "thread" {
			asked.By = "session"
		}
		costs, err := remote.Costs(ctx, command.Caller{}, asked)
		if err != nil {
			return wrongUse(err)
		}
		out := service.Costs{By: q.By, Since: costs.Since, Rows: []service.Cost{}}
		for _, r := range costs.Rows {
			row := service.Cost{Key: r.Key, Calls: r.Calls, Spent: r.Dollars,
				Usage: chat.Usage{Input: r.InputTokens, Output: r.OutputTokens, CacheRead: r.CacheReadTokens, CacheWrite: r.CacheWriteTokens}}
			out.Rows = append(out.Rows, row)
			out.Total.Calls, out.Total.Usage = out.Total.Calls+row.Calls, out.Total.Usage.Plus(row.Usage)
		}
		out.Total.Spent = costs.Total
		for _, b := range costs.Budgets {
			key, whose, _ := strings.Cut(b.Name, " ")
			out.Budgets = append(out.Budgets, service.BudgetUsed{Key: key, Whose: whose, Period: b.Per, Spent: b.Spent, Most: b.Hard, Left: max(0, b.Hard-b.Spent)})
		}
		return c.tellCosts(out)
	})
}
