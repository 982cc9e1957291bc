package app

import (
	"time"

	"chorus/internal/agent"
	"chorus/internal/config"
)

// patience is how long a provider is waited for; zero: as long as it thinks right.
type patience struct{ first, idle time.Duration }

func patienceOf(bot *config.Bot) patience {
	return patience{milliseconds(bot.FirstByteMS), milliseconds(bot.IdleMS)}
}

// slack lets a provider say itself that its model is silent, before the engine does.
const slack = time.Minute

// boundsOf is how long runs wait for what is outside of them; zero: the default.
func boundsOf(bot *config.Bot) agent.Bounds {
	p := patienceOf(bot)
	b := agent.Bounds{Tool: milliseconds(bot.ToolMS), Setup: milliseconds(bot.SetupMS)}
	if most := max(p.first, p.idle) + slack; most > agent.DefaultModelBound {
		b.Model = most
	}
	return b
}

func milliseconds(n int) time.Duration { return time.Duration(n) * time.Millisecond }
