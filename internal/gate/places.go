package gate

import (
	"context"
	"errors"
	"slices"

	"chorus/internal/chat"
	"chorus/internal/journal"
	"chorus/internal/operation"
	"chorus/internal/transcript"
)

// MayWork refuses a run in a folder in which those on whose words it works may not have an agent work. The person at
// the terminal and admins may anywhere; all others, also schedules, only where Settings.CheckPlace allows.
func (g *Gate) MayWork(ctx context.Context, row journal.Thread, senders []transcript.Sender) error {
	for _, s := range senders {
		for _, at := range s.Principal.Everybody() {
			free, err := g.worksAnywhere(ctx, at)
			if err != nil {
				return err
			}
			if free {
				continue
			}
			if at.Kind == chat.ScheduleRule {
				return g.Settings.CheckScheduledPlace(row.ID, row.Dir)
			}
			return g.Settings.CheckPlace(row.ID, row.Dir)
		}
	}
	return nil
}

// worksAnywhere reports whether a principal by itself is bound to no places.
func (g *Gate) worksAnywhere(ctx context.Context, p chat.Principal) (bool, error) {
	switch {
	case p.Owns(), p.Kind == chat.TheSystem:
		return true, nil
	case p.Kind == chat.OtherAgent || p.Kind == chat.TaskWorker || p.Kind == chat.ProcessHook:
		return p.For != nil, nil // as bound as whoever it acts for
	case p.Kind != chat.TokenHolder:
		return false, nil
	}
	token, err := g.DB.TokenByID(ctx, p.ID)
	if errors.Is(err, journal.ErrUnknown) {
		return false, nil
	}
	return slices.Contains(token.Scopes, string(operation.Admin)), err
}
