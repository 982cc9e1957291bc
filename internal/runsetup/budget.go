package runsetup

import (
	"strings"

	"chorus/internal/config"
	"chorus/internal/ledger"
	"chorus/internal/provider"
)

// BudgetOf are the ceilings of a bot. Whoever has every approval answered yes is not
// asked at a soft limit either.
func BudgetOf(bot *config.Bot, yes bool) ledger.Budget {
	var out ledger.Budget
	if !yes {
		out.Soft = bot.BudgetSoft
	}
	for _, b := range bot.Budgets {
		out.Ceilings = append(out.Ceilings, ledger.Ceiling{Scope: ledger.Scope(b.Scope), Role: b.Role, Period: ledger.Period(b.Period), Most: ledger.FromUSD(b.USD)})
	}
	if bot.BudgetTask != nil {
		out.Ceilings = append(out.Ceilings, ledger.Ceiling{Scope: ledger.Task, Period: ledger.Once, Most: ledger.FromUSD(*bot.BudgetTask)})
	}
	return out
}

// PriceOf is what models cost a bot: what its configuration says, else the catalog.
// What runs on one's own machine is free.
func PriceOf(models *provider.Models, bot *config.Bot) func(string) (ledger.Price, int) {
	return func(name string) (ledger.Price, int) {
		price, most := models.Price(name)
		own, ok := bot.Prices[name]
		if _, behind, _ := strings.Cut(name, "/"); !ok {
			own, ok = bot.Prices[behind]
		}
		switch {
		case ok:
			price = ledger.Price{Input: ledger.PerMillion(own.Input), Output: ledger.PerMillion(own.Output),
				CacheRead: ledger.PerMillion(own.CacheRead), CacheWrite: ledger.PerMillion(own.CacheWrite)}
			price.Free = !price.Known()
		case !price.Known():
			_, v, err := models.Choose(name)
			price.Free = err == nil && v.Provider().Free()
		}
		return price, most
	}
}
