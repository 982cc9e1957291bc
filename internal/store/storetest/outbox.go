package storetest

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"testing"
	"time"

	"chorus/internal/chat"
	"chorus/internal/journal"
	"chorus/internal/store"
)

// Outbox is what the suite needs of a store that posts to platforms.
type Outbox interface {
	SetDesired(context.Context, ...journal.Desired) error
	Plan(context.Context, journal.Plan) error
	OpenLanes(ctx context.Context, platform, bot string) ([]journal.Lane, error)
	OpenRows(ctx context.Context, lane journal.Lane, limit int) ([]journal.Outgoing, error)
	Outgoing(ctx context.Context, lane journal.Lane, key string) (journal.Outgoing, error)
	OutgoingFor(context.Context, store.OutFilter) ([]journal.Outgoing, error)
	BeginSend(context.Context, journal.Outgoing) (journal.Outgoing, error)
	EndSend(context.Context, journal.Outcome) error
	Echo(ctx context.Context, platform, bot, nonce, messageID string) (journal.Lane, bool, error)
	LastMade(ctx context.Context, lane journal.Lane, before int64) (string, error)
	Places(ctx context.Context, platform, messageID string) ([]journal.Place, error)
	Cursor(ctx context.Context, lane journal.Lane) (string, error)
	Cursors(ctx context.Context, platform, bot string) (map[string]string, error)
	MoveCursor(ctx context.Context, lane journal.Lane, from, to string) (bool, error)
	BehindSince(ctx context.Context, reader, transport string, mark int64, others []chat.ThreadID) ([]chat.ThreadID, int64, error)
}

var (
	lane      = journal.Lane{Platform: "talk", Bot: "one", Channel: "10"}
	otherLane = journal.Lane{Platform: "talk", Bot: "one", Channel: "20"}
)

func text(s string) json.RawMessage { return json.RawMessage(fmt.Sprintf("%q", s)) }

func wish(key string, seq int64, body string) journal.Desired {
	return journal.Desired{Lane: lane, Key: key, Thread: thread, Seq: seq, Body: text(body)}
}

func (f *fixture) out(key string) journal.Outgoing {
	f.t.Helper()
	return must[journal.Outgoing](f.t)(f.s.Outgoing(f.ctx(), lane, key))
}

func (f *fixture) begin(key string) journal.Outgoing {
	f.t.Helper()
	return must[journal.Outgoing](f.t)(f.s.BeginSend(f.ctx(), f.out(key)))
}

// openKeys lists what the lane has to do, in order.
func (f *fixture) openKeys() string {
	f.t.Helper()
	keys := ""
	for _, o := range must[[]journal.Outgoing](f.t)(f.s.OpenRows(f.ctx(), lane, 0)) {
		keys += o.Key + ":" + string(o.State) + " "
	}
	return keys
}

func (f *fixture) stands(key string, state journal.OutState, want, have int64) journal.Outgoing {
	f.t.Helper()
	o := f.out(key)
	if o.State != state || o.Want != want || o.Have != have {
		f.t.Fatalf("%s is %s with %d of %d, want %s with %d of %d", key, o.State, o.Have, o.Want, state, have, want)
	}
	return o
}

func testDesired(t *testing.T, f *fixture) {
	f.ok(f.s.SetDesired(f.ctx(), wish("a", 3, "one"), wish("b", 3, "two"), journal.Desired{Lane: otherLane, Key: "a", Body: text("elsewhere")}))
	f.ok(f.s.SetDesired(f.ctx(), wish("a", 3, "one"))) // the same again
	o := f.stands("a", journal.Planned, 1, 0)
	f.equal("nonce", o.Nonce, lane.Nonce("a"))
	if len(o.Nonce) > journal.MaxNonce || o.Nonce == lane.Nonce("b") || o.Nonce == otherLane.Nonce("a") {
		t.Fatalf("nonce %q", o.Nonce)
	}
	f.ok(f.s.SetDesired(f.ctx(), wish("a", 4, "newer")))
	f.ok(f.s.SetDesired(f.ctx(), wish("a", 2, "older"))) // never overtakes
	f.equal("body", string(f.stands("a", journal.Planned, 2, 0).Body), `"newer"`)
	final := wish("a", 5, "newer")
	final.Final = true
	f.ok(f.s.SetDesired(f.ctx(), final))
	f.equal("final", f.stands("a", journal.Planned, 2, 0).Final, true)
	f.equal("in order", f.openKeys(), "a:planned b:planned ")
	made := f.begin("b")
	f.ok(f.s.EndSend(f.ctx(), journal.Outcome{Lane: lane, Key: "b", Rev: made.Tried, ID: "1", State: journal.Sent}))
	last := wish("b", 4, "two") // previews may have been shown since
	last.Final = true
	f.ok(f.s.SetDesired(f.ctx(), last))
	f.ok(f.s.SetDesired(f.ctx(), last))
	f.stands("b", journal.Planned, 2, 1)
	f.equal("lanes", len(must[[]journal.Lane](t)(f.s.OpenLanes(f.ctx(), "talk", "one"))), 2)
	f.equal("of another bot", len(must[[]journal.Lane](t)(f.s.OpenLanes(f.ctx(), "talk", "two"))), 0)
	_, err := f.s.Outgoing(f.ctx(), lane, "none")
	f.wants(err, journal.ErrUnknown)
	for name, bad := range map[string]journal.Desired{
		"no lane": {Key: "x", Body: text("x")}, "no key": {Lane: lane, Body: text("x")}, "no body": {Lane: lane, Key: "x"},
		"no JSON": {Lane: lane, Key: "x", Body: []byte("{")}, "a bird": {Lane: lane, Key: "x", Thing: "bird", Body: text("x")},
		"another's":             {Lane: lane, Key: "x", TargetKey: "a", Body: text("x")},
		"a reaction to nothing": {Lane: lane, Key: "x", Thing: journal.Reaction, Body: text("x")},
	} {
		if f.s.SetDesired(f.ctx(), wish("good", 1, "x"), bad) == nil {
			t.Errorf("%s went through", name)
		}
	}
	_, err = f.s.Outgoing(f.ctx(), lane, "good")
	f.wants(err, journal.ErrUnknown) // all of it or nothing
}

