package agents

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"time"
)

// unwritten is what the file of an agent that is built in begins with: it says only what is different.
func unwritten(a Agent) Agent {
	return Agent{Name: a.Name, Permissions: a.Permissions, Tools: a.Tools, RareTools: a.RareTools}
}

// Version names what an agent's file says, so that an edit can be held against what its writer looked at.
func (r *Store) Version(a Agent) string {
	if !exists(r.file(a.Name)) {
		a = unwritten(a)
	}
	return versionOf(a)
}

func versionOf(a Agent) string {
	a.CreatedAt = time.Time{}
	text, err := a.MarshalJSON()
	if err != nil {
		return "" // what cannot be written was never looked at
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:8])
}

// Edit changes several settings at once, as Configure does each. ErrMoved: the agent is not of the version seen any more, and
// nothing was changed; "": whatever is there is changed.
func (r *Store) Edit(ctx context.Context, name, seen string, values map[string]string) (Agent, error) {
	return r.change(ctx, name, func(a *Agent) error {
		if seen != "" && versionOf(*a) != seen {
			return ErrMoved
		}
		for _, key := range slices.Sorted(maps.Keys(values)) {
			if err := r.set(a, key, values[key]); err != nil {
				return err
			}
		}
		return nil
	})
}

// Draft is an agent as Edit would leave it; nothing is written.
func (r *Store) Draft(a Agent, values map[string]string) (Agent, error) {
	for _, key := range slices.Sorted(maps.Keys(values)) {
		if err := r.set(&a, key, values[key]); err != nil {
			return a, fmt.Errorf("agent %s: %w", a.Name, err)
		}
	}
	return a, nil
}
