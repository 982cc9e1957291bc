package display

import (
	"cmp"
	"strings"

	"chorus/internal/operations"
)

// BudgetBar is a budget and how much of it is used, as drawn.
type BudgetBar struct {
	Name, Per   string
	Spent, Most float64
	Warn        float64 // from here on people are asked whether to continue
	Percent     int
	State       string // "", near or over
}

// Budget describes a budget. Its name says in words whose it is, based on its configuration key.
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

// budgetName says whose a budget is: "budgets.agent.month chorus" is "Agent chorus".
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

// Channel names a channel for people, with its owner if known.
func Channel(names map[string]string, key string) string {
	transport, place, _ := strings.Cut(key, ":")
	if _, id, _ := strings.Cut(place, "/"); names[id] != "" {
		return transport + ", " + names[id]
	}
	return cmp.Or(ShortIDs(key), "—")
}