func testFreeze(t *testing.T, f *fixture) {
	f.ok(f.s.SetDesired(f.ctx(), wish("a", 1, "first")))
	seen := f.out("a")
	first := f.begin("a")
	f.equal("attempt", first.Attempts, 1)
	_, err := f.s.BeginSend(f.ctx(), seen)
	f.wants(err, journal.ErrMoved)
	f.ok(f.s.SetDesired(f.ctx(), wish("a", 2, "second")))
	f.stands("a", journal.Sending, 2, 0)
	again := f.begin("a") // the outcome of the first attempt is not known
	f.equal("the same is made again", string(again.TriedBody), `"first"`)
	f.equal("revision", again.Tried, int64(1))
	f.equal("attempts", again.Attempts, 2)
	f.ok(f.s.EndSend(f.ctx(), journal.Outcome{Lane: lane, Key: "a", Rev: again.Tried, ID: "100", State: journal.Sent}))
	o := f.stands("a", journal.Planned, 2, 1) // and the second body becomes an edit
	f.equal("id", o.ID, "100")
	f.equal("attempts", o.Attempts, 0)
	edit := f.begin("a")
	f.equal("edit", string(edit.TriedBody), `"second"`)
	f.ok(f.s.SetDesired(f.ctx(), wish("a", 3, "third")))
	edit = f.begin("a")
	f.equal("an edit takes the newest", string(edit.TriedBody), `"third"`)
	f.ok(f.s.EndSend(f.ctx(), journal.Outcome{Lane: lane, Key: "a", Rev: edit.Tried, State: journal.Sent}))
	f.stands("a", journal.Sent, 3, 3)
	f.equal("nothing to do", f.openKeys(), "")
	f.ok(f.s.SetDesired(f.ctx(), wish("a", 3, "third")))
	f.stands("a", journal.Sent, 3, 3)
	f.equal("made in front of nothing", must[string](t)(f.s.LastMade(f.ctx(), lane, 1)), "")
	f.equal("made last", must[string](t)(f.s.LastMade(f.ctx(), lane, 2)), "100")
}

