package storetest

import (
	"encoding/json"
	"errors"
	"reflect"
	"testing"
	"time"

	"chorus/internal/approval"
	"chorus/internal/chat"
	"chorus/internal/journal"
	"chorus/internal/ledger"
)

func testNumbers(t *testing.T, f *fixture) {
	f.equal("first number", f.guest(thread, heard("a"), heard("b")).Next, int64(3))
	row := must[journal.Thread](t)(f.s.Take(f.ctx(), thread))
	got := f.owns(row, noted("c"))
	f.equal("number", got.Events[0].Seq, int64(3))
	f.equal("next", got.Next, int64(4))
	f.guest(other, heard("x"))
	for i, e := range f.events(thread) {
		f.equal("number", e.Seq, int64(i+1))
		f.equal("thread", e.Thread, thread)
	}
	f.equal("events", len(f.events(thread)), 3)
	f.equal("other thread's events", len(f.events(other)), 1)
}

func testFence(t *testing.T, f *fixture) {
	old := f.owner(thread)
	now := must[journal.Thread](t)(f.s.Take(f.ctx(), thread))
	f.equal("epoch", now.Epoch, old.Epoch+1)
	_, err := f.s.Commit(f.ctx(), journal.Commit{Thread: thread, Epoch: old.Epoch, Events: []chat.Event{noted("late")}})
	f.wants(err, journal.ErrFenced)
	_, err = f.s.Commit(f.ctx(), journal.Commit{Thread: thread, Epoch: old.Epoch, Expect: 99, Events: []chat.Event{noted("late")}})
	f.wants(err, journal.ErrFenced) // fenced before moved: it must stop and not read
	f.owns(now, noted("mine"))
	f.equal("events", len(f.events(thread)), 1)
}

func testExpect(t *testing.T, f *fixture) {
	row := f.owner(thread)
	seen := f.row(thread).Next
	f.guest(thread, prompt("news"))
	c := journal.Commit{Thread: thread, Epoch: row.Epoch, Expect: seen, Events: []chat.Event{noted("blind")}}
	_, err := f.s.Commit(f.ctx(), c)
	f.wants(err, journal.ErrMoved)
	f.equal("events", len(f.events(thread)), 1)
	c.Expect++
	must[journal.Committed](t)(f.s.Commit(f.ctx(), c))
	// A guest may set Expect too.
	_, err = f.s.Commit(f.ctx(), journal.Commit{Thread: thread, Expect: seen, Events: []chat.Event{heard("x")}})
	f.wants(err, journal.ErrMoved)
}

func testUnknown(t *testing.T, f *fixture) {
	_, err := f.s.Commit(f.ctx(), journal.Commit{Thread: absent, Events: []chat.Event{heard("x")}})
	f.wants(err, journal.ErrUnknown)
	_, err = f.s.Commit(f.ctx(), journal.Commit{Thread: absent, Epoch: 1, Events: []chat.Event{noted("x")}})
	f.wants(err, journal.ErrUnknown)
	_, err = f.s.Take(f.ctx(), absent)
	f.wants(err, journal.ErrUnknown)
	_, err = f.s.Thread(f.ctx(), absent)
	f.wants(err, journal.ErrUnknown)
	events := must[[]chat.Event](t)(f.s.Events(f.ctx(), absent, 0, 10))
	f.equal("events of nothing", len(events), 0)
	if _, err := f.s.Commit(f.ctx(), journal.Commit{Events: []chat.Event{heard("x")}}); err == nil {
		t.Fatal("a commit without a thread went through")
	}
}

func testGuestKinds(t *testing.T, f *fixture) {
	f.guest(thread)
	for name, c := range map[string]journal.Commit{
		"an owner's event": {Events: []chat.Event{noted("x")}},
		"a status":         {Status: chat.Running},
		"money":            {Money: []ledger.Entry{{Run: "r", Step: 1, Attempt: 1}}},
		"a new approval":   {Approvals: []approval.Change{{New: &approval.Approval{ID: "a"}}}},
		"an empty event":   {Events: []chat.Event{{}}},
	} {
		c.Thread = thread
		if _, err := f.s.Commit(f.ctx(), c); err == nil {
			t.Errorf("a guest wrote %s", name)
		}
	}
	row := f.owner(thread)
	if _, err := f.s.Commit(f.ctx(), journal.Commit{Thread: other, Epoch: row.Epoch, Create: &journal.Thread{}}); err == nil {
		t.Error("an owner created a thread")
	}
	f.equal("events", len(f.events(thread)), 0)
}

func testRoundTrip(t *testing.T, f *fixture) {
	row := f.owner(thread)
	before := time.Now().UTC().Add(-time.Minute)
	draft := chat.Event{
		Run: "run_1", Who: "local:ada", Platform: "discord", PlatformID: "m1", Version: 2,
		Body: chat.ToolRan{Call: "c1", Name: "read", Outcome: chat.Ran, TookMS: 12,
			Blocks: chat.Blocks{chat.Text{Text: "<b> & \"quotes\" \u2028 ü 🙂"}, chat.Image{Blob: "", MediaType: "image/png"}}},
	}
	got := f.owns(row, draft).Events[0]
	read := f.events(thread)[0]
	if !reflect.DeepEqual(got, read) {
		t.Fatalf("returned %+v, read %+v", got, read)
	}
	if got.At.Before(before) || got.At.Location() != time.UTC || got.At.Nanosecond()%1000 != 0 {
		t.Fatalf("at %v: want now, in UTC, in microseconds", got.At)
	}
	draft.Thread, draft.Seq, draft.At = got.Thread, got.Seq, got.At
	if !reflect.DeepEqual(draft, read) {
		t.Fatalf("wrote %+v, read %+v", draft, read)
	}
}

