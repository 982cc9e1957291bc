package storetest

import (
	"strings"
	"testing"
	"time"

	"chorus/internal/approval"
	"chorus/internal/chat"
	"chorus/internal/journal"
)

func took(seqs ...int64) chat.Event { return chat.Event{Body: chat.Took{Run: "r", Seqs: seqs}} }

func testQueue(t *testing.T, f *fixture) {
	f.equal("waiting", f.guest(thread, prompt("a"), heard("b"), prompt("c")).Waiting, 2)
	f.equal("waiting", f.guest(thread, chat.Event{Body: chat.Steered{Blocks: chat.TextBlocks("d"), Mode: chat.Inject}}).Waiting, 3)
	row := must[journal.Thread](t)(f.s.Take(f.ctx(), thread))
	f.equal("waiting", f.owns(row, took(1, 4)).Waiting, 1)
	f.equal("waiting in the row", f.row(thread).Waiting, 1)
	pending := must[[]int64](t)(f.s.PendingPrompts(f.ctx(), thread))
	if len(pending) != 1 || pending[0] != 3 {
		t.Fatalf("untaken: %v", pending)
	}
}

func testQueueLimit(t *testing.T, f *fixture) {
	c := journal.Commit{Thread: thread, Create: &journal.Thread{}, MaxWaiting: 2,
		Events: []chat.Event{prompt("a"), prompt("b"), prompt("c"), heard("d")}}
	got := must[journal.Committed](t)(f.s.Commit(f.ctx(), c))
	f.equal("waiting", got.Waiting, 2)
	f.equal("events", len(got.Events), 5)
	refused, ok := got.Events[3].Body.(chat.Refused)
	if !ok || refused.Seq != 3 || !strings.Contains(refused.Why, "queue full") {
		t.Fatalf("behind the third prompt: %+v", got.Events[3])
	}
	f.equal("number behind the refusal", got.Events[4].Seq, int64(5))
	f.equal("next", got.Next, int64(6))
	f.equal("next in the row", f.row(thread).Next, int64(6))
	f.equal("read back", len(f.events(thread)), 5)

	c = journal.Commit{Thread: thread, MaxWaiting: 2, Events: []chat.Event{{Body: chat.Steered{Blocks: chat.TextBlocks("now")}}}}
	got = must[journal.Committed](t)(f.s.Commit(f.ctx(), c))
	f.equal("events of a steer", len(got.Events), 1)
	f.equal("waiting with the steer", got.Waiting, 3)

	row := must[journal.Thread](t)(f.s.Take(f.ctx(), thread))
	_, err := f.s.Commit(f.ctx(), journal.Commit{Thread: thread, Epoch: row.Epoch, Events: []chat.Event{took(3)}})
	f.wants(err, journal.ErrMoved) // what was refused is never run
	f.owns(row, took(1, 2, 6))
	c.Events = []chat.Event{prompt("room again")}
	f.equal("waiting", must[journal.Committed](t)(f.s.Commit(f.ctx(), c)).Waiting, 1)
}

func testTakenOnce(t *testing.T, f *fixture) {
	f.guest(thread, prompt("a"), heard("b"))
	row := must[journal.Thread](t)(f.s.Take(f.ctx(), thread))
	for name, seqs := range map[string][]int64{"heard": {2}, "absent": {9}, "twice": {1, 1}} {
		_, err := f.s.Commit(f.ctx(), journal.Commit{Thread: thread, Epoch: row.Epoch, Events: []chat.Event{took(seqs...)}})
		if f.wants(err, journal.ErrMoved); f.row(thread).Waiting != 1 {
			t.Fatalf("%s: waiting is %d", name, f.row(thread).Waiting)
		}
	}
	f.owns(row, took(1))
	_, err := f.s.Commit(f.ctx(), journal.Commit{Thread: thread, Epoch: row.Epoch, Events: []chat.Event{took(1)}})
	f.wants(err, journal.ErrMoved)
	f.equal("waiting", f.row(thread).Waiting, 0)
}

