package app

import (
	"context"
	"testing"
	"time"

	"chorus/internal/chat"
	"chorus/internal/runsetup"
	"chorus/internal/store/storetest"
	"chorus/internal/transport/repl/local"
)

// answer sends a prompt and waits for the end of its run.
func answer(t *testing.T, s *local.Session, text string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	got, err := s.Send(ctx, text)
	if err != nil {
		t.Fatal(err)
	}
	said := ""
	for item, err := range s.Watch(ctx, got.Seq) {
		if err != nil {
			t.Fatal(err)
		}
		if item.Event == nil {
			continue
		}
		switch b := item.Event.Body.(type) {
		case chat.Said:
			said = b.Blocks.Text()
		case chat.RunEnded:
			return said
		}
	}
	t.Fatalf("%s: %q was never answered", s.Thread(), text)
	return ""
}

// One process may open several sessions of one prompt, after each other or at once,
// also when its engine was there for something else before.
func TestSessionsOfOnePromptBesideEachOther(t *testing.T) {
	t.Parallel()
	a, _ := openLogging(t, storetest.FreshHome(t), nil)
	defer func() {
		if err := a.Close(); err != nil {
			t.Error(err)
		}
	}()
	a.Gate.Approvals() // an engine that runs nothing
	open := func(id string) *local.Session {
		s, err := a.Sessions.OpenSession(t.Context(), runsetup.SessionOptions{Dir: t.TempDir(), Model: "demo/echo", Once: true, ID: id})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	first, second := open(""), open("")
	if got := answer(t, second, "two"); got != "two" {
		t.Errorf("second: %q", got)
	}
	if got := answer(t, first, "one"); got != "one" {
		t.Errorf("first: %q", got)
	}
	for _, s := range []*local.Session{first, second} {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
	again := open(first.ID())
	if got := answer(t, again, "three"); got != "three" {
		t.Errorf("again: %q", got)
	}
	if err := again.Close(); err != nil {
		t.Error(err)
	}
}