func testOutcomes(t *testing.T, f *fixture) {
	f.ok(f.s.SetDesired(f.ctx(), wish("a", 1, "x")))
	at := time.Now().Add(time.Hour).UTC().Truncate(time.Microsecond)
	one := f.begin("a")
	end := func(o journal.Outcome) {
		t.Helper()
		o.Lane, o.Key = lane, "a"
		f.ok(f.s.EndSend(f.ctx(), o))
	}
	end(journal.Outcome{Attempt: one.Attempts, State: journal.Sending, NotBefore: at, Why: "temporary", Error: "500"})
	o := f.stands("a", journal.Sending, 1, 0)
	if !o.NotBefore.Equal(at) || o.Why != "temporary" || o.Error != "500" || o.TriedAt.IsZero() {
		t.Fatalf("%+v", o)
	}
	two := f.begin("a")
	end(journal.Outcome{Attempt: one.Attempts, State: journal.Failed, Why: "late"}) // of an attempt that has ended
	f.stands("a", journal.Sending, 1, 0)
	end(journal.Outcome{Attempt: two.Attempts, State: journal.Planned, NotBefore: at})
	f.equal("certainly not made", f.stands("a", journal.Planned, 1, 0).Tried, int64(0))
	three := f.begin("a")
	end(journal.Outcome{Attempt: three.Attempts, State: journal.Failed, Why: "forbidden", Error: "no"})
	end(journal.Outcome{Attempt: three.Attempts, State: journal.Planned}) // too late
	f.equal("why", f.stands("a", journal.Failed, 1, 0).Why, "forbidden")
	failed := must[[]journal.Outgoing](t)(f.s.OutgoingFor(f.ctx(), store.OutFilter{Thread: thread, State: journal.Failed}))
	f.equal("failures", len(failed), 1)
	f.equal("all", len(must[[]journal.Outgoing](t)(f.s.OutgoingFor(f.ctx(), store.OutFilter{}))), 1)
	_, err := f.s.BeginSend(f.ctx(), f.out("a"))
	f.wants(err, journal.ErrMoved)
	f.ok(f.s.SetDesired(f.ctx(), wish("a", 2, "x"))) // the same: still failed
	f.stands("a", journal.Failed, 1, 0)
	f.ok(f.s.SetDesired(f.ctx(), wish("a", 2, "y"))) // a different body is worth a try
	o = f.stands("a", journal.Planned, 2, 0)
	f.equal("a fresh start", o.Attempts, 0)
	gone := wish("a", 3, "")
	gone.Gone, gone.Body = true, nil
	f.ok(f.s.SetDesired(f.ctx(), gone))
	f.ok(f.s.SetDesired(f.ctx(), gone))
	f.equal("body is kept", string(f.stands("a", journal.Planned, 3, 0).Body), `"y"`)
	end(journal.Outcome{State: journal.Superseded})
	f.stands("a", journal.Superseded, 3, 0)
	never := wish("never", 9, "x")
	never.Gone = true
	f.ok(f.s.SetDesired(f.ctx(), never))
	f.ok(f.s.SetDesired(f.ctx(), wish("never", 8, "x"))) // older than the event that ended it
	f.stands("never", journal.Superseded, 1, 0)
	theirs := never
	theirs.Key, theirs.Target = "theirs", "77"
	f.ok(f.s.SetDesired(f.ctx(), theirs))
	f.equal("a message of somebody else's goes", f.openKeys(), "theirs:planned ")
	if f.s.EndSend(f.ctx(), journal.Outcome{Lane: lane, Key: "a", State: "odd"}) == nil {
		t.Fatal("an odd outcome")
	}
}

func testGroups(t *testing.T, f *fixture) {
	in := func(key, group string) journal.Desired {
		d := wish(key, 1, key)
		d.Group = group
		return d
	}
	f.ok(f.s.SetDesired(f.ctx(), in("a1", "a"), in("a2", "a"), in("b1", "b"), in("a3", "a"), in("free", "")))
	made := f.begin("a1")
	f.ok(f.s.EndSend(f.ctx(), journal.Outcome{Lane: lane, Key: "a1", Rev: made.Tried, ID: "1", State: journal.Sent}))
	f.ok(f.s.EndSend(f.ctx(), journal.Outcome{Lane: lane, Key: "a2", Attempt: f.begin("a2").Attempts, State: journal.Failed, Why: "invalid"}))
	f.equal("others go on", f.openKeys(), "b1:planned free:planned ")
	f.equal("the rest of the group", f.out("a3").Why, "invalid")
	f.stands("a1", journal.Sent, 1, 1)
	f.ok(f.s.EndSend(f.ctx(), journal.Outcome{Lane: lane, Key: "free", Attempt: f.begin("free").Attempts, State: journal.Failed, Why: "invalid"}))
	f.equal("no group is no group", f.openKeys(), "b1:planned ")
}

func testEcho(t *testing.T, f *fixture) {
	echo := func(nonce, id string) bool {
		t.Helper()
		_, ours, err := f.s.Echo(f.ctx(), lane.Platform, lane.Bot, nonce, id)
		f.ok(err)
		return ours
	}
	f.ok(f.s.SetDesired(f.ctx(), wish("a", 7, "x")))
	f.equal("before anything was sent", echo(lane.Nonce("a"), "100"), false)
	one := f.begin("a")
	f.equal("a stranger", echo("nonce", "99"), false)
	f.equal("ours", echo(lane.Nonce("a"), "100"), true)
	f.equal("again", echo(lane.Nonce("a"), "100"), false)
	f.equal("id", f.stands("a", journal.Sent, 1, 1).ID, "100")
	// The call itself returns later, with either result.
	f.ok(f.s.EndSend(f.ctx(), journal.Outcome{Lane: lane, Key: "a", Attempt: one.Attempts, State: journal.Sending, NotBefore: time.Now()}))
	f.ok(f.s.EndSend(f.ctx(), journal.Outcome{Lane: lane, Key: "a", Attempt: one.Attempts, Rev: one.Tried, ID: "100", State: journal.Sent}))
	f.stands("a", journal.Sent, 1, 1)
	places := must[[]journal.Place](t)(f.s.Places(f.ctx(), "talk", "100"))
	if len(places) != 1 || places[0] != (journal.Place{Thread: thread, Seq: 7, Ours: true, Lane: lane, Key: "a"}) {
		t.Fatalf("%+v", places)
	}
}

