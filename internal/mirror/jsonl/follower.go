package jsonl

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"chorus/internal/chat"
)

// ErrGap means that the events do not follow the last one in the files.
// Nothing was written; read the journal from there.
var ErrGap = errors.New("events are missing before this one")

// Follower applies the events of one thread to files.
type Follower struct {
	Last  func() int64             // number of the last event in the files
	Load  func() error             // reads the files again and removes what a failed write left
	Write func([]chat.Event) error // writes events that follow Last

	failed bool
}

// Apply writes the events. It skips those up to Last; the others must follow without a gap. After
// an error nothing counts as written, and the same events may be applied again.
func (f *Follower) Apply(events []chat.Event) error {
	if f.failed {
		if err := f.Load(); err != nil {
			return fmt.Errorf("repair: %w", err)
		}
		f.failed = false
	}
	last := f.Last()
	events = slices.DeleteFunc(slices.Clone(events), func(ev chat.Event) bool { return ev.Seq <= last })
	if len(events) == 0 {
		return nil
	}
	for i, ev := range events {
		if want := last + 1 + int64(i); ev.Seq != want {
			return fmt.Errorf("event %d where %d should come: %w", ev.Seq, want, ErrGap)
		}
	}
	if err := f.Write(events); err != nil {
		f.failed = true
		return fmt.Errorf("write: %w", err)
	}
	return nil
}

// UniqueID returns the id of a call, with a number appended if it was used before.
func UniqueID(id string, used map[string]bool) string {
	id = cmp.Or(id, "call")
	name := id
	for n := 2; used[name]; n++ {
		name = fmt.Sprintf("%s-%d", id, n)
	}
	used[name] = true
	return name
}
