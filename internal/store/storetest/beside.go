package storetest

import (
	"encoding/json"
	"reflect"
	"testing"
	"time"

	"chorus/internal/approval"
	"chorus/internal/chat"
	"chorus/internal/journal"
	"chorus/internal/ledger"
	"chorus/internal/store"
	"chorus/internal/store/audit"
)

func entry(step, attempt int, how ledger.How, settled ledger.Nanos) ledger.Entry {
	return ledger.Entry{Run: "r", Step: step, Attempt: attempt, Agent: "main", Model: "m/1", Reserved: 100,
		Payer: chat.Principal{Kind: chat.LocalUser, ID: "ada"}, How: how, Settled: settled}
}

func (f *fixture) pays(row journal.Thread, events []chat.Event, entries ...ledger.Entry) {
	f.t.Helper()
	_, err := f.s.Commit(f.ctx(), journal.Commit{Thread: row.ID, Epoch: row.Epoch, Events: events, Money: entries})
	f.ok(err)
}

func (f *fixture) ledger(run string) []ledger.Entry {
	f.t.Helper()
	got, err := f.s.LedgerEntries(f.ctx(), run)
	f.ok(err)
	return got
}

func testMoney(t *testing.T, f *fixture) {
	row := f.owner(thread)
	f.pays(row, nil, entry(1, 1, ledger.Open, 0))
	got := f.ledger("r")
	f.equal("entries", len(got), 1)
	f.equal("how", got[0].How, ledger.Open)
	f.equal("thread", got[0].Thread, thread)

	done := entry(1, 1, ledger.ByUsage, 42)
	done.Reserved = 0
	done.Usage = chat.Usage{Input: 1, Output: 2, CacheRead: 3, CacheWrite: 4}
	f.pays(row, nil, done)
	got = f.ledger("r")
	want := done
	want.Reserved, want.Thread = 100, thread
	if len(got) != 1 || !reflect.DeepEqual(got[0], want) {
		t.Fatalf("settled: %+v, want %+v", got, want)
	}
	f.pays(row, nil, entry(1, 1, ledger.Open, 0)) // written twice: stays settled
	f.equal("how", f.ledger("r")[0].How, ledger.ByUsage)
	if _, err := f.s.Commit(f.ctx(), journal.Commit{Thread: thread, Epoch: row.Epoch, Money: []ledger.Entry{{}}}); err == nil {
		t.Fatal("money without a run")
	}
}

func testLostAttempt(t *testing.T, f *fixture) {
	row := f.owner(thread)
	f.pays(row, nil, entry(1, 1, ledger.Open, 0))
	f.pays(row, nil, entry(1, 2, ledger.Open, 0))
	got := f.ledger("r")
	f.equal("the lost attempt", got[0].How, ledger.Assumed)
	f.equal("counts as spent", got[0].Settled, ledger.Nanos(100))
	f.equal("the new one", got[1].How, ledger.Open)
	f.pays(row, []chat.Event{{Body: chat.RunEnded{Run: "another"}}})
	f.equal("another run's end", f.ledger("r")[1].How, ledger.Open)
	f.pays(row, []chat.Event{{Body: chat.RunEnded{Run: "r"}}})
	f.equal("its own end", f.ledger("r")[1].How, ledger.Assumed)
	f.equal("cost", must[ledger.Nanos](t)(f.s.RunCost(f.ctx(), "r")), ledger.Nanos(200))
	f.equal("cost of nothing", must[ledger.Nanos](t)(f.s.RunCost(f.ctx(), "none")), ledger.Nanos(0))
	f.pays(row, []chat.Event{{Body: chat.RunEnded{Run: "r2"}}}, ledger.Entry{Run: "r2", Step: 1, Attempt: 1, How: ledger.ByUsage, Settled: 7})
	f.equal("settled by the commit that ends it", f.ledger("r2")[0].How, ledger.ByUsage)
}

