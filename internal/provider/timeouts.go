package provider

import (
	"time"

	"chorus/internal/agent/deadline"
	"chorus/internal/config"
)

// Timeouts are how long to wait for a provider; zero means the provider's own default.
type Timeouts struct{ FirstByte, Idle time.Duration }

// TimeoutsOf returns the configured timeouts.
func TimeoutsOf(bot *config.Bot) Timeouts {
	return Timeouts{Milliseconds(bot.FirstByteMS), Milliseconds(bot.IdleMS)}
}

// slack lets a provider report that its model is silent before the engine does.
const slack = time.Minute

// BoundsOf returns how long runs wait for things outside them; zero means the default.
func BoundsOf(bot *config.Bot) deadline.Bounds {
	t := TimeoutsOf(bot)
	b := deadline.Bounds{Tool: Milliseconds(bot.ToolMS), Setup: Milliseconds(bot.SetupMS)}
	if most := max(t.FirstByte, t.Idle) + slack; most > deadline.Defaults().Model {
		b.Model = most
	}
	return b
}

// Milliseconds converts a configured number to a duration.
func Milliseconds(n int) time.Duration { return time.Duration(n) * time.Millisecond }
