// Package record writes what a run decides into the journal, and folds the result into
// the log from which the run decides next. The log always matches the journal, even after
// a commit that was refused because others had written.
package record

import (
	"context"
	"errors"
	"slices"

	"chorus/internal/chat"
	"chorus/internal/journal"
	"chorus/internal/transcript"
)

// Batch is written in one commit.
type Batch struct {
	Events []chat.Event
	Blobs  []chat.Blob
	Next   bool             // its events must follow the last event the run has seen
	Beside []journal.Commit // commits to other threads, made together with it
}

// Committer makes a batch durable; see agent.Host.
type Committer interface {
	Commit(ctx context.Context, b Batch) ([]chat.Event, error)
}

// Recorder writes for one run. It is used from one goroutine.
type Recorder struct {
	log  *transcript.Log
	to   Committer
	held *held
}

// held is the last result of an answer. The request that shows it follows at once, so the
// two are written together. Until then, the log supposes the result.
type held struct {
	batch    Batch
	takeBack func()
}

// New returns a recorder. The log must be folded up to the committer's last event.
func New(log *transcript.Log, to Committer) *Recorder { return &Recorder{log: log, to: to} }

// Write commits these events.
func (r *Recorder) Write(ctx context.Context, bodies ...chat.Body) error {
	var b Batch
	for _, body := range bodies {
		b.Events = append(b.Events, chat.Event{Body: body})
	}
	return r.Commit(ctx, b)
}

// Hold keeps a result for the next commit and lets the log suppose it.
func (r *Recorder) Hold(b Batch, ran chat.ToolRan) { r.held = &held{b, r.log.Suppose(ran)} }

// Release writes a held result that no other commit included.
func (r *Recorder) Release(ctx context.Context) error {
	if r.held == nil {
		return nil
	}
	h := r.held
	r.held = nil
	h.takeBack()
	return r.Commit(ctx, h.batch)
}

// Commit writes a batch, with the held result if there is one, and folds the events. If the thread
// has moved, Commit folds the new events and fails with journal.ErrMoved.
func (r *Recorder) Commit(ctx context.Context, b Batch) error {
	if r.held != nil {
		return r.commitHeld(ctx, b)
	}
	r.sign(b.Events)
	events, err := r.to.Commit(ctx, b)
	return r.fold(events, err)
}

// commitHeld includes the held result. If something came in between, or a budget forbids what
// it was held for, the result is written by itself, after the new events.
func (r *Recorder) commitHeld(ctx context.Context, b Batch) error {
	h := r.held
	first := len(h.batch.Events)
	both := Batch{Events: slices.Concat(h.batch.Events, b.Events), Blobs: slices.Concat(h.batch.Blobs, b.Blobs), Next: true, Beside: slices.Concat(h.batch.Beside, b.Beside)}
	r.sign(both.Events)
	events, err := r.to.Commit(ctx, both)
	r.held = nil
	if err == nil {
		return r.fold(events[first:], nil)
	}
	h.takeBack()
	if !errors.Is(err, journal.ErrMoved) && !errors.Is(err, journal.ErrBudget) {
		return err
	}
	if ferr := r.fold(events, nil); ferr != nil {
		return ferr
	}
	if werr := r.Commit(ctx, h.batch); werr != nil {
		return werr
	}
	return err
}

// sign sets the run of events.
func (r *Recorder) sign(events []chat.Event) {
	run := ""
	if cur := r.log.Run(); cur != nil {
		run = cur.ID
	}
	for i := range events {
		// A refused prompt belongs to no run.
		if _, refused := events[i].Body.(chat.Refused); events[i].Run == "" && !refused {
			events[i].Run = run
		}
	}
}

func (r *Recorder) fold(events []chat.Event, err error) error {
	for _, ev := range events {
		if ferr := r.log.Apply(ev); ferr != nil {
			return ferr
		}
	}
	return err
}
