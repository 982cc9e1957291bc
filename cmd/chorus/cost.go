package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"chorus/internal/chat"
	"chorus/internal/operations"
	"chorus/internal/transport/cli"
	"chorus/internal/usage"
)

func (c *program) costCommand() *cobra.Command {
	commands := c.commands()
	cli.Render(commands, operations.GetCosts, func(v cli.View, _ operations.CostQuery, costs operations.Costs) error {
		return showCosts(v.Out, costsOf(costs))
	})
	cli.JSON(commands, operations.GetCosts, func(_ cli.View, costs operations.Costs) any { return costsOf(costs) })
	cli.Prepare(commands, operations.GetCosts, func(*cobra.Command) func(context.Context, cli.Connection, *operations.CostQuery, []string) error {
		return func(_ context.Context, _ cli.Connection, in *operations.CostQuery, _ []string) error {
			return checkGroup(in.By)
		}
	})
	cli.InvalidIsUsage(commands, operations.GetCosts)
	return c.serverFlags(commands.Command(operations.GetCosts))
}

// costsJSON are costs as a script reads them. Money is in US dollars.
type costsJSON struct {
	By      string       `json:"by"`
	Since   time.Time    `json:"since,omitzero"` // UTC; zero: since ever
	Rows    []costJSON   `json:"rows"`
	Total   costJSON     `json:"total"`
	Budgets []budgetJSON `json:"budgets,omitempty"`
}

type costJSON struct {
	Key      string     `json:"key"`
	Calls    int        `json:"calls"`
	Spent    float64    `json:"spent"`
	Reserved float64    `json:"reserved,omitempty"` // by calls that are not over
	Usage    chat.Usage `json:"usage"`
}

type budgetJSON struct {
	Key      string  `json:"key"`             // in the configuration
	Whose    string  `json:"whose,omitempty"` // "": nobody has spent anything of it
	Period   string  `json:"period"`
	Spent    float64 `json:"spent"`
	Reserved float64 `json:"reserved,omitempty"`
	Most     float64 `json:"most"`
	Left     float64 `json:"left"`
}

func costsOf(costs operations.Costs) costsJSON {
	out := costsJSON{By: costs.By, Since: costs.Since, Rows: []costJSON{}}
	for _, r := range costs.Rows {
		row := costJSON{Key: r.Key, Calls: r.Calls, Spent: r.Dollars, Reserved: r.Reserved,
			Usage: chat.Usage{Input: r.InputTokens, Output: r.OutputTokens, CacheRead: r.CacheReadTokens, CacheWrite: r.CacheWriteTokens}}
		out.Rows = append(out.Rows, row)
		out.Total.Calls, out.Total.Usage, out.Total.Reserved = out.Total.Calls+row.Calls, out.Total.Usage.Plus(row.Usage), out.Total.Reserved+row.Reserved
	}
	out.Total.Spent = costs.Total
	for _, b := range costs.Budgets {
		key, whose, _ := strings.Cut(b.Name, " ")
		out.Budgets = append(out.Budgets, budgetJSON{Key: key, Whose: whose, Period: b.Per, Spent: b.Spent - b.Reserved, Reserved: b.Reserved,
			Most: b.Hard, Left: max(0, b.Hard-b.Spent)})
	}
	return out
}

// checkGroup says what costs can be grouped by.
func checkGroup(by string) error {
	f, _ := operations.GetCosts.Field("by")
	if slices.Contains(f.Enum, by) {
		return nil
	}
	return &usage.Error{Err: fmt.Errorf("costs cannot be grouped by %q; there are %s", by, strings.Join(f.Enum, ", "))}
}

func showCosts(w io.Writer, costs costsJSON) error {
	when := "so far"
	if !costs.Since.IsZero() {
		when = "since " + costs.Since.UTC().Format("2006-01-02 15:04") + " UTC"
	}
	if len(costs.Rows) == 0 {
		fmt.Fprintf(w, "nothing was spent %s\n", when)
	} else if err := writeCostTable(w, costs, when); err != nil {
		return err
	}
	return writeBudgets(w, costs.Budgets)
}

func writeCostTable(out io.Writer, costs costsJSON, when string) error {
	w := tabwriter.NewWriter(out, 0, 4, 2, ' ', 0)
	fmt.Fprintf(w, "%s\tSPENT\tCALLS\tIN\tOUT\tCACHED\n", strings.ToUpper(costs.By))
	line := func(key string, m costJSON) {
		fmt.Fprintf(w, "%s\t$%.4f\t%d\t%d\t%d\t%d\n", key, m.Spent, m.Calls, m.Usage.Input+m.Usage.CacheWrite, m.Usage.Output, m.Usage.CacheRead)
	}
	for _, row := range costs.Rows {
		key := row.Key
		if key == "" {
			key = "–"
		}
		line(key, row)
	}
	line("together", costs.Total)
	if err := w.Flush(); err != nil {
		return err
	}
	fmt.Fprintf(out, "\n%s", when)
	if costs.Total.Reserved > 0 {
		fmt.Fprintf(out, "; $%.4f more is reserved by calls that are not over", costs.Total.Reserved)
	}
	fmt.Fprintln(out)
	return nil
}

func writeBudgets(out io.Writer, budgets []budgetJSON) error {
	if len(budgets) == 0 {
		return nil
	}
	fmt.Fprintln(out)
	w := tabwriter.NewWriter(out, 0, 4, 2, ' ', 0)
	fmt.Fprintln(w, "BUDGET\tWHOSE\tUSED\t\tLEFT")
	for _, b := range budgets {
		whose := b.Whose
		if whose == "" {
			whose = "nobody's yet"
			if b.Key == "budgets.task" {
				whose = "each task"
			}
		}
		used := b.Spent + b.Reserved
		fmt.Fprintf(w, "%s\t%s\t%s\t$%.4f of $%.2f\t$%.4f\n", b.Key, whose, bar(used, b.Most), used, b.Most, b.Left)
	}
	return w.Flush()
}

// barWidth is how many signs a full bar has.
const barWidth = 20

// bar shows a share. Something is never shown as nothing, and not quite all never as all.
func bar(used, most float64) string {
	n := barWidth
	if most > 0 && used < most {
		n = min(int(used/most*barWidth), barWidth-1)
		if used > 0 {
			n = max(n, 1)
		}
	}
	if used <= 0 {
		n = 0
	}
	return "[" + strings.Repeat("#", n) + strings.Repeat("-", barWidth-n) + "]"
}
