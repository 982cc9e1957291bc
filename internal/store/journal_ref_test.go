package store

import (
	"fmt"
	"maps"
	"slices"

	"chorus/internal/approval"
	"chorus/internal/chat"
	"chorus/internal/journal"
	"chorus/internal/ledger"
)

// refJournal is the journal's contract once more, in maps, with nothing in it
// that could be clever. The real store must agree with it after every step.
type refJournal struct {
	threads   map[chat.ThreadID]refThread
	events    map[chat.ThreadID][]refEvent
	approvals map[string]refApproval
	ledger    map[refCall]refEntry
	arrivals  map[string]bool
}

type refThread struct {
	epoch, next int64
	waiting     int
	wake        bool
	status      chat.Status
}

type refEvent struct {
	kind  chat.Kind
	key   string // platform, id, kind and version; empty without an id
	taken string // "no prompt", "waiting" or "gone"
}

type refApproval struct {
	thread chat.ThreadID
	run    string
	state  approval.State
}

type refCall struct {
	run           string
	step, attempt int
}

type refEntry struct {
	reserved, settled ledger.Nanos
	how               ledger.How
}

func newRef() *refJournal {
	return &refJournal{threads: map[chat.ThreadID]refThread{}, events: map[chat.ThreadID][]refEvent{},
		approvals: map[string]refApproval{}, ledger: map[refCall]refEntry{}, arrivals: map[string]bool{}}
}

func (r *refJournal) clone() *refJournal {
	c := &refJournal{threads: maps.Clone(r.threads), events: map[chat.ThreadID][]refEvent{},
		approvals: maps.Clone(r.approvals), ledger: maps.Clone(r.ledger), arrivals: maps.Clone(r.arrivals)}
	for id, events := range r.events {
		c.events[id] = slices.Clone(events)
	}
	return c
}

// refResult is what can be compared of a commit.
type refResult struct {
	Kinds   string // of the events written, with their numbers
	Next    int64
	Waiting int
}

func resultOf(c journal.Committed) refResult {
	out := refResult{Next: c.Next, Waiting: c.Waiting}
	for _, e := range c.Events {
		out.Kinds += fmt.Sprintf("%d:%s ", e.Seq, e.Body.Kind())
	}
	return out
}

func (r *refJournal) take(id chat.ThreadID) (refThread, error) {
	t, ok := r.threads[id]
	if !ok {
		return t, journal.ErrUnknown
	}
	t.epoch++
	r.threads[id] = t
	return t, nil
}

// commit is all or nothing: it works on a copy.
func (r *refJournal) commit(c journal.Commit) (refResult, error) {
	next := r.clone()
	out, err := next.apply(c)
	if err == nil {
		*r = *next
	}
	return out, err
}

func (r *refJournal) arrive(a journal.Arrival) (again bool, out []refResult, err error) {
	key := fmt.Sprint(a.Platform, a.Bot, a.What, a.PlatformID, a.Version)
	if r.arrivals[key] {
		return true, nil, nil
	}
	next := r.clone()
	next.arrivals[key] = true
	for _, c := range a.Commits {
		res, err := next.apply(c)
		if err != nil {
			return false, nil, err
		}
		out = append(out, res)
	}
	*r = *next
	return false, out, nil
}

func (r *refJournal) apply(c journal.Commit) (refResult, error) {
	t, ok := r.threads[c.Thread]
	switch {
	case !ok && c.Create == nil:
		return refResult{}, journal.ErrUnknown
	case !ok:
		t = refThread{next: 1, status: chat.Idle}
	case c.Epoch != 0 && t.epoch != c.Epoch:
		return refResult{}, journal.ErrFenced
	}
	if c.Expect != 0 && t.next != c.Expect {
		return refResult{}, journal.ErrMoved
	}
	var out refResult
	woken := false
	for _, e := range c.Events {
		refused := false
		if received, ok := e.Body.(chat.Received); ok && received.Prompt {
			refused = c.MaxWaiting > 0 && t.waiting+1 > c.MaxWaiting
		}
		if err := r.append(&t, c.Thread, e, refused, &out); err != nil {
			return out, err
		}
		if refused {
			no := chat.Event{Body: chat.Refused{Seq: t.next - 1}}
			if err := r.append(&t, c.Thread, no, false, &out); err != nil {
				return out, err
			}
		}
		woken = woken || journal.Wakes(e.Body) && !refused
	}
	if err := r.beside(c); err != nil {
		return out, err
	}
	r.mark(&t, c, woken)
	r.threads[c.Thread] = t
	out.Next, out.Waiting = t.next, t.waiting
	return out, nil
}

