package store

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"chorus/internal/chat"
	"chorus/internal/journal"
	"chorus/internal/ledger"
)

func TestSavedContexts(t *testing.T) {
	t.Parallel()
	both(t, testSavedContexts)
}

func testSavedContexts(t *testing.T, open func(Options) *DB) {
	db := open(Options{})
	at := time.Date(2026, 11, 15, 12, 0, 0, 0, time.UTC)
	save := func(id, place string, minutes int, quiet time.Time) bool {
		t.Helper()
		if err := db.BeginContext(t.Context(), id, "/x/"+id); err != nil {
			t.Fatal(err)
		}
		fresh, err := db.KeepContext(t.Context(), SavedContext{ID: id, Agent: "main", Transport: "discord", Place: place, Summary: "about " + id, By: "discord:1",
			At: at.Add(time.Duration(minutes) * time.Minute), Messages: 3, From: at, Until: at.Add(time.Second), File: "/x/" + id, Quiet: quiet})
		if err != nil {
			t.Fatal(err)
		}
		return fresh
	}
	if !save("aa1", "g/1", 1, time.Time{}) || !save("ab2", "g/1", 2, time.Time{}) || !save("ac3", "g/2", 3, at) {
		t.Fatal("not kept")
	}
	if save("ad4", "g/2", 4, at) {
		t.Error("one quiet time was kept twice")
	}
	if !save("ae5", "g/2", 5, at.Add(time.Hour)) {
		t.Error("the next quiet time was not kept")
	}
	for name, c := range map[string]struct {
		f    ContextFilter
		want string
	}{
		"place":   {ContextFilter{Agent: "main", Transport: "discord", Place: "g/1"}, "ab2 aa1 "},
		"prefix":  {ContextFilter{Place: "g/1", Prefix: "aa"}, "aa1 "},
		"quiet":   {ContextFilter{Place: "g/2", Quiet: at}, "ac3 "},
		"limit":   {ContextFilter{Limit: 1}, "ae5 "},
		"another": {ContextFilter{Agent: "other"}, ""},
	} {
		found, err := db.SavedContexts(t.Context(), c.f)
		got := ""
		for _, x := range found {
			got += x.ID + " "
		}
		if err != nil || got != c.want {
			t.Errorf("%s: %q, %v; want %q", name, got, err, c.want)
		}
	}
	found, err := db.SavedContexts(t.Context(), ContextFilter{Prefix: "ac3"})
	if err != nil || len(found) != 1 || !found[0].Quiet.Equal(at) || !found[0].From.Equal(at) || found[0].Messages != 3 || found[0].File != "/x/ac3" {
		t.Errorf("read back as %+v, %v", found, err)
	}
}

func TestStirredAndCharge(t *testing.T) {
	t.Parallel()
	both(t, testStirredAndCharge)
}

func testStirredAndCharge(t *testing.T, open func(Options) *DB) {
	db := open(Options{})
	say := func(thread chat.ThreadID, prompt bool) {
		t.Helper()
		_, err := db.Commit(t.Context(), journal.Commit{Thread: thread, Create: &journal.Thread{},
			Events: []chat.Event{{Body: chat.Received{Blocks: chat.TextBlocks("hi"), Prompt: prompt}}}})
		if err != nil {
			t.Fatal(err)
		}
	}
	say("discord:g/1:a@main", false)
	say("discord:g/1:b@main", true)
	say("discord:g/2:c@main", false)
	say("web:g/1:d@main", false)
	before, err := db.Thread(t.Context(), "discord:g/2:c@main")
	if err != nil {
		t.Fatal(err)
	}
	entry := ledger.Entry{Run: "sum1", Step: 1, Attempt: 1, Agent: "main", Payer: chat.Principal{Kind: "discord", ID: "1"}, Model: "m", Reserved: 100}
	if err := db.Charge(t.Context(), "discord:g/2:c@main", entry, nil); err != nil {
		t.Fatal(err)
	}
	entry.How, entry.Settled = ledger.ByUsage, 40
	if err := db.Charge(t.Context(), "discord:g/2:c@main", entry, nil); err != nil {
		t.Fatal(err)
	}
	if cost, err := db.RunCost(t.Context(), "sum1"); err != nil || cost != 40 {
		t.Errorf("it cost %d, %v", cost, err)
	}
	found, err := db.LastActivity(t.Context(), "discord")
	if err != nil || len(found) != 2 || found[0].Place != "g/1" || found[0].Active != 1 || found[1].Active != 0 || !found[1].Last.Equal(before.LastActive) {
		t.Errorf("stirred: %+v, %v", found, err)
	}
}

