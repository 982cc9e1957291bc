package main

import (
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"chorus/internal/app"
	"chorus/internal/service"
)

func (c *cli) costCommand() *cobra.Command {
	var q service.CostQuery
	cmd := c.jsonFlag(&cobra.Command{
		Use: "cost", Short: "What was spent, on what, and how much of the budgets is left", Args: exactly(0),
		Long: `Sums up what model calls came to. A call whose end nobody saw counts with all that
was reserved for it. Days and months are those of UTC.`,
		Example: `  chorus cost                            this month, by model
  chorus cost --by person --since 7d
  chorus cost --by day --since 2026-11`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if c.remote() {
				return c.farCosts(cmd.Context(), q)
			}
			return c.with(cmd.Context(), func(a *app.App) error {
				costs, err := a.Service.Costs(cmd.Context(), q, time.Now())
				if err != nil {
					return err
				}
				return c.tellCosts(costs)
			})
		},
	})
	cmd.Flags().StringVar(&q.By, "by", "model", "group by "+strings.Join(service.CostBy(), ", "))
	cmd.Flags().StringVar(&q.Since, "since", "month", "from when on: 2026-11-01, 2026-11, 7d, 12h, today, month or all")
	return c.serverFlags(cmd)
}

func (c *cli) tellCosts(costs service.Costs) error {
	if c.json {
		return c.printJSON(costs)
	}
	when := "so far"
	if !costs.Since.IsZero() {
		when = "since " + costs.Since.UTC().Format("2006-01-02 15:04") + " UTC"
	}
	if len(costs.Rows) == 0 {
		fmt.Fprintf(c.out(), "nothing was spent %s\n", when)
	} else if err := c.printCostTable(costs, when); err != nil {
		return err
	}
	return c.printBudgets(costs.Budgets)
}

func (c *cli) printCostTable(costs service.Costs, when string) error {
	w := tabwriter.NewWriter(c.out(), 0, 4, 2, ' ', 0)
	fmt.Fprintf(w, "%s\tSPENT\tCALLS\tIN\tOUT\tCACHED\n", strings.ToUpper(costs.By))
	line := func(key string, m service.Cost) {
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
	fmt.Fprintf(c.out(), "\n%s", when)
	if costs.Total.Reserved > 0 {
		fmt.Fprintf(c.out(), "; $%.4f more is reserved by calls that are not over", costs.Total.Reserved)
	}
	fmt.Fprintln(c.out())
	return nil
}

func (c *cli) printBudgets(budgets []service.BudgetUsed) error {
	if len(budgets) == 0 {
		return nil
	}
	fmt.Fprintln(c.out())
	w := tabwriter.NewWriter(c.out(), 0, 4, 2, ' ', 0)
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
