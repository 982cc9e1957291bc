package display

import (
	"cmp"
	"strings"

	"chorus/internal/operations"
)

// BudgetBar is a ceiling with how near it is, as it is drawn.
type BudgetBar struct {
	Name, Per   string
	Spent, Most float64
	Warn        float64 // from here on people are asked whether to go on
	Percent     int
	State       string // "", near or over
}

// Budget is the bar of a budget. Its name says whose it is in words: the key of the configuration is behind them.
func Budget(names map[string]string, b operations.Budget) BudgetBar {
	bar := BudgetBar{Name: budgetName(names, b.Name), Per: b.Per, Spent: b.Spent, Most: cmp.Or(b.Hard, b.Soft), Warn: cmp.Or(b.Soft, b.Hard)}
	bar.Percent = Percent(int(b.Spent*1e6), int(bar.Most*1e6))
	switch {
	case b.Spent >= bar.Most:
		bar.State = "over"
	case b.Spent >= bar.Warn:
		bar.State = "near"
	}
	return bar
}

// budgetName says whose a budget is: of "budgets.agent.month chorus" it is "Agent chorus".
func budgetName(names map[string]string, name string) string {
	key, whose, _ := strings.Cut(name, " ")
	parts := strings.Split(key, ".")
	if len(parts) < 2 || parts[0] != "budgets" {
		return name
	}
	what := map[string]string{"guild": "server", "channel": "channel", "agent": "agent", "person": "person", "task": "task"}[parts[1]]
	if parts[1] == "role" && len(parts) > 2 {
		what = "person with the role " + parts[2]
	}
	switch {
	case what == "":
		return name
	case whose == "":
		return "Each " + what
	case parts[1] == "channel":
		whose = Channel(names, whose)
	case parts[1] == "person" || parts[1] == "role":
		whose = Who(names, whose)
	}
	return strings.ToUpper(what[:1]) + what[1:] + " " + whose
}

// Channel is a channel for people: whose it is where that is known.
func Channel(names map[string]string, key string) string {
	transport, place, _ := strings.Cut(key, ":")
	if _, id, _ := strings.Cut(place, "/"); names[id] != "" {
		return transport + ", " + names[id]
	}
	return cmp.Or(ShortIDs(key), "—")
}
