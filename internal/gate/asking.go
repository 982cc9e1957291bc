package gate

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"chorus/internal/config"
	"chorus/internal/engine"
	"chorus/internal/journal"
	"chorus/internal/sandbox/process"
)

// Asking returns how people are asked about what a thread does. On a terminal, approvals have no
// deadline unless one is configured, because somebody sits there and sees them.
func (g *Gate) Asking(row journal.Thread, bot *config.Bot, profile string) (engine.Asking, error) {
	out := engine.Asking{Env: g.variables()}
	out.Who, _ = bot.Asked(profile, "by")
	for what, into := range map[string]*time.Duration{"deadline": &out.For, "remind": &out.Remind} {
		text, set := bot.Asked(profile, what)
		if row.ID.Transport() == "cli" && !set {
			continue
		}
		d, err := config.HowLong(text)
		if err != nil {
			return out, fmt.Errorf("approvals: %s %w", what, err)
		}
		*into = d
	}
	return out, nil
}

// variables lists the names of the environment variables that commands get.
func (g *Gate) variables() []string {
	var out []string
	for _, entry := range process.Environ(g.Environ) {
		name, _, _ := strings.Cut(entry, "=")
		out = append(out, name)
	}
	slices.Sort(out)
	return slices.Compact(out)
}