func testWithdrawn(t *testing.T, f *fixture) {
	deleted := func(seq int64) chat.Event { return chat.Event{Body: chat.Deleted{Seq: seq}} }
	refused := func(seq int64) chat.Event { return chat.Event{Body: chat.Refused{Seq: seq, Why: "no"}} }
	f.guest(thread, prompt("a"), prompt("b"), prompt("c"), heard("d"))
	f.equal("waiting", f.guest(thread, deleted(1)).Waiting, 2)
	f.equal("deleted twice", f.guest(thread, deleted(1)).Waiting, 2)
	f.equal("heard only", f.guest(thread, deleted(4)).Waiting, 2)
	f.equal("refused", f.guest(thread, refused(2)).Waiting, 1)
	row := must[journal.Thread](t)(f.s.Take(f.ctx(), thread))
	_, err := f.s.Commit(f.ctx(), journal.Commit{Thread: thread, Epoch: row.Epoch, Events: []chat.Event{took(1)}})
	f.wants(err, journal.ErrMoved)
	f.owns(row, took(3))
	f.equal("taken before it was deleted", f.guest(thread, deleted(3)).Waiting, 0)
}

func testWake(t *testing.T, f *fixture) {
	commit := func(c journal.Commit) {
		t.Helper()
		c.Thread = thread
		must[journal.Committed](t)(f.s.Commit(f.ctx(), c))
	}
	f.guest(thread, heard("only heard"))
	f.equal("heard wakes nobody", f.row(thread).Wake, false)
	f.guest(thread, prompt("a"))
	f.equal("a prompt wakes", f.row(thread).Wake, true)
	f.equal("active", f.active(thread), true)

	row := must[journal.Thread](t)(f.s.Take(f.ctx(), thread))
	commit(journal.Commit{Epoch: row.Epoch, Events: []chat.Event{noted("blind")}})
	f.equal("an owner that expects nothing leaves the mark", f.row(thread).Wake, true)
	commit(journal.Commit{Epoch: row.Epoch, Expect: f.row(thread).Next, Events: []chat.Event{took(2)}, Status: chat.Running})
	f.equal("an owner that has seen all clears it", f.row(thread).Wake, false)
	f.equal("a running thread is active", f.active(thread), true)

	f.guest(thread, prompt("b"))
	commit(journal.Commit{Epoch: row.Epoch, Expect: f.row(thread).Next, Status: chat.Waiting})
	f.equal("suspended, with prompts for later", f.row(thread).Wake, false)
	f.equal("suspended threads sleep", f.active(thread), false)
	f.guest(thread, chat.Event{Body: chat.ApprovalAnswered{ID: "a", OK: true}})
	f.equal("an answer wakes", f.row(thread).Wake, true)

	commit(journal.Commit{Epoch: row.Epoch, Expect: f.row(thread).Next, Status: chat.Idle})
	f.equal("idle with something waiting", f.row(thread).Wake, true)
	commit(journal.Commit{Epoch: row.Epoch, Expect: f.row(thread).Next, Status: chat.Running, Events: []chat.Event{took(5)}})
	f.guest(thread, prompt("c"))
	commit(journal.Commit{Epoch: row.Epoch, Expect: f.row(thread).Next, Status: chat.Running})
	f.equal("seen while running", f.row(thread).Wake, false)
	commit(journal.Commit{Epoch: row.Epoch, Status: chat.Failed})
	f.equal("failed without looking, with something waiting", f.row(thread).Wake, true)
	commit(journal.Commit{Epoch: row.Epoch, Expect: f.row(thread).Next, Status: chat.Idle, Events: []chat.Event{took(8)}})
	f.equal("nothing left", f.row(thread).Wake, false)
	f.equal("idle threads sleep", f.active(thread), false)
}

