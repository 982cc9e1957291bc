package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"chorus/internal/chat"
	"chorus/internal/journal"
	"chorus/internal/owner"
	"chorus/internal/transcript"
)

// ErrBusy means that the thread is running, here or in another process.
var ErrBusy = errors.New("the thread is running")

// Trim leaves out the older part of an idle thread's window: everything before
// its last n prompts. With n 0 it replaces everything with a summary made
// without a model. Nothing is lost from the journal.
func (e *Engine) Trim(ctx context.Context, thread chat.ThreadID, n int) error {
	err := e.rewrite(ctx, thread, func(log *transcript.Log) ([]chat.Body, []chat.Blob) {
		if body := trimmed(log, n); body != nil {
			return []chat.Body{body}, nil
		}
		return nil, nil
	})
	if err != nil {
		return fmt.Errorf("trim %s: %w", thread, err)
	}
	return nil
}

// Clear empties an idle thread's window and returns how many messages it had. Nothing is
// lost from the journal, and waiting prompts are still answered.
func (e *Engine) Clear(ctx context.Context, thread chat.ThreadID, by string) (messages int, err error) {
	err = e.rewrite(ctx, thread, func(log *transcript.Log) ([]chat.Body, []chat.Blob) {
		if messages = log.Shown(); messages == 0 {
			return nil, nil
		}
		return []chat.Body{chat.Cleared{UpTo: log.Places(), By: by}}, nil
	})
	if err != nil {
		return 0, fmt.Errorf("clear %s: %w", thread, err)
	}
	return messages, nil
}

// Replace replaces an idle thread's window with other lines.
func (e *Engine) Replace(ctx context.Context, thread chat.ThreadID, by, source string, lines []chat.Line) error {
	data, err := json.Marshal(lines)
	if err != nil {
		return fmt.Errorf("replace the window of %s: %w", thread, err)
	}
	blob := chat.NewBlob(data)
	err = e.rewrite(ctx, thread, func(log *transcript.Log) ([]chat.Body, []chat.Blob) {
		return []chat.Body{chat.Cleared{UpTo: log.Places(), By: by}, chat.Imported{Source: source, Blob: blob.Hash, Count: len(lines)}}, []chat.Blob{blob}
	})
	if err != nil {
		return fmt.Errorf("replace the window of %s: %w", thread, err)
	}
	return nil
}

// rewrite takes an idle thread and writes the changes that change makes to its window.
func (e *Engine) rewrite(ctx context.Context, thread chat.ThreadID, change func(*transcript.Log) ([]chat.Body, []chat.Blob)) error {
	held, err := e.waitForLock(ctx, thread)
	if err != nil {
		return err
	}
	defer held.Release()
	row, err := e.timed.Take(ctx, thread)
	if err != nil {
		return err
	}
	log, err := Load(ctx, e.timed, thread)
	if err != nil {
		return err
	}
	if err := fold(ctx, e.timed, thread, log, func() {}); err != nil {
		return err
	}
	if log.Run() != nil {
		return ErrBusy
	}
	bodies, blobs := change(log)
	if len(bodies) == 0 {
		return nil
	}
	c := journal.Commit{Thread: thread, Epoch: row.Epoch, Expect: log.Seq() + 1, Blobs: blobs}
	for _, body := range bodies {
		c.Events = append(c.Events, chat.Event{Thread: thread, Body: body})
	}
	done, err := e.timed.Commit(ctx, c)
	if err != nil {
		return err
	}
	e.moved(thread, done.Events)
	return nil
}

// lockWait is how long to wait for a lock. An actor releases it a moment after its run has ended.
const lockWait = time.Second

func (e *Engine) waitForLock(ctx context.Context, thread chat.ThreadID) (owner.Held, error) {
	within, cancel := context.WithTimeout(ctx, lockWait)
	defer cancel()
	tick := time.NewTicker(lockWait / 100)
	defer tick.Stop()
	for {
		held, err := e.Owner.Take(ctx, owner.Thread(thread))
		if !errors.Is(err, owner.ErrHeld) {
			return held, err
		}
		select {
		case <-within.Done():
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
