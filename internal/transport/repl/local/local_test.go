package local_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"chorus/internal/app"
	"chorus/internal/app/apptest"
	"chorus/internal/chat"
	"chorus/internal/notice"
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
	a, err := app.Open(t.Context(), app.Options{Home: storetest.FreshHome(t), Env: apptest.Env(), Environ: []string{"PATH=/bin"}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := a.Close(); err != nil {
			t.Error(err)
		}
	}()
	a.Gate.Engine(nil) // an engine that runs nothing
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

// What a chat should know is heard while its session is open, said to nobody else
// meanwhile, and never waited for.
func TestNoticesReachTheSession(t *testing.T) {
	t.Parallel()
	var warned []string
	a, err := app.Open(context.Background(), app.Options{Home: t.TempDir(), Env: apptest.Env(), Warn: func(text string) { warned = append(warned, text) }})
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	a.Notices.WarnOnce("before")
	s, err := a.Sessions.OpenSession(t.Context(), runsetup.SessionOptions{Dir: t.TempDir(), Model: "demo/echo"})
	if err != nil {
		t.Fatal(err)
	}
	a.Notices.WarnOnce("meanwhile")
	if got := <-s.Remarks(); got != (notice.Notice{Text: "meanwhile", Bad: true}) {
		t.Errorf("heard %+v", got)
	}
	for range 1000 {
		a.Notices.Post(notice.Notice{Text: "again and again"})
	}
	if n := len(s.Remarks()); n == 0 || n > 100 {
		t.Errorf("%d remarks wait", n)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	a.Notices.WarnOnce("after")
	if !slices.Equal(warned, []string{"before", "after"}) {
		t.Errorf("warned %q", warned)
	}
	once, err := a.Sessions.OpenSession(t.Context(), runsetup.SessionOptions{Dir: t.TempDir(), Model: "demo/echo", Once: true})
	if err != nil {
		t.Fatal(err)
	}
	if once.Remarks() != nil || a.Notices.Post(notice.Notice{Text: "nobody is there"}) {
		t.Error("a session of one prompt hears")
	}
	if err := once.Close(); err != nil {
		t.Fatal(err)
	}
}
