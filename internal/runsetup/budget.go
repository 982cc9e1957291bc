package runsetup

import (
	"strings"

	"chorus/internal/config"
	"chorus/internal/ledger"
	"chorus/internal/provider"
)

// BudgetOf returns a bot's spending limits. With yes, where every approval is
// answered yes, nobody is asked at a soft limit either.
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

// PriceOf returns what models cost a bot: the prices in its configuration, or else those
// of the catalog. Models that run on one's own machine are free.
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