func testArrivals(t *testing.T, f *fixture) {
	a := journal.Arrival{Platform: "discord", Bot: "b", What: "message", PlatformID: "m1", Decision: "both hear it"}
	for _, id := range []chat.ThreadID{other, thread} { // not in the order of their ids
		e := prompt("to " + string(id))
		e.Platform, e.PlatformID = "discord", "m1"
		a.Commits = append(a.Commits, journal.Commit{Thread: id, Create: &journal.Thread{}, Events: []chat.Event{e}})
	}
	got := must[journal.Arrived](t)(f.s.Arrive(f.ctx(), a))
	f.equal("again", got.Again, false)
	f.equal("commits", len(got.Commits), 2)
	f.equal("in the order given", got.Commits[0].Events[0].Thread, other)
	f.equal("active", f.active(thread) && f.active(other), true)

	got = must[journal.Arrived](t)(f.s.Arrive(f.ctx(), a))
	f.equal("again", got.Again, true)
	f.equal("commits the second time", len(got.Commits), 0)
	f.equal("events", len(f.events(thread)), 1)

	a.Version, a.Commits = 1, nil
	got = must[journal.Arrived](t)(f.s.Arrive(f.ctx(), a))
	f.equal("another version, nobody hears it", got.Again, false)
	got = must[journal.Arrived](t)(f.s.Arrive(f.ctx(), a))
	f.equal("again", got.Again, true)
	a.Bot = "another"
	got = must[journal.Arrived](t)(f.s.Arrive(f.ctx(), a))
	f.equal("another bot sees it too", got.Again, false)
	a.PlatformID = ""
	if _, err := f.s.Arrive(f.ctx(), a); err == nil {
		t.Fatal("an arrival without an id went through")
	}
}

func testArrivalAtomic(t *testing.T, f *fixture) {
	a := journal.Arrival{Platform: "p", Bot: "b", What: "message", PlatformID: "m", Commits: []journal.Commit{
		{Thread: thread, Create: &journal.Thread{}, Events: []chat.Event{prompt("x")}},
		{Thread: absent, Events: []chat.Event{prompt("x")}},
	}}
	_, err := f.s.Arrive(f.ctx(), a)
	f.wants(err, journal.ErrUnknown)
	_, err = f.s.Thread(f.ctx(), thread)
	f.wants(err, journal.ErrUnknown)
	a.Commits = a.Commits[:1]
	got := must[journal.Arrived](t)(f.s.Arrive(f.ctx(), a))
	f.equal("again after a failure", got.Again, false)
	a.Commits[0].Epoch = 1
	if _, err := f.s.Arrive(f.ctx(), a); err == nil {
		t.Fatal("an owner arrived")
	}
}

// What else an agent does is listed by what matters most to somebody who works in a folder.
func testOtherWork(t *testing.T, f *fixture) {
	work := func(id, agent, dir, place string, status chat.Status, asks ...approval.Change) {
		t.Helper()
		at := chat.ThreadID(id)
		must[journal.Committed](t)(f.s.Commit(f.ctx(), journal.Commit{Thread: at, Create: &journal.Thread{Agent: agent, Dir: dir, Place: place}, Events: []chat.Event{prompt("go")}}))
		row := must[journal.Thread](t)(f.s.Take(f.ctx(), at))
		must[journal.Committed](t)(f.s.Commit(f.ctx(), journal.Commit{Thread: at, Epoch: row.Epoch, Expect: row.Next, Events: []chat.Event{took(1)}, Status: status, Approvals: asks}))
	}
	work("cli:home:me@a", "a", "/mine", "home", chat.Running)
	work("cli:far:far@a", "a", "/far", "far", chat.Running)
	work("cli:home:near@a", "a", "/near", "home", chat.Running)
	work("cli:far:same@a", "a", "/mine", "far", chat.Running)
	work("cli:home:idle@a", "a", "/mine", "home", chat.Idle)
	work("cli:home:waits@a", "a", "/mine", "home", chat.Waiting) // for nothing that is known
	work("cli:home:other@b", "b", "/mine", "home", chat.Running)
	work("cli:home:asks@a", "a", "/mine", "home", chat.Waiting, approval.Change{New: &approval.Approval{ID: "1", Run: "r", Deadline: time.Now().Add(time.Hour)}})

	me := f.row("cli:home:me@a")
	names := func(most int) (out string, all int) {
		t.Helper()
		list, all, err := f.s.OtherWork(f.ctx(), me, most)
		f.ok(err)
		for _, row := range list {
			out += row.ID.Thread() + " "
		}
		return out, all
	}
	got, all := names(10)
	f.equal("all of them", got, "asks@a same@a near@a far@a ")
	f.equal("their number", all, 4)
	got, all = names(2)
	f.equal("two of them", got, "asks@a same@a ")
	f.equal("the number of all", all, 4)
}
