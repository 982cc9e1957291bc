package service

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"chorus/internal/ledger"
	"chorus/internal/runsetup"
	"chorus/internal/store"
)

// BudgetUsed is the current use of one budget.
type BudgetUsed struct {
	Key      string  `json:"key"`             // in the configuration
	Subject  string  `json:"whose,omitempty"` // "": nobody has spent anything of it
	Period   string  `json:"period"`
	Spent    float64 `json:"spent"`
	Reserved float64 `json:"reserved,omitempty"`
	Most     float64 `json:"most"`
	Left     float64 `json:"left"`
}

// CostSince parses the time from which costs are counted; days and months are in UTC.
func CostSince(text string, now time.Time) (time.Time, error) {
	switch text {
	case "all":
		return time.Time{}, nil
	case "", "month":
		return ledger.Month.Begin(now), nil
	case "today":
		return ledger.Day.Begin(now), nil
	}
	for _, layout := range []string{"2006-01-02", "2006-01"} {
		if t, err := time.Parse(layout, text); err == nil {
			return t, nil
		}
	}
	const most = 100 * 366 // days
	if days, err := strconv.Atoi(strings.TrimSuffix(text, "d")); err == nil && strings.HasSuffix(text, "d") && days >= 0 && days <= most {
		return now.Add(-time.Duration(days) * 24 * time.Hour), nil
	}
	if d, err := time.ParseDuration(text); err == nil && d >= 0 {
		return now.Add(-d), nil
	}
	return time.Time{}, fmt.Errorf("invalid time %q; write 2026-11-01, 2026-11, 7d, 12h, today, month or all", text)
}

// BudgetsUsed returns the use of every budget that applies to somebody who spent something this month. Budgets that
// apply to nobody are listed as unused.
func (service *Service) BudgetsUsed(ctx context.Context, now time.Time) ([]BudgetUsed, error) {
	spenders, err := service.DB.Spenders(ctx, ledger.Month.Begin(now))
	if err != nil {
		return nil, err
	}
	bots := map[string]ledger.Budget{}
	var limits []ledger.Limit
	touched := map[ledger.Ceiling]bool{}
	for _, s := range append(spenders, store.Spender{}) {
		budget, ok := bots[s.Agent]
		if !ok {
			bot, err := service.Settings.Bot(s.Agent)
			if err != nil {
				return nil, err
			}
			budget = runsetup.BudgetOf(bot, false)
			bots[s.Agent] = budget
		}
		if s.Thread == "" { // everybody's budgets, once those of the spenders are known
			for _, c := range budget.Ceilings {
				if !touched[c] {
					limits = append(limits, ledger.Limit{Ceiling: c})
				}
			}
			continue
		}
		if under := budget.For(s.Thread, s.Agent, s.Payer, ""); under != nil {
			for _, l := range under.Limits {
				if l.Scope != ledger.Task && !slices.Contains(limits, l) {
					limits, touched[l.Ceiling] = append(limits, l), true
				}
			}
		}
	}
	slices.SortStableFunc(limits, func(x, y ledger.Limit) int { return strings.Compare(x.Key()+" "+x.Subject, y.Key()+" "+y.Subject) })
	stands, err := service.DB.Standing(ctx, limits)
	if err != nil {
		return nil, err
	}
	var out []BudgetUsed
	for _, s := range stands {
		out = append(out, BudgetUsed{s.Key(), s.Subject, string(s.Period), ledger.USD(s.Settled), ledger.USD(s.Open), ledger.USD(s.Most), ledger.USD(s.Left())})
	}
	return out, nil
}