func (r *refJournal) mark(t *refThread, c journal.Commit, woken bool) {
	if c.Epoch == 0 {
		t.wake = t.wake || woken
		return
	}
	if c.Status != "" {
		t.status = c.Status
	}
	work := t.waiting > 0 && (t.status == chat.Idle || t.status == chat.Failed)
	if c.Expect != 0 {
		t.wake = work
	} else if c.Status != "" && work {
		t.wake = true
	}
}

func (r *refJournal) append(t *refThread, id chat.ThreadID, e chat.Event, refused bool, out *refResult) error {
	row := refEvent{kind: e.Body.Kind(), taken: "no prompt"}
	if e.PlatformID != "" {
		row.key = fmt.Sprint(e.Platform, e.PlatformID, row.kind, e.Version)
		for _, have := range r.events[id] {
			if have.key == row.key {
				return journal.ErrDuplicate
			}
		}
	}
	if journal.IsPrompt(e.Body) {
		row.taken = "waiting"
		t.waiting++
		if refused {
			row.taken = "gone"
			t.waiting--
		}
	}
	r.events[id] = append(r.events[id], row)
	out.Kinds += fmt.Sprintf("%d:%s ", t.next, row.kind)
	t.next++
	var seqs []int64
	must := false
	switch b := e.Body.(type) {
	case chat.Took:
		seqs, must = b.Seqs, true
	case chat.Deleted:
		seqs = []int64{b.Seq}
	case chat.Refused:
		seqs = []int64{b.Seq}
	}
	for _, seq := range seqs {
		if seq >= 1 && seq < t.next && r.events[id][seq-1].taken == "waiting" {
			r.events[id][seq-1].taken = "gone"
			t.waiting--
		} else if must {
			return journal.ErrMoved
		}
	}
	return nil
}

func (r *refJournal) beside(c journal.Commit) error {
	for _, m := range c.Money {
		key := refCall{m.Run, m.Step, m.Attempt}
		old, there := r.ledger[key]
		switch {
		case m.How != ledger.Open:
			if m.Reserved == 0 {
				m.Reserved = old.reserved
			}
			r.ledger[key] = refEntry{m.Reserved, m.Settled, m.How}
		case !there:
			r.assume(m.Run)
			r.ledger[key] = refEntry{reserved: m.Reserved}
		}
	}
	for _, e := range c.Events {
		if end, ok := e.Body.(chat.RunEnded); ok {
			r.assume(end.Run)
		}
	}
	for _, change := range c.Approvals {
		if a := change.New; a != nil {
			r.approvals[a.ID] = refApproval{c.Thread, a.Run, approval.Open}
		}
		if ans := change.Answer; ans != nil {
			a, ok := r.approvals[ans.ID]
			if !ok || a.thread != c.Thread {
				return journal.ErrUnknown
			}
			if a.state != approval.Open {
				return journal.ErrSettled
			}
			a.state = ans.State
			r.approvals[ans.ID] = a
		}
		for id, a := range r.approvals {
			if change.CancelRun != "" && a.run == change.CancelRun && a.thread == c.Thread && a.state == approval.Open {
				a.state = approval.Cancelled
				r.approvals[id] = a
			}
		}
	}
	return nil
}

// assume settles what is open of a run: money that may be spent is spent.
func (r *refJournal) assume(run string) {
	for key, e := range r.ledger {
		if key.run == run && e.how == ledger.Open {
			e.settled, e.how = e.reserved, ledger.Assumed
			r.ledger[key] = e
		}
	}
}
