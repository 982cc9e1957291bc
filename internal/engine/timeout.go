package engine

import (
	"context"
	"fmt"
	"time"

	"chorus/internal/approval"
	"chorus/internal/chat"
	"chorus/internal/journal"
	"chorus/internal/ledger"
)

// timedJournal is the journal for everybody but actors: people who say something, readers, the
// sweep. No call takes longer than the store's bound, and a call that ignores its cancellation is
// abandoned. (An actor uses its watchdog instead, which needs no goroutine per call.)
type timedJournal struct {
	inner Journal
	e     *Engine
}

var _ Journal = timedJournal{}

// within makes one call to the journal with a timeout.
func within[T any](ctx context.Context, e *Engine, f func(context.Context) (T, error)) (T, error) {
	limit := e.Bounds.Store
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("%s did not answer within %s", database, limit))
	defer cancel()
	type answer struct {
		got T
		err error
	}
	done := make(chan answer, 1)
	go func() {
		got, err := f(ctx)
		done <- answer{got, err}
	}()
	select {
	case a := <-done:
		return a.got, a.err
	case <-ctx.Done():
	}
	select {
	case a := <-done:
		if a.err != nil && context.Cause(ctx) != ctx.Err() {
			a.err = fmt.Errorf("%w (%w)", context.Cause(ctx), a.err)
		}
		return a.got, a.err
	case <-time.After(e.Bounds.Grace):
		back := e.abandoned(database)
		go func() { <-done; back() }()
		var none T
		return none, fmt.Errorf("%w, even when told to stop; the request may still take effect", context.Cause(ctx))
	}
}

func (j timedJournal) Commit(ctx context.Context, c journal.Commit) (journal.Committed, error) {
	return within(ctx, j.e, func(ctx context.Context) (journal.Committed, error) { return j.inner.Commit(ctx, c) })
}

func (j timedJournal) Arrive(ctx context.Context, a journal.Arrival) (journal.Arrived, error) {
	return within(ctx, j.e, func(ctx context.Context) (journal.Arrived, error) { return j.inner.Arrive(ctx, a) })
}

func (j timedJournal) Take(ctx context.Context, thread chat.ThreadID) (journal.Thread, error) {
	return within(ctx, j.e, func(ctx context.Context) (journal.Thread, error) { return j.inner.Take(ctx, thread) })
}

func (j timedJournal) SaveSnapshot(ctx context.Context, s journal.Snapshot) error {
	_, err := within(ctx, j.e, func(ctx context.Context) (struct{}, error) { return struct{}{}, j.inner.SaveSnapshot(ctx, s) })
	return err
}

func (j timedJournal) Thread(ctx context.Context, thread chat.ThreadID) (journal.Thread, error) {
	return within(ctx, j.e, func(ctx context.Context) (journal.Thread, error) { return j.inner.Thread(ctx, thread) })
}

func (j timedJournal) Events(ctx context.Context, thread chat.ThreadID, after int64, limit int) ([]chat.Event, error) {
	return within(ctx, j.e, func(ctx context.Context) ([]chat.Event, error) { return j.inner.Events(ctx, thread, after, limit) })
}

func (j timedJournal) Snapshot(ctx context.Context, thread chat.ThreadID, codec string) (journal.Snapshot, error) {
	return within(ctx, j.e, func(ctx context.Context) (journal.Snapshot, error) { return j.inner.Snapshot(ctx, thread, codec) })
}

func (j timedJournal) Blob(ctx context.Context, hash string) ([]byte, error) {
	return within(ctx, j.e, func(ctx context.Context) ([]byte, error) { return j.inner.Blob(ctx, hash) })
}

func (j timedJournal) ActiveThreads(ctx context.Context) ([]journal.Thread, error) {
	return within(ctx, j.e, j.inner.ActiveThreads)
}

func (j timedJournal) DataVersion(ctx context.Context) (int64, error) {
	return within(ctx, j.e, j.inner.DataVersion)
}

func (j timedJournal) LastRun(ctx context.Context, thread chat.ThreadID) (string, error) {
	return within(ctx, j.e, func(ctx context.Context) (string, error) { return j.inner.LastRun(ctx, thread) })
}

func (j timedJournal) PendingPrompts(ctx context.Context, thread chat.ThreadID) ([]int64, error) {
	return within(ctx, j.e, func(ctx context.Context) ([]int64, error) { return j.inner.PendingPrompts(ctx, thread) })
}

func (j timedJournal) Approval(ctx context.Context, id string) (approval.Approval, error) {
	return within(ctx, j.e, func(ctx context.Context) (approval.Approval, error) { return j.inner.Approval(ctx, id) })
}

func (j timedJournal) Approvals(ctx context.Context, f approval.Filter) ([]approval.Approval, error) {
	return within(ctx, j.e, func(ctx context.Context) ([]approval.Approval, error) { return j.inner.Approvals(ctx, f) })
}

func (j timedJournal) Overdue(ctx context.Context, now time.Time) ([]approval.Approval, error) {
	return within(ctx, j.e, func(ctx context.Context) ([]approval.Approval, error) { return j.inner.Overdue(ctx, now) })
}

func (j timedJournal) RunCost(ctx context.Context, run string) (ledger.Nanos, error) {
	return within(ctx, j.e, func(ctx context.Context) (ledger.Nanos, error) { return j.inner.RunCost(ctx, run) })
}