// What a commit returns is what a reader sees, even where JSON cannot represent the original.
func testReturnedAsRead(t *testing.T, f *fixture) {
	row := f.owner(thread)
	got := f.owns(row,
		chat.Event{Body: chat.Said{Step: 1, Attempt: 1, Stop: chat.StopTools, Blocks: chat.Blocks{
			chat.ToolUse{ID: "c1", Name: "read", Args: json.RawMessage(`{ "path" : "a" }`)},
			chat.ToolUse{ID: "c2", Name: "read", Args: json.RawMessage(`{"path": `)},
			chat.ToolUse{ID: "c3", Name: "read"}}}},
		noted("broken \xff\xfe bytes")).Events
	if read := f.events(thread); !reflect.DeepEqual(got, read) {
		t.Fatalf("returned %+v\nread %+v", got, read)
	}
}

func testDuplicates(t *testing.T, f *fixture) {
	e := prompt("once")
	e.Platform, e.PlatformID = "local", "01J"
	f.guest(thread, e)
	_, err := f.s.Commit(f.ctx(), journal.Commit{Thread: thread, Events: []chat.Event{heard("beside"), e}})
	f.wants(err, journal.ErrDuplicate)
	f.equal("events", len(f.events(thread)), 1)
	f.equal("next", f.row(thread).Next, int64(2))
	f.equal("waiting", f.row(thread).Waiting, 1)

	found := must[chat.Event](t)(f.s.Find(f.ctx(), thread, "local", "01J", chat.KindReceived, 0))
	f.equal("found", found.Seq, int64(1))
	_, err = f.s.Find(f.ctx(), thread, "local", "01J", chat.KindReceived, 1)
	f.wants(err, journal.ErrUnknown)

	e.Version = 1
	f.guest(thread, e) // another version is another event
	edit := chat.Event{Platform: "local", PlatformID: "01J", Body: chat.Edited{Seq: 1, Blocks: chat.TextBlocks("x")}}
	f.guest(thread, edit) // and so is another kind
	f.guest(other, e)     // and another thread
	f.guest(thread, heard("no id"), heard("no id"))
}

func testAtomic(t *testing.T, f *fixture) {
	row := f.owner(thread)
	hash := must[string](t)(f.s.PutBlob(f.ctx(), []byte("kept")))
	_, err := f.s.Commit(f.ctx(), journal.Commit{
		Thread: thread, Epoch: row.Epoch, Status: chat.Running,
		Events: []chat.Event{noted("a"), {Body: chat.Took{Run: "r", Seqs: []int64{77}}}},
		Money:  []ledger.Entry{{Run: "r", Step: 1, Attempt: 1, Reserved: 5}},
		Audit:  []approval.Audit{{Action: "x"}},
		Blobs:  []chat.Blob{{Data: []byte("void")}},
	})
	f.wants(err, journal.ErrMoved)
	after := f.row(thread)
	f.equal("next", after.Next, row.Next)
	f.equal("status", after.Status, chat.Idle)
	f.equal("events", len(f.events(thread)), 0)
	entries := must[[]ledger.Entry](t)(f.s.LedgerEntries(f.ctx(), "r"))
	f.equal("ledger", len(entries), 0)
	must[[]byte](t)(f.s.Blob(f.ctx(), hash))
	_, err = f.s.Commit(f.ctx(), journal.Commit{Thread: thread, Epoch: row.Epoch, Blobs: []chat.Blob{{Hash: hash, Data: []byte("other")}}})
	if err == nil || errors.Is(err, journal.ErrMoved) {
		t.Fatalf("a blob with a wrong hash: %v", err)
	}
}

func testCreate(t *testing.T, f *fixture) {
	made := journal.Thread{Agent: "reviewer", Dir: "/work", Owner: chat.Principal{Kind: chat.LocalUser, ID: "ada", Roles: []string{"admin"}}}
	c := journal.Commit{Thread: thread, Create: &made, Events: []chat.Event{heard("x")}}
	must[journal.Committed](t)(f.s.Commit(f.ctx(), c))
	row := f.row(thread)
	f.equal("agent", row.Agent, "reviewer")
	f.equal("place", row.Place, "home")
	f.equal("dir", row.Dir, "/work")
	f.equal("status", row.Status, chat.Idle)
	f.equal("epoch", row.Epoch, int64(0))
	if !reflect.DeepEqual(row.Owner, made.Owner) {
		t.Fatalf("owner %+v", row.Owner)
	}
	if row.Created.IsZero() || row.LastActive.Before(row.Created) {
		t.Fatalf("created %v, last active %v", row.Created, row.LastActive)
	}
	c.Create = &journal.Thread{Agent: "somebody-else"}
	must[journal.Committed](t)(f.s.Commit(f.ctx(), c))
	f.equal("agent after a second create", f.row(thread).Agent, "reviewer")
}

func testEmptyCommit(t *testing.T, f *fixture) {
	f.guest(thread, chat.Event{Body: chat.AbortAsked{Run: "long gone", By: "local:ada"}})
	f.equal("active", f.active(thread), true)
	row := must[journal.Thread](t)(f.s.Take(f.ctx(), thread))
	got := must[journal.Committed](t)(f.s.Commit(f.ctx(), journal.Commit{Thread: thread, Epoch: row.Epoch, Expect: row.Next}))
	f.equal("next", got.Next, row.Next)
	f.equal("active", f.active(thread), false)
}
