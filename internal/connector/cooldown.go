package connector

import (
	"slices"
	"strings"
	"sync"
	"time"

	"chorus/internal/room"
)

// signLater marks a message of somebody who asks again too soon.
const signLater = "⏳"

// maxCooldowns limits how many are remembered; above it, expired ones are removed.
const maxCooldowns = 10_000

// Blocks reports whether the agent ignores somebody.
func (l Listener) Blocks(a room.Author) bool {
	return slices.ContainsFunc(l.Blocked, func(who string) bool {
		who = strings.TrimPrefix(who, "@")
		return who == a.ID || strings.EqualFold(who, a.Name) || a.Webhook != "" && who == a.Webhook
	})
}

// cooldowns are when people were last answered, by agent. They use the platform's
// times, so that a message that is read again after a restart or a gap gets the same result.
type cooldowns struct {
	mu   sync.Mutex
	last map[string]asked
}

type asked struct {
	message string
	at      time.Time
	wait    time.Duration
}

// ask reports whether a message is to be answered, and if so starts the wait for the next one.
func (c *cooldowns) ask(agent string, m room.Message, wait time.Duration) bool {
	if wait <= 0 {
		return true
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.last == nil {
		c.last = map[string]asked{}
	}
	key := agent + "/" + m.Author.Webhook + "/" + m.Author.ID
	before, known := c.last[key]
	if known && before.message != m.ID && m.At.Sub(before.at) < wait {
		return false
	}
	if len(c.last) >= maxCooldowns {
		for other, a := range c.last {
			if m.At.Sub(a.at) >= a.wait {
				delete(c.last, other)
			}
		}
	}
	c.last[key] = asked{m.ID, m.At, wait}
	return true
}
