package provider

import (
	"chorus/internal/agent"
	"chorus/internal/config"
	"time"
)

// patience is how long a provider is waited for; zero: as long as it thinks right.
type patience struct{ first, idle time.Duration }

func PatienceOf(bot *config.Bot) patience {
	return patience{Milliseconds(bot.FirstByteMS), Milliseconds(bot.IdleMS)}
}

// slack lets a provider say itself that its model is silent, before the engine does.
const slack = time.Minute

// BoundsOf is how long runs wait for what is outside of them; zero: the default.
func BoundsOf(bot *config.Bot) agent.Bounds {
	p := PatienceOf(bot)
	b := agent.Bounds{Tool: Milliseconds(bot.ToolMS), Setup: Milliseconds(bot.SetupMS)}
	if most := max(p.first, p.idle) + slack; most > agent.DefaultModelBound {
		b.Model = most
	}
	return b
}

func Milliseconds(n int) time.Duration { return time.Duration(n) * time.Millisecond }