func testSpend(t *testing.T, f *fixture) {
	row := f.owner(thread)
	dear := ledger.Entry{Run: "r2", Step: 1, Attempt: 1, Agent: "other", Model: "m/2", How: ledger.ByUsage, Settled: 500, Usage: chat.Usage{Input: 9}}
	f.pays(row, nil, entry(1, 1, ledger.ByUsage, 40), entry(2, 1, ledger.Estimate, 2), entry(3, 1, ledger.Open, 0), dear)
	sums := must[[]store.Sum](t)(f.s.Spend(f.ctx(), store.SpendFilter{By: store.ByModel}))
	want := []store.Sum{{Key: "m/2", Calls: 1, Settled: 500, Usage: chat.Usage{Input: 9}}, {Key: "m/1", Calls: 3, Settled: 42, Open: 100}}
	if !reflect.DeepEqual(sums, want) {
		t.Fatalf("by model: %+v", sums)
	}
	for name, filter := range map[string]store.SpendFilter{
		"agent": {Agent: "main"}, "payer": {Payer: "local:ada"}, "model": {Model: "m/1"}, "run": {Run: "r"},
		"thread and since": {Thread: thread, Since: time.Now().Add(-time.Hour), Agent: "main"},
	} {
		sums := must[[]store.Sum](t)(f.s.Spend(f.ctx(), filter))
		if len(sums) != 1 || sums[0].Settled != 42 || sums[0].Key != "" {
			t.Errorf("%s: %+v", name, sums)
		}
	}
	for _, by := range []store.SpendBy{store.ByAgent, store.ByPayer, store.ByRun, store.ByThread} {
		sums := must[[]store.Sum](t)(f.s.Spend(f.ctx(), store.SpendFilter{By: by, Until: time.Now().Add(time.Hour)}))
		if len(sums) == 0 {
			t.Errorf("by %s: nothing", by)
		}
	}
	none := must[[]store.Sum](t)(f.s.Spend(f.ctx(), store.SpendFilter{By: store.ByRun, Until: time.Now().Add(-time.Hour)}))
	f.equal("before anything", len(none), 0)
	if _, err := f.s.Spend(f.ctx(), store.SpendFilter{By: "1; DROP TABLE ledger"}); err == nil {
		t.Fatal("grouped by nonsense")
	}
}

func (f *fixture) asks(row journal.Thread, id, run string) approval.Approval {
	f.t.Helper()
	a := approval.Approval{ID: id, Run: run, Call: chat.ToolUse{ID: "c1", Name: "bash", Args: json.RawMessage(`{"command":"ls"}`)},
		Actions: []string{"shell"}, Dir: "/work", Bound: json.RawMessage(`{"argv":["ls"]}`), Preview: "p", Rule: "ask shell",
		Assessment: chat.Assessment{Risk: "low", RiskWhy: "It only reads.", Parts: []chat.JudgedPart{{Text: "ls", Verdict: "ask", Why: "shell commands"}}},
		Fields:     []chat.Field{{Name: "count", Label: "How many", Kind: "integer", Values: []string{"7"}}},
		AskedBy:    chat.Principal{Kind: chat.LocalUser, ID: "ada"}}
	_, err := f.s.Commit(f.ctx(), journal.Commit{Thread: row.ID, Epoch: row.Epoch, Status: chat.Waiting,
		Events: []chat.Event{{Body: chat.ApprovalAsked{ID: id, Call: "c1"}}}, Approvals: []approval.Change{{New: &a}}})
	f.ok(err)
	return a
}

func (f *fixture) answers(id string, state approval.State) error {
	_, err := f.s.Commit(f.ctx(), journal.Commit{Thread: thread,
		Events:    []chat.Event{{Body: chat.ApprovalAnswered{ID: id, Call: "c1", By: "local:ada", OK: state == approval.Approved}}},
		Approvals: []approval.Change{{Answer: &approval.Answer{ID: id, State: state, By: "local:ada", Note: "n"}}}})
	return err
}

func testApprovals(t *testing.T, f *fixture) {
	row := f.owner(thread)
	want := f.asks(row, "a1", "r")
	got := must[approval.Approval](t)(f.s.Approval(f.ctx(), "a1"))
	want.Thread, want.State, want.AskedAt = thread, approval.Open, got.AskedAt
	if !reflect.DeepEqual(got, want) {
		t.Fatalf("read %+v\nwant %+v", got, want)
	}
	f.ok(f.answers("a1", approval.Approved))
	f.wants(f.answers("a1", approval.Refused), journal.ErrSettled)
	f.wants(f.answers("a2", approval.Approved), journal.ErrUnknown)
	f.equal("events", len(f.events(thread)), 2) // the late answers left nothing
	got = must[approval.Approval](t)(f.s.Approval(f.ctx(), "a1"))
	f.equal("state", got.State, approval.Approved)
	f.equal("by", got.AnsweredBy, "local:ada")
	f.equal("note", got.Note, "n")
	_, err := f.s.Approval(f.ctx(), "a2")
	f.wants(err, journal.ErrUnknown)

	f.asks(row, "a3", "r")
	if err := f.answers("a3", approval.Open); err == nil {
		t.Fatal("answered with a question")
	}
	f.owner(other)
	_, err = f.s.Commit(f.ctx(), journal.Commit{Thread: other, Approvals: []approval.Change{{Answer: &approval.Answer{ID: "a3", State: approval.Approved}}}})
	f.wants(err, journal.ErrUnknown) // not from another thread
	_, err = f.s.Commit(f.ctx(), journal.Commit{Thread: thread, Epoch: row.Epoch, Approvals: []approval.Change{{New: &approval.Approval{ID: "a3"}}}})
	f.wants(err, journal.ErrDuplicate)
}