// What was begun and not kept is found after a while. From then on it cannot be kept; before that nobody is disturbed.
func TestLeftContexts(t *testing.T) {
	t.Parallel()
	both(t, testLeftContexts)
}

func testLeftContexts(t *testing.T, open func(Options) *DB) {
	now := time.Date(2026, 11, 15, 12, 0, 0, 0, time.UTC)
	db := open(Options{Now: func() time.Time { return now }})
	begin := func(id string) error { return db.BeginContext(t.Context(), id, "/x/"+id) }
	keep := func(id string) error {
		_, err := db.KeepContext(t.Context(), SavedContext{ID: id, Agent: "main", At: now, File: "/x/" + id})
		return err
	}
	left := func(before time.Time) (ids string) {
		t.Helper()
		list, err := db.LeftContexts(t.Context(), before)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range list {
			ids += c.ID + " " + c.File + ";"
		}
		return ids
	}
	must := func(errs ...error) {
		t.Helper()
		for _, err := range errs {
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := keep("zz"); !errors.Is(err, ErrContextLeft) {
		t.Errorf("kept without a beginning: %v", err)
	}
	must(begin("aa"), begin("bb"), begin("cc"), begin("dd"), keep("aa"), keep("dd"))
	must(begin("dd"), db.EndContext(t.Context(), "bb")) // two attempts at one, of which the first was kept
	begun := now
	now = now.Add(time.Minute)
	must(begin("ee"), begin("ff"))
	if got := left(begun); got != "" {
		t.Errorf("in progress: %s", got)
	}
	if n, err := db.CountLeftContexts(t.Context(), begun.Add(time.Second)); n != 1 || err != nil {
		t.Errorf("%d are left, %v", n, err)
	}
	must(keep("ee"))
	for range 2 { // who removes it may be killed too
		if got := left(begun.Add(time.Second)); got != "cc /x/cc;" {
			t.Errorf("left: %s", got)
		}
	}
	if err := keep("cc"); !errors.Is(err, ErrContextLeft) {
		t.Errorf("kept while it was being removed: %v", err)
	}
	if err := begin("cc"); !errors.Is(err, ErrContextLeft) {
		t.Errorf("begun while it was being removed: %v", err)
	}
	must(db.EndContext(t.Context(), "cc"), begin("cc"), keep("cc"), keep("ff"))
	if got := left(now.Add(time.Hour)); got != "" {
		t.Errorf("left after all: %s", got)
	}
	list, err := db.SavedContexts(t.Context(), ContextFilter{})
	if err != nil || len(list) != 5 {
		t.Errorf("kept are %+v, %v", list, err)
	}
	if n, err := db.Count(t.Context(), `SELECT count(*) FROM memos WHERE kind = ?`, beginning); n != 0 || err != nil {
		t.Errorf("%d notes are left, %v", n, err)
	}
}

// Whoever keeps a context and whoever removes what is left of it at the same moment agree on which of the two happened.
func TestKeepAndRemoveAtOnce(t *testing.T) {
	t.Parallel()
	both(t, testKeepAndRemoveAtOnce)
}

func testKeepAndRemoveAtOnce(t *testing.T, open func(Options) *DB) {
	saver, sweeper := open(Options{}), open(Options{})
	const rounds = 30
	for n := range rounds {
		id := fmt.Sprint("c", n)
		if err := saver.BeginContext(t.Context(), id, "/x"); err != nil {
			t.Fatal(err)
		}
		var both sync.WaitGroup
		var kept, removed error
		var left []SavedContext
		both.Go(func() {
			_, kept = saver.KeepContext(t.Context(), SavedContext{ID: id, Agent: "main", At: time.Now(), File: "/x"})
		})
		both.Go(func() { left, removed = sweeper.LeftContexts(t.Context(), time.Now().Add(time.Hour)) })
		both.Wait()
		if removed != nil || kept != nil && !errors.Is(kept, ErrContextLeft) {
			t.Fatalf("%v, %v", kept, removed)
		}
		if (kept == nil) == (len(left) == 1) {
			t.Fatalf("round %d: kept %v, to be removed %+v", n, kept, left)
		}
		if err := sweeper.EndContext(t.Context(), id); err != nil {
			t.Fatal(err)
		}
	}
}
