package agents

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"chorus/internal/digest"
)

// unwritten is the initial file of a built-in agent: it contains only what differs.
func unwritten(a Agent) Agent {
	return Agent{Name: a.Name, Permissions: a.Permissions, Tools: a.Tools, RareTools: a.RareTools}
}

// Version identifies the contents of an agent's file, so that an edit
// can be compared with the version its writer saw.
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
		return "" // what cannot be written was never seen
	}
	return digest.Of(text)[:16]
}

// Edit changes several settings at once, each as Configure does. ErrMoved means that the agent is no longer
// in the version seen, and nothing was changed. With seen "", it changes any version.
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

// Draft returns an agent as Edit would leave it, without writing anything.
func (r *Store) Draft(a Agent, values map[string]string) (Agent, error) {
	for _, key := range slices.Sorted(maps.Keys(values)) {
		if err := r.set(&a, key, values[key]); err != nil {
			return a, fmt.Errorf("agent %s: %w", a.Name, err)
		}
	}
	return a, nil
}
