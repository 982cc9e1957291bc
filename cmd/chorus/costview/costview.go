// Package costview shows spending and remaining budgets, as tables with bars for people and as JSON for scripts.
package costview

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"chorus/internal/chat"
	"chorus/internal/operations"
	"chorus/internal/text"
	"chorus/internal/transport/cli"
)

// Costs are costs in JSON. Amounts are in US dollars.
type Costs struct {
	By      string    `json:"by"`
	Since   time.Time `json:"since,omitzero"` // UTC; zero: all time
	Rows    []cost    `json:"rows"`
	Total   cost      `json:"total"`
	Budgets []budget  `json:"budgets,omitempty"`
}

type cost struct {
	Key      string     `json:"key"`
	Calls    int        `json:"calls"`
	Spent    float64    `json:"spent"`
	Reserved float64    `json:"reserved,omitempty"` // by calls that have not ended
	Usage    chat.Usage `json:"usage"`
}

type budget struct {
	Key      string  `json:"key"`             // configuration key
	Whose    string  `json:"whose,omitempty"` // "": nobody has spent any of it
	Period   string  `json:"period"`
	Spent    float64 `json:"spent"`
	Reserved float64 `json:"reserved,omitempty"`
	Most     float64 `json:"most"`
	Left     float64 `json:"left"`
}

// Of converts costs for scripts.
func Of(costs operations.Costs) Costs {
	out := Costs{By: costs.By, Since: costs.Since, Rows: []cost{}}
	for _, r := range costs.Rows {
		row := cost{Key: r.Key, Calls: r.Calls, Spent: r.Dollars, Reserved: r.Reserved,
			Usage: chat.Usage{Input: r.InputTokens, Output: r.OutputTokens, CacheRead: r.CacheReadTokens, CacheWrite: r.CacheWriteTokens}}
		out.Rows = append(out.Rows, row)
		out.Total.Calls, out.Total.Usage, out.Total.Reserved = out.Total.Calls+row.Calls, out.Total.Usage.Plus(row.Usage), out.Total.Reserved+row.Reserved
	}
	out.Total.Spent = costs.Total
	for _, b := range costs.Budgets {
		key, whose, _ := strings.Cut(b.Name, " ")
		out.Budgets = append(out.Budgets, budget{Key: key, Whose: whose, Period: b.Per, Spent: b.Spent - b.Reserved, Reserved: b.Reserved,
			Most: b.Hard, Left: max(0, b.Hard-b.Spent)})
	}
	return out
}

// Show prints costs as a table, and the budgets.
func Show(v cli.View, costs Costs) error {
	when := "so far"
	if !costs.Since.IsZero() {
		when = "since " + costs.Since.UTC().Format("2006-01-02 15:04") + " UTC"
	}
	if len(costs.Rows) == 0 {
		fmt.Fprintf(v.Out, "nothing was spent %s\n", when)
	} else if err := writeTable(v, costs, when); err != nil {
		return err
	}
	return writeBudgets(v, costs.Budgets)
}

func writeTable(v cli.View, costs Costs, when string) error {
	w := v.Columns()
	share, of := shares(costs)
	head := fmt.Sprintf("%s\tSPENT\tCALLS\tIN\tOUT\tCACHED", strings.ToUpper(costs.By))
	if v.Width > 0 {
		head += "\tOF " + of // no wider than the bars below it
	}
	fmt.Fprintln(w, head)
	line := func(key string, m cost) {
		row := fmt.Sprintf("%s\t%s\t%d\t%d\t%d\t%d", key, text.Dollars(m.Spent), m.Calls, m.Usage.Input+m.Usage.CacheWrite, m.Usage.Output, m.Usage.CacheRead)
		if v.Width > 0 { // people see a chart; scripts count columns
			row += "\t" + bar(share(m), share(costs.Total), barWidth/2)
		}
		fmt.Fprintln(w, row)
	}
	for _, row := range costs.Rows {
		key := cmp.Or(row.Key, "–")
		if id := chat.ThreadID(key); v.Width > 0 && costs.By == "thread" && id.Thread() != "" {
			key = id.Thread() // the start of a session id works wherever an id does
		}
		line(key, row)
	}
	line("together", costs.Total)
	if err := w.Flush(); err != nil {
		return err
	}
	fmt.Fprintf(v.Out, "\n%s", when)
	if costs.Total.Reserved > 0 {
		fmt.Fprintf(v.Out, "; %s more is reserved by unfinished calls", text.Dollars(costs.Total.Reserved))
	}
	fmt.Fprintln(v.Out)
	return nil
}

// shares chooses what the chart compares: dollars or, if nothing was spent (free models), tokens.
func shares(costs Costs) (share func(cost) float64, of string) {
	if costs.Total.Spent > 0 {
		return func(m cost) float64 { return m.Spent }, "DOLLARS"
	}
	return func(m cost) float64 { return float64(m.Usage.Total()) }, "TOKENS"
}

func writeBudgets(v cli.View, budgets []budget) error {
	if len(budgets) == 0 {
		return nil
	}
	fmt.Fprintln(v.Out)
	w, signs := v.Columns(), barWidth
	if v.Width > 0 && v.Width < 100 {
		signs /= 2
	}
	fmt.Fprintln(w, "BUDGET\tWHOSE\tUSED\t\tLEFT")
	for _, b := range budgets {
		whose := b.Whose
		if whose == "" {
			whose = "nobody yet"
			if b.Key == "budgets.task" {
				whose = "each task"
			}
		}
		used := b.Spent + b.Reserved
		fmt.Fprintf(w, "%s\t%s\t%s\t%s of %s\t%s\n", b.Key, whose, bar(used, b.Most, signs), text.Dollars(used), text.Dollars(b.Most), text.Dollars(b.Left))
	}
	return w.Flush()
}

// barWidth is the width of a full bar if there is room.
const barWidth = 20

// bar draws a share. A nonzero share never looks empty, and an incomplete one never looks full.
func bar(used, most float64, signs int) string {
	n := signs
	if most > 0 && used < most {
		n = min(int(used/most*float64(signs)), signs-1)
		if used > 0 {
			n = max(n, 1)
		}
	}
	if used <= 0 {
		n = 0
	}
	return "[" + strings.Repeat("#", n) + strings.Repeat("-", signs-n) + "]"
}