func testCancelRun(t *testing.T, f *fixture) {
	row := f.owner(thread)
	f.asks(row, "a1", "r")
	f.asks(row, "a2", "r")
	f.asks(row, "a3", "another")
	f.ok(f.answers("a1", approval.Approved))
	c := journal.Commit{Thread: thread, Events: []chat.Event{{Body: chat.AbortAsked{Run: "r", By: "local:ada"}}}, Approvals: []approval.Change{{CancelRun: "r"}}}
	must[journal.Committed](t)(f.s.Commit(f.ctx(), c))
	for id, state := range map[string]approval.State{"a1": approval.Approved, "a2": approval.Cancelled, "a3": approval.Open} {
		f.equal(id, must[approval.Approval](t)(f.s.Approval(f.ctx(), id)).State, state)
	}
	f.wants(f.answers("a2", approval.Approved), journal.ErrSettled)
	pending := must[[]approval.Approval](t)(f.s.Approvals(f.ctx(), store.ApprovalFilter{State: approval.Open}))
	if len(pending) != 1 || pending[0].ID != "a3" {
		t.Fatalf("pending: %+v", pending)
	}
}

func testDue(t *testing.T, f *fixture) {
	row := f.owner(thread)
	now := time.Now().UTC().Truncate(time.Microsecond)
	for id, at := range map[string]time.Time{"past": now.Add(-time.Second), "now": now, "future": now.Add(time.Hour), "never": {}} {
		f.pays(row, nil)
		c := journal.Commit{Thread: thread, Epoch: row.Epoch, Approvals: []approval.Change{{New: &approval.Approval{ID: id, Run: "r", Deadline: at}}}}
		must[journal.Committed](t)(f.s.Commit(f.ctx(), c))
		f.equal("deadline of "+id, must[approval.Approval](t)(f.s.Approval(f.ctx(), id)).Deadline, at)
	}
	due := must[[]approval.Approval](t)(f.s.Approvals(f.ctx(), store.ApprovalFilter{State: approval.Open, Due: now, Thread: thread, Run: "r"}))
	f.equal("due", len(due), 2)
	f.equal("overdue", len(must[[]approval.Approval](t)(f.s.Overdue(f.ctx(), now))), 2)
	f.ok(f.answers("past", approval.Expired))
	f.equal("overdue and still open", len(must[[]approval.Approval](t)(f.s.Overdue(f.ctx(), now))), 1)
}

func testLastRun(t *testing.T, f *fixture) {
	row := f.owner(thread)
	_, err := f.s.LastRun(f.ctx(), thread)
	f.wants(err, journal.ErrUnknown)
	f.equal("before the first", must[int64](t)(f.s.LastRunAt(f.ctx(), thread)), int64(0))
	for _, run := range []string{"r1", "r2"} {
		f.owns(row, chat.Event{Run: run, Body: chat.RunStarted{Run: run}}, chat.Event{Run: run, Body: chat.RunEnded{Run: run}})
	}
	f.equal("last run", must[string](t)(f.s.LastRun(f.ctx(), thread)), "r2")
	f.equal("its beginning", must[int64](t)(f.s.LastRunAt(f.ctx(), thread)), int64(3))
}

func testAudit(t *testing.T, f *fixture) {
	row := f.owner(thread)
	line := approval.Audit{Agent: "main", Run: "r", Call: "c", Principal: chat.Principal{Kind: chat.LocalUser, ID: "ada", Name: "Ada"},
		Action: "shell ls", Decision: "allow", Rule: "allow shell", Detail: "d"}
	for range 3 {
		_, err := f.s.Commit(f.ctx(), journal.Commit{Thread: row.ID, Epoch: row.Epoch, Audit: []approval.Audit{line}})
		f.ok(err)
	}
	log := must[[]audit.Line](t)(f.s.AuditLog(f.ctx(), audit.Filter{Thread: thread, Principal: "local:ada", Limit: 2}))
	f.equal("lines", len(log), 2)
	if log[0].ID < log[1].ID {
		t.Fatal("the newest does not come first")
	}
	line.Thread = thread
	if !reflect.DeepEqual(log[0].Audit, line) || log[0].At.IsZero() {
		t.Fatalf("read %+v", log[0])
	}
	rest := must[[]audit.Line](t)(f.s.AuditLog(f.ctx(), audit.Filter{Before: log[1].ID, Agent: "main", Run: "r", Decision: "allow"}))
	f.equal("the rest", len(rest), 1)
	none := must[[]audit.Line](t)(f.s.AuditLog(f.ctx(), audit.Filter{Since: time.Now().Add(time.Hour)}))
	f.equal("of tomorrow", len(none), 0)
}
