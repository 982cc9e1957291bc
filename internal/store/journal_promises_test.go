package store

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"

	"pgregory.net/rapid"

	"chorus/internal/approval"
	"chorus/internal/chat"
	"chorus/internal/journal"
	"chorus/internal/ledger"
)

// active lists this life's threads that the sweep would see.
func (m *machine) active(t *rapid.T, db *DB) []chat.ThreadID {
	rows, err := db.ActiveThreads(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	var out []chat.ThreadID
	for _, row := range rows {
		if slices.Contains(m.ids, row.ID) {
			out = append(out, row.ID)
		}
	}
	return out
}

// check compares the whole of both journals and holds the store to the promises.
func (m *machine) check(t *rapid.T) {
	db := m.dbs[m.fresh%2]
	active := m.active(t, db)
	for _, id := range m.ids {
		want, ok := m.ref.threads[id]
		if !ok {
			continue
		}
		row, err := db.Thread(context.Background(), id)
		if err != nil {
			t.Fatal(err)
		}
		got := refThread{row.Epoch, row.Next, row.Waiting, row.Wake, row.Status}
		if got != want {
			t.Fatalf("thread %s: store %+v, reference %+v", id, got, want)
		}
		events := m.read(t, db, id, 0)
		m.sameEvents(t, db, id, events)
		promisesOfThread(t, row, events, slices.Contains(active, id))
		m.promisesOfApprovals(t, db, id, events)
	}
	m.promisesOfMoney(t, db)
}

func (m *machine) sameEvents(t *rapid.T, db *DB, id chat.ThreadID, events []chat.Event) {
	var taken []string
	err := db.Query(context.Background(), `SELECT CASE taken WHEN 0 THEN 'waiting' WHEN 1 THEN 'gone' ELSE 'no prompt' END
		FROM events WHERE thread_id = ? ORDER BY seq`, []any{string(id)}, func(rows *sql.Rows) error {
		var s string
		err := rows.Scan(&s)
		taken = append(taken, s)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	want := m.ref.events[id]
	if len(events) != len(want) {
		t.Fatalf("thread %s: store has %d events, reference %d", id, len(events), len(want))
	}
	for i, e := range events {
		if e.Body.Kind() != want[i].kind || taken[i] != want[i].taken {
			t.Fatalf("thread %s event %d: store %s (%s), reference %s (%s)", id, e.Seq, e.Body.Kind(), taken[i], want[i].kind, want[i].taken)
		}
	}
}

// promisesOfThread reads a thread as anybody could and finds what must not be.
func promisesOfThread(t *rapid.T, row journal.Thread, events []chat.Event, active bool) {
	said, ran, tookBy := map[string]bool{}, map[string]bool{}, map[int64]bool{}
	gone := map[int64]bool{} // refused or deleted while waiting
	lastEpoch := int64(0)
	for i, e := range events {
		if e.Seq != int64(i+1) {
			t.Fatalf("number %d stands at place %d", e.Seq, i+1)
		}
		if s, ok := strings.CutPrefix(e.Who, "owner:"); ok {
			var epoch int64
			_, _ = fmt.Sscan(s, &epoch)
			if epoch < lastEpoch {
				t.Fatalf("event %d: owner %d wrote after owner %d", e.Seq, epoch, lastEpoch)
			}
			lastEpoch = epoch
		}
		switch b := e.Body.(type) {
		case chat.Took:
			for _, seq := range b.Seqs {
				if tookBy[seq] || gone[seq] || seq >= e.Seq || !journal.IsPrompt(events[seq-1].Body) {
					t.Fatalf("event %d takes %d, which is not waiting", e.Seq, seq)
				}
				tookBy[seq] = true
			}
		case chat.Refused:
			gone[b.Seq] = gone[b.Seq] || b.Seq < e.Seq && !tookBy[b.Seq]
		case chat.Deleted:
			gone[b.Seq] = gone[b.Seq] || b.Seq < e.Seq && !tookBy[b.Seq]
		case chat.Said:
			for _, use := range b.Blocks.Calls() {
				said[use.ID] = true
			}
		case chat.ToolRan:
			if !said[b.Call] || ran[b.Call] {
				t.Fatalf("event %d: a result for %s, said %v, had one %v", e.Seq, b.Call, said[b.Call], ran[b.Call])
			}
			ran[b.Call] = true
		case chat.ToolBegan:
			if !said[b.Call] || ran[b.Call] {
				t.Fatalf("event %d: %s began, said %v, had its result %v", e.Seq, b.Call, said[b.Call], ran[b.Call])
			}
		}
	}
	waiting := 0
	for _, e := range events {
		if journal.IsPrompt(e.Body) && !tookBy[e.Seq] && !gone[e.Seq] {
			waiting++
		}
	}
	if waiting != row.Waiting || row.Next != int64(len(events)+1) {
		t.Fatalf("the row says %d waiting, next %d; the events say %d, %d", row.Waiting, row.Next, waiting, len(events)+1)
	}
	if why := couldMove(row, events); why != "" && !active {
		t.Fatalf("thread %s is asleep, but %s", row.ID, why)
	}
}

// couldMove says why somebody should be working on the thread; empty if nobody need.
func couldMove(row journal.Thread, events []chat.Event) string {
	v := &refView{}
	v.fold(events)
	switch row.Status {
	case chat.Running:
		return "its run is on"
	case chat.Idle, chat.Failed:
		if row.Waiting > 0 {
			return "prompts are waiting"
		}
	case chat.Waiting:
		if v.abort {
			return "its run shall end"
		}
		for _, c := range v.calls {
			if !c.ran {
				if c.answered {
					return "its approval was answered"
				}
				break
			}
		}
	}
	return ""
}

func (m *machine) promisesOfApprovals(t *rapid.T, db *DB, id chat.ThreadID, events []chat.Event) {
	answers := map[string]int{}
	for _, e := range events {
		if a, ok := e.Body.(chat.ApprovalAnswered); ok {
			answers[a.ID]++
		}
	}
	rows, err := db.Approvals(context.Background(), ApprovalFilter{Thread: id, Limit: 1000})
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, want := range m.ref.approvals {
		if want.thread == id {
			n++
		}
	}
	if len(rows) != n {
		t.Fatalf("store has %d approvals, reference %d", len(rows), n)
	}
	for _, a := range rows {
		if a.State != m.ref.approvals[a.ID].state {
			t.Fatalf("approval %s: store %s, reference %s", a.ID, a.State, m.ref.approvals[a.ID].state)
		}
		settled := a.State != approval.Open
		if answers[a.ID] > 1 || answers[a.ID] == 1 && !settled {
			t.Fatalf("approval %s is %s and has %d answers", a.ID, a.State, answers[a.ID])
		}
	}
}

// promisesOfMoney: an open entry belongs to the last attempt of a run that is on.
func (m *machine) promisesOfMoney(t *rapid.T, db *DB) {
	seen := 0
	for _, run := range m.runs {
		entries, err := db.LedgerEntries(context.Background(), run)
		if err != nil {
			t.Fatal(err)
		}
		for i, e := range entries {
			want := m.ref.ledger[refCall{run, e.Step, e.Attempt}]
			if got := (refEntry{e.Reserved, e.Settled, e.How}); got != want {
				t.Fatalf("ledger %s %d.%d: store %+v, reference %+v", run, e.Step, e.Attempt, got, want)
			}
			if e.How == ledger.Open && i != len(entries)-1 {
				t.Fatalf("ledger %s %d.%d is open, but not the last attempt", run, e.Step, e.Attempt)
			}
			seen++
		}
	}
	if seen != len(m.ref.ledger) {
		t.Fatalf("store has %d ledger entries, reference %d", seen, len(m.ref.ledger))
	}
}

// drain brings everything to its end: one owner that only looks at what is active,
// and somebody who answers what is asked. Then nothing may be left.
func (m *machine) drain(t *rapid.T) {
	least := func(what string, lo, hi int) int {
		if what == "quiet" {
			return hi // no more calls
		}
		return lo
	}
	const maxSteps = 2000 // steps; a life is far shorter
	for steps := 0; ; steps++ {
		if steps > maxSteps {
			t.Fatal("it does not come to an end")
		}
		if active := m.active(t, m.dbs[0]); len(active) > 0 {
			id := active[0]
			if v := m.owners[0][id]; v == nil || v.epoch != m.ref.threads[id].epoch {
				m.take(t, 0, id, noFault)
			}
			m.refresh(t, 0, id)
			c, name, after := m.plan(least, 0, id)
			if c == nil {
				t.Fatalf("thread %s is active, but its owner finds nothing to do: %v", id, m.owners[0][id])
			}
			err := m.commit(t, m.dbs[0], *c, noFault)
			m.learn(t, 0, id, m.owners[0][id], err, name, after)
			continue
		}
		pending := ""
		for _, id := range m.asked {
			if m.ref.approvals[id].state == approval.Open {
				pending = id
			}
		}
		if pending == "" {
			break
		}
		thread := m.ref.approvals[pending].thread
		body := chat.ApprovalAnswered{ID: pending, Call: m.callOf(t, thread, pending), OK: true}
		err := m.commit(t, m.dbs[1], journal.Commit{Thread: thread, Events: []chat.Event{{Body: body}},
			Approvals: []approval.Change{{Answer: &approval.Answer{ID: pending, State: approval.Approved}}}}, noFault)
		if err != nil {
			t.Fatal(err)
		}
	}
	m.check(t)
	for _, id := range m.ids {
		if row, ok := m.ref.threads[id]; ok && (row.waiting > 0 || row.status != chat.Idle || row.wake) {
			t.Fatalf("thread %s at the end: %+v", id, row)
		}
	}
	for call, e := range m.ref.ledger {
		if e.how == ledger.Open {
			t.Fatalf("ledger %+v is still open at the end", call)
		}
	}
}
