package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"chorus/internal/chat"
	"chorus/internal/journal"
	"chorus/internal/transcript"
)

// ErrBusy: the thread is running, here or in another process.
var ErrBusy = errors.New("the thread is running")

// Trim leaves out the older part of an idle thread's window: everything before
// its last n prompts, or, with n 0, everything, for a summary made without a model.
// Nothing is lost from the journal.
func (e *Engine) Trim(ctx context.Context, thread chat.ThreadID, n int) error {
	held, err := e.patientLock(ctx, thread)
	if err != nil {
		return err
	}
	defer held.release()
	row, err := e.quick.Take(ctx, thread)
	if err != nil {
		return err
	}
	log, err := Load(ctx, e.quick, thread)
	if err != nil {
		return err
	}
	if err := fold(ctx, e.quick, thread, log, func() {}); err != nil {
		return err
	}
	if log.Run() != nil {
		return fmt.Errorf("trim %s: %w", thread, ErrBusy)
	}
	body := trimmed(log, n)
	if body == nil {
		return nil
	}
	done, err := e.quick.Commit(ctx, journal.Commit{Thread: thread, Epoch: row.Epoch, Expect: log.Seq() + 1,
		Events: []chat.Event{{Thread: thread, Body: body, At: time.Time{}}}})
	if err != nil {
		return fmt.Errorf("trim %s: %w", thread, err)
	}
	e.moved(thread, done.Events)
	return nil
}

// patience is how long a lock is waited for: an actor lets go of it a moment after
// its run's end.
const patience = time.Second

func (e *Engine) patientLock(ctx context.Context, thread chat.ThreadID) (*lock, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	tick := time.NewTicker(patience / 100)
	defer tick.Stop()
	for {
		held, err := takeLock(e.LockDir, thread)
		if !errors.Is(err, errHeld) {
			return held, err
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("thread %s: %w (%w)", thread, ErrBusy, err)
		case <-tick.C:
		}
	}
}

func trimmed(log *transcript.Log, n int) chat.Body {
	if n == 0 {
		if log.Places() == 0 {
			return nil
		}
		read, modified := log.Files()
		cut := transcript.Cut{UpTo: log.Places(), Old: log.Messages()}
		return chat.Compacted{UpTo: cut.UpTo, Summary: log.Mechanical(log.Seq(), cut), How: "mechanical", Read: read, Modified: modified, Tokens: log.Tokens()}
	}
	from := log.PromptPlace(n)
	if from <= 1 {
		return nil
	}
	return chat.Rolled{KeepFrom: from, Because: fmt.Sprintf("resumed with the last %d prompts", n)}
}
