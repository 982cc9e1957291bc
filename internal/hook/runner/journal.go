package runner

import (
	"context"
	"errors"
	"fmt"
	"time"

	"chorus/internal/bus"
	"chorus/internal/chat"
	"chorus/internal/feed"
	"chorus/internal/hook"
	"chorus/internal/journal"
)

// Reader is the name under which the journal's source stores its positions.
const Reader = "hooks"

// JournalStore is the part of the store that the journal's source reads.
type JournalStore interface {
	ThreadsSince(ctx context.Context, reader string, mark int64, since time.Time) ([]chat.ThreadID, int64, error)
	Reader(ctx context.Context, name string, thread chat.ThreadID) (int64, error)
	MoveReader(ctx context.Context, name string, thread chat.ThreadID, seq int64) error
	Events(ctx context.Context, thread chat.ThreadID, after int64, limit int) ([]chat.Event, error)
	RunStarted(ctx context.Context, thread chat.ThreadID, run string) (chat.RunStarted, error)
}

// Journal is the source of the journal's events, with the names of the event stream.
type Journal struct {
	db     JournalStore
	news   *bus.Subscription
	mark   int64
	places map[chat.ThreadID]int64
}

// JournalTypes returns the event types of the journal.
func JournalTypes() []string {
	out := make([]string, 0, 14)
	for _, t := range []feed.Type{feed.TypeSessionStarted, feed.TypeRunStarted, feed.TypeUserMessage, feed.TypeAssistantMessage, feed.TypeRefused, feed.TypeCleared,
		feed.TypeToolCall, feed.TypeToolResult, feed.TypeApprovalRequired, feed.TypeApprovalResolved, feed.TypeSteered, feed.TypeCompacted, feed.TypeCompleted, feed.TypeError} {
		out = append(out, string(t))
	}
	return out
}

// NewJournal returns the source for a journal. The bus wakes it.
func NewJournal(db JournalStore, b *bus.Bus) *Journal {
	return &Journal{db: db, news: b.SubscribeAllProcesses(), places: map[chat.ThreadID]int64{}}
}

var _ Source = (*Journal)(nil)

// Wake implements Source.
func (j *Journal) Wake() <-chan struct{} { return j.news.Wake() }

// Close ends its subscription.
func (j *Journal) Close() { j.news.Close() }

// Pass implements Source.
func (j *Journal) Pass(ctx context.Context) error {
	j.news.Take()
	if j.mark != 0 {
		clear(j.places)
		j.mark = 0 // the first hook to exist determines when events begin to count
	}
	return nil
}

// maxPlaces limits how many positions are remembered; for other threads the stored position is used.
const maxPlaces = 10_000

// Read implements Source.
func (j *Journal) Read(ctx context.Context, since time.Time, take func(Happened) error) error {
	j.news.Take()
	threads, mark, err := j.db.ThreadsSince(ctx, Reader, j.mark, since)
	if err != nil {
		return err
	}
	for _, thread := range threads {
		if err := j.thread(ctx, thread, since, take); err != nil {
			return err
		}
	}
	j.mark = mark
	return nil
}

func (j *Journal) thread(ctx context.Context, thread chat.ThreadID, since time.Time, take func(Happened) error) error {
	place, known := j.places[thread]
	if !known {
		var err error
		if place, err = j.db.Reader(ctx, Reader, thread); err != nil {
			return err
		}
	}
	for {
		events, err := j.db.Events(ctx, thread, place, 0)
		if err != nil {
			return err
		}
		ended := false
		for _, ev := range events {
			if !ev.At.Before(since) {
				if err := take(j.happened(ctx, ev)); err != nil {
					return err
				}
			}
			place = ev.Seq
			_, end := ev.Body.(chat.RunEnded)
			ended = ended || end
		}
		if ended { // this need not be exact: what triggers nothing may be read again
			if err := j.db.MoveReader(ctx, Reader, thread, place); err != nil && !errors.Is(err, journal.ErrUnknown) {
				return err
			}
		}
		if len(events) == 0 {
			break
		}
	}
	if len(j.places) >= maxPlaces {
		clear(j.places)
	}
	j.places[thread] = place
	return nil
}

func (j *Journal) happened(ctx context.Context, ev chat.Event) Happened {
	out := Happened{Reader: Reader, Thread: ev.Thread, Seq: ev.Seq, Cause: func() (chat.Principal, error) { return j.cause(ctx, ev) }}
	for i, item := range feed.Translate(ev, feed.Options{}) {
		head := item.Header()
		if head.Type == feed.TypeTrace {
			continue
		}
		data, err := feed.Encode(item)
		if err != nil {
			continue // cannot happen with types that can be encoded
		}
		out.Events = append(out.Events, hook.Event{Key: fmt.Sprintf("%s/%d/%d", ev.Thread, ev.Seq, i), Type: string(head.Type), At: ev.At, Thread: ev.Thread,
			Data: hook.BoundData(data, map[string]string{"agent": ev.Thread.Agent(), "thread": string(ev.Thread)})})
	}
	return out
}

// cause returns the authority on which something happened.
func (j *Journal) cause(ctx context.Context, ev chat.Event) (chat.Principal, error) {
	switch b := ev.Body.(type) {
	case chat.Received:
		return b.Principal, nil
	case chat.Steered:
		return b.Principal, nil
	case chat.RunStarted:
		return b.Principal, nil
	}
	run := ev.Run
	if b, ok := ev.Body.(chat.RunEnded); ok && run == "" {
		run = b.Run
	}
	if run == "" {
		return chat.Principal{}, nil
	}
	began, err := j.db.RunStarted(ctx, ev.Thread, run)
	if errors.Is(err, journal.ErrUnknown) {
		return chat.Principal{}, nil
	}
	return began.Principal, err
}