func testPlan(t *testing.T, f *fixture) {
	f.guest(thread, heard("a"), heard("b"), heard("c"))
	plan := func(from, to int64, wishes ...journal.Desired) error {
		return f.s.Plan(f.ctx(), journal.Plan{Reader: "out", Thread: thread, From: from, UpTo: to, Desired: wishes})
	}
	behind := func(transport string) int {
		t.Helper()
		threads, _, err := f.s.BehindSince(f.ctx(), "out", transport, 0, nil)
		f.ok(err)
		return len(threads)
	}
	f.ok(plan(0, 2, wish("a", 1, "x")))
	f.wants(plan(0, 2, wish("b", 1, "x")), journal.ErrMoved)
	f.equal("place", must[int64](t)(f.s.Reader(f.ctx(), "out", thread)), int64(2))
	if plan(2, 4) == nil || plan(2, 1) == nil || plan(2, 3, journal.Desired{}) == nil {
		t.Fatal("nonsense went through")
	}
	f.equal("nothing of it", f.openKeys(), "a:planned ")
	f.equal("behind", behind("cli"), 1)
	f.equal("behind elsewhere", behind("api"), 0)
	f.ok(plan(2, 3))
	f.equal("up to date", behind("cli"), 0)
	f.wants(f.s.Plan(f.ctx(), journal.Plan{Reader: "out", Thread: absent}), journal.ErrUnknown)
}

// Two processes must never both begin the same call or plan the same step.
func testOutboxTwoHandles(t *testing.T, f *fixture) {
	second := f.open()
	f.guest(thread, heard("a"))
	f.ok(f.s.SetDesired(f.ctx(), wish("a", 1, "x")))
	seen := f.out("a")
	var begun, planned [2]error
	var wg sync.WaitGroup
	for i, s := range []Store{f.s, second} {
		wg.Go(func() {
			_, begun[i] = s.BeginSend(f.ctx(), seen)
			planned[i] = s.Plan(f.ctx(), journal.Plan{Reader: "out", Thread: thread, UpTo: 1, Desired: []journal.Desired{wish("p", 1, "x")}})
		})
	}
	wg.Wait()
	for _, errs := range [][2]error{begun, planned} {
		if (errs[0] == nil) == (errs[1] == nil) {
			t.Fatalf("both or none: %v", errs)
		}
	}
	f.equal("rows", f.openKeys(), "a:sending p:planned ")
}

func testPlaces(t *testing.T, f *fixture) {
	said := chat.Event{Platform: "talk", PlatformID: "50", Body: chat.Received{Blocks: chat.TextBlocks("hello")}}
	f.guest(thread, said)
	f.guest(other, said)
	f.equal("both who heard it", len(must[[]journal.Place](t)(f.s.Places(f.ctx(), "talk", "50"))), 2)
	f.equal("on another platform", len(must[[]journal.Place](t)(f.s.Places(f.ctx(), "mail", "50"))), 0)
	f.equal("no id", len(must[[]journal.Place](t)(f.s.Places(f.ctx(), "talk", ""))), 0)
}

func testCursors(t *testing.T, f *fixture) {
	at := func() string { return must[string](t)(f.s.Cursor(f.ctx(), lane)) }
	f.equal("never seen", at(), "")
	move := func(l journal.Lane, from, to string) bool { return must[bool](t)(f.s.MoveCursor(f.ctx(), l, from, to)) }
	for _, step := range []struct {
		from, to string
		moves    bool
		at       string
	}{{"", "99", true, "99"}, {"", "50", false, "99"}, {"99", "100", true, "100"}, {"99", "101", false, "100"}, {"100", "101", true, "101"}} {
		if got := move(lane, step.from, step.to); got != step.moves {
			t.Errorf("from %q to %q moves: %v", step.from, step.to, got)
		}
		f.equal("after "+step.to, at(), step.at)
	}
	move(otherLane, "", "7")
	all := must[map[string]string](t)(f.s.Cursors(f.ctx(), "talk", "one"))
	if len(all) != 2 || all["10"] != "101" || all["20"] != "7" {
		t.Fatal(all)
	}
	if _, err := f.s.MoveCursor(f.ctx(), lane, "101", ""); err == nil {
		t.Fatal("a cursor at nothing")
	}
}
