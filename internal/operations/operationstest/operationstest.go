// Package operationstest is the test suite for every operation.Executor: the one on the store, and the one over HTTP.
//
// An executor that passes it keeps sessions apart, accepts each message once, answers each prompt exactly once, shows
// the same events to every watcher, and returns errors of the right kinds.
package operationstest

import (
	"cmp"
	"context"
	"slices"
	"testing"
	"time"

	"chorus/internal/feed"
	"chorus/internal/operation"
	"chorus/internal/operations"
)

// World is a home to test an executor on. Its callers: Admin may do everything, Ada and Bo chat and approve, Reader only
// reads. As returns the executor for a caller.
type World struct {
	Admin, Ada, Bo, Reader operation.Caller
	As                     func(operation.Caller) operation.Executor
	// Dir is an existing directory where operations run.
	Dir string
}

// Run runs the suite. make is called once for each part, with its own home.
func Run(t *testing.T, make func(t *testing.T) World) {
	for _, part := range []struct {
		name string
		test func(*story)
	}{
		{"making sessions", making}, {"sessions that are not made yet", previews}, {"wishes that cannot be", mistakes}, {"places to work in", places}, {"a session is made once", madeOnce},
		{"talking", talking}, {"words are taken once", takenOnce}, {"the queue has an end", queue},
		{"watching from anywhere", watching}, {"pages of a journal", paging}, {"others' sessions", others}, {"scopes", scopes},
		{"approvals", approvals}, {"a no goes back to the model", refusal}, {"stopping and steering", steering},
		{"forks", forks}, {"forks of forks", forksOfForks}, {"session files", resuming}, {"files", attaching}, {"saved contexts", contexts}, {"requests", requests}, {"exports", exports}, {"replays", replays}, {"searching", searching},
		{"agents", agents}, {"settings", settings}, {"records", records}, {"system", system}, {"lists have an end", listing}, {"lists of hooks have pages", hookPages},
	} {
		t.Run(part.name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			part.test(&story{T: t, World: make(t), ctx: ctx})
		})
	}
}

// story is one part of the suite.
type story struct {
	*testing.T
	World
	ctx context.Context
}

func (s *story) ok(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

// wants expects an error of a kind, with a message.
func (s *story) wants(kind operation.Kind, err error) {
	s.Helper()
	switch {
	case err == nil:
		s.Fatalf("nothing was wrong, expected %s", kind)
	case operation.KindOf(err) != kind:
		s.Fatalf("%s (%v), expected %s", operation.KindOf(err), err, kind)
	case len(err.Error()) < 10:
		s.Fatalf("%q says nothing", err)
	}
}

func (s *story) equal(what string, got, want any) {
	s.Helper()
	if got != want {
		s.Fatalf("%s: %v, expected %v", what, got, want)
	}
}

// new creates a session that plays scripts.
func (s *story) new(by operation.Caller, in operations.NewSession) operations.Session {
	s.Helper()
	in.Model = cmp.Or(in.Model, "demo/script")
	made, err := operations.CreateSession.Call(s.ctx, s.As(by), by, in)
	s.ok(err)
	return made.Session
}

// say sends a prompt, waits for the end of its run, and returns what was seen.
func (s *story) say(by operation.Caller, id, text string) []feed.Item {
	s.Helper()
	said, err := operations.Say.Call(s.ctx, s.As(by), by, operations.Message{ID: id, Message: text})
	s.ok(err)
	return s.until(by, id, said.Seq-1, func(it feed.Item) bool { return it.Header().Type.Terminal() })
}

// until watches a session from a number on, up to a certain object.
func (s *story) until(by operation.Caller, id string, after int64, last func(feed.Item) bool) []feed.Item {
	s.Helper()
	ctx, cancel := context.WithCancel(s.ctx)
	defer cancel()
	var seen []feed.Item
	for item, err := range operations.Watch.Follow(ctx, s.As(by), by, operations.WatchRequest{ID: id, After: after}) {
		s.ok(err)
		seen = append(seen, item)
		if last(item) {
			return seen
		}
	}
	s.Fatalf("the watch ended after %d objects: %v", len(seen), types(seen))
	return nil
}

func isType(t feed.Type) func(feed.Item) bool {
	return func(it feed.Item) bool { return it.Header().Type == t }
}

func types(items []feed.Item) []feed.Type {
	var out []feed.Type
	for _, it := range items {
		out = append(out, it.Header().Type)
	}
	return out
}

// durable returns the objects with a number.
func durable(items []feed.Item) []feed.Item {
	return slices.DeleteFunc(slices.Clone(items), func(it feed.Item) bool { return it.Header().Seq == 0 })
}

// only returns the objects of one type.
func only[T feed.Item](items []feed.Item) []T {
	var out []T
	for _, it := range items {
		if v, ok := it.(T); ok {
			out = append(out, v)
		}
	}
	return out
}

// answer is the text of the last answer.
func (s *story) answer(items []feed.Item) string {
	s.Helper()
	all := only[feed.AssistantMessage](items)
	if len(all) == 0 {
		s.Fatalf("nobody answered: %v", types(items))
	}
	return all[len(all)-1].Text
}

// lines are objects as sent over HTTP.
func (s *story) lines(items []feed.Item) []string {
	s.Helper()
	var out []string
	for _, it := range items {
		data, err := feed.Encode(it)
		s.ok(err)
		out = append(out, string(data))
	}
	return out
}
