package watch

import (
	"context"
	"errors"
	"os"
	"time"

	"chorus/internal/background"
)

// lookForLost is how often to check whether the machine of a process that is not here is gone permanently.
const lookForLost = time.Minute

// Here reports whether a process runs on this machine, or no other machine could have it.
func (w *Watcher) Here(id string) bool {
	if w.Places == nil {
		return true
	}
	_, err := os.Stat(w.Folder(id))
	return err == nil
}

// PlaceOf returns the machine that a process runs on, or "" if it is this one or not known.
func (w *Watcher) PlaceOf(ctx context.Context, id string) (string, error) {
	if w.Here(id) {
		return "", nil
	}
	name, _, err := w.Places.PlaceOf(ctx, id)
	return name, err
}

// closeLost ends a process whose machine never came back. Its hooks do not act, because nobody has seen it end.
func (w *Watcher) closeLost(ctx context.Context, p background.Process) error {
	if now := w.Now(); now.Sub(w.placed[p.ID]) < lookForLost {
		return nil
	} else {
		w.placed[p.ID] = now
	}
	name, lost, err := w.Places.PlaceOf(ctx, p.ID)
	if err != nil || !lost {
		return err
	}
	p.State, p.Why, p.Ended = background.Lost, "its machine, "+name+", is gone", w.Now()
	closed, err := w.Store.MoveProcess(ctx, p, nil) // false: somebody else has
	if closed {
		delete(w.placed, p.ID)
		w.Log.Info("a process is lost with its machine", "component", "processes", "event", "process_lost", "process", p.ID, "thread", p.Thread, "node", name)
	}
	return err
}

// AskStop asks the machine of a process to end it.
func (w *Watcher) AskStop(ctx context.Context, id string) error { return w.Places.AskStop(ctx, id) }

// stopAsked ends the processes of this machine that another machine asked to end.
func (w *Watcher) stopAsked(ctx context.Context) error {
	if w.Places == nil || len(w.held) == 0 {
		return nil
	}
	list, err := w.Places.StopsAsked(ctx)
	failed := []error{err}
	for _, id := range list {
		one := w.held[id]
		if one == nil {
			continue
		}
		if _, err := w.Stop(one.process); err != nil {
			failed = append(failed, err)
			continue
		}
		failed = append(failed, w.Places.StopDone(ctx, id))
	}
	return errors.Join(failed...)
}
