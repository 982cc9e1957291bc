package store

import (
	"fmt"

	"chorus/internal/approval"
	"chorus/internal/chat"
	"chorus/internal/journal"
	"chorus/internal/ledger"
)

// refView is what an owner knows of a thread: the fold of the events it has
// read, and in the two flying fields what only its memory holds. After a crash
// everything but these is there again.
type refView struct {
	epoch, seen int64
	wake        bool

	waiting []int64
	run     string // "" when none is on
	abort   bool
	step    int
	attempt int
	lost    int  // attempts of this step that nobody answered
	asked   bool // a model call is out
	done    bool // the last answer had no calls
	calls   []*callView

	flyingAsk  bool   // the model call that is out is mine, now
	flyingCall string // the tool that runs is mine, now
}

type callView struct {
	id       string
	began    bool
	ran      bool
	asked    string // approval id
	answered bool
	ok       bool
}

// fold adds events to the view.
func (v *refView) fold(events []chat.Event) {
	for _, e := range events {
		v.seen = e.Seq + 1
		if journal.IsPrompt(e.Body) {
			v.waiting = append(v.waiting, e.Seq)
		}
		switch b := e.Body.(type) {
		case chat.Refused:
			v.drop(b.Seq)
		case chat.Deleted:
			v.drop(b.Seq)
		case chat.Took:
			for _, seq := range b.Seqs {
				v.drop(seq)
			}
		case chat.RunStarted:
			v.run, v.abort, v.step, v.attempt, v.lost = b.Run, false, 0, 0, 0
			v.asked, v.done, v.calls = false, false, nil
		case chat.RunEnded:
			v.run, v.asked, v.done, v.calls = "", false, false, nil
		case chat.AbortAsked:
			v.abort = v.abort || v.run != "" && b.Run == v.run
		case chat.Asked:
			if b.Step != v.step {
				v.lost = 0
			} else {
				v.lost++
			}
			v.step, v.attempt, v.asked, v.calls = b.Step, b.Attempt, true, nil
		case chat.Said:
			v.asked, v.lost, v.calls = false, 0, nil
			for _, use := range b.Blocks.Calls() {
				v.calls = append(v.calls, &callView{id: use.ID})
			}
			v.done = len(v.calls) == 0
		case chat.ToolBegan:
			v.call(b.Call).began = true
		case chat.ToolRan:
			v.call(b.Call).ran = true
		case chat.ApprovalAsked:
			c := v.call(b.Call)
			c.asked, c.answered = b.ID, false
		case chat.ApprovalAnswered:
			if c := v.call(b.Call); c.asked == b.ID {
				c.answered, c.ok = true, b.OK
			}
		}
	}
}

func (v *refView) drop(seq int64) {
	for i, w := range v.waiting {
		if w == seq {
			v.waiting = append(v.waiting[:i:i], v.waiting[i+1:]...)
			return
		}
	}
}

func (v *refView) call(id string) *callView {
	for _, c := range v.calls {
		if c.id == id {
			return c
		}
	}
	return &callView{} // of a run that is over
}

// chooser decides what the world leaves open: a number between lo and hi. Small
// numbers are drawn more often, so they stand for what is worth trying.
type chooser func(what string, lo, hi int) int

// next is the owner's next commit, as RUNTIME.md orders them; nil when there is
// nothing to do. after runs when the commit is known to have happened.
func (v *refView) next(choose chooser, id chat.ThreadID, fresh func() string) (c *journal.Commit, name string, after func()) {
	c = &journal.Commit{Thread: id, Epoch: v.epoch}
	add := func(body chat.Body) { c.Events = append(c.Events, chat.Event{Run: v.run, Body: body}) }
	switch {
	case v.run == "" && len(v.waiting) > 0:
		run := "run-" + fresh()
		n := choose("takes", 1, len(v.waiting))
		c.Expect, c.Status = v.seen, chat.Running
		c.Events = []chat.Event{{Run: run, Body: chat.RunStarted{Run: run}}, {Run: run, Body: chat.Took{Run: run, Seqs: append([]int64{}, v.waiting[:n]...)}}}
		return c, "T2", nil
	case v.run == "" && v.wake:
		c.Expect = v.seen
		return c, "nothing to do", nil
	case v.run == "":
		return nil, "", nil
	case v.abort || v.lost >= 3:
		reason := chat.EndAborted
		if !v.abort {
			reason = chat.EndFailed
		}
		for _, call := range v.calls {
			if !call.ran {
				add(chat.ToolRan{Call: call.id, Outcome: chat.Interrupted})
			}
		}
		add(chat.RunEnded{Run: v.run, Reason: reason})
		c.Expect, c.Status = v.seen, chat.Idle
		c.Approvals = []approval.Change{{CancelRun: v.run}}
		return c, "T9 aborted", nil
	case v.asked && v.flyingAsk:
		return v.says(choose, c, fresh)
	case v.done:
		add(chat.RunEnded{Run: v.run, Reason: chat.EndDone})
		c.Expect, c.Status = v.seen, chat.Idle
		return c, "T9", nil
	}
	for _, call := range v.calls {
		if !call.ran {
			return v.resolves(choose, c, call, fresh)
		}
	}
	return v.asks(choose, c)
}

// asks is T3: the next step, or after a lost attempt the same one again; words
// that came meanwhile may be taken with it.
func (v *refView) asks(choose chooser, c *journal.Commit) (*journal.Commit, string, func()) {
	step, attempt := v.step+1, 1
	if v.asked {
		step, attempt = v.step, v.attempt+1
	}
	if len(v.waiting) > 0 && choose("takes later", 0, 1) == 0 {
		c.Events = append(c.Events, chat.Event{Run: v.run, Body: chat.Took{Run: v.run, Step: step, Seqs: []int64{v.waiting[0]}}})
	}
	if len(c.Events) > 0 && choose("looks again", 0, 1) == 0 {
		return c, "hasty take", nil // without Expect: only the prompt's own mark protects it
	}
	c.Events = append(c.Events, chat.Event{Run: v.run, Body: chat.Asked{Step: step, Attempt: attempt}})
	c.Expect, c.Status = v.seen, chat.Running
	c.Money = []ledger.Entry{{Run: v.run, Step: step, Attempt: attempt, Reserved: 10}}
	return c, "T3", func() { v.flyingAsk = true }
}

// says is T4.
func (v *refView) says(choose chooser, c *journal.Commit, fresh func() string) (*journal.Commit, string, func()) {
	said := chat.Said{Step: v.step, Attempt: v.attempt, Stop: chat.StopTools}
	for range 2 - choose("quiet", 0, 2) {
		said.Blocks = append(said.Blocks, chat.ToolUse{ID: "call-" + fresh(), Name: "tool"})
	}
	c.Events = []chat.Event{{Run: v.run, Body: said}}
	c.Money = []ledger.Entry{{Run: v.run, Step: v.step, Attempt: v.attempt, How: ledger.ByUsage, Settled: 3}}
	return c, "T4", func() { v.flyingAsk = false }
}

// resolves is T5, T7 or T8 for the first call without a result.
func (v *refView) resolves(choose chooser, c *journal.Commit, call *callView, fresh func() string) (*journal.Commit, string, func()) {
	ran := func(outcome chat.Outcome) {
		c.Status = chat.Running
		c.Events = []chat.Event{{Run: v.run, Body: chat.ToolRan{Call: call.id, Outcome: outcome}}}
	}
	switch {
	case call.began && v.flyingCall == call.id:
		ran(chat.Ran)
		return c, "T8", func() { v.flyingCall = "" }
	case call.began:
		ran(chat.Interrupted)
		return c, "T8 interrupted", nil
	case call.asked != "" && !call.answered && !v.wake:
		return nil, "", nil // suspended
	case call.asked != "" && !call.answered:
		c.Expect = v.seen // woken by something that is for later
		return c, "nothing to do", nil
	case call.answered && !call.ok:
		ran(chat.Denied)
		return c, "T8 denied", nil
	case call.asked == "" && choose("gate", 0, 2) == 0:
		id := "approval-" + fresh()
		c.Status = chat.Waiting
		c.Events = []chat.Event{{Run: v.run, Body: chat.ApprovalAsked{ID: id, Call: call.id}}}
		c.Approvals = []approval.Change{{New: &approval.Approval{ID: id, Run: v.run, Call: chat.ToolUse{ID: call.id}}}}
		return c, "T5", nil
	case call.asked == "" && choose("reads only", 0, 1) == 1:
		ran(chat.Ran)
		return c, "T8", nil
	}
	c.Expect, c.Status = v.seen, chat.Running
	c.Events = []chat.Event{{Run: v.run, Body: chat.ToolBegan{Call: call.id}}}
	return c, "T7", func() { v.flyingCall = call.id }
}

func (v *refView) String() string {
	return fmt.Sprintf("epoch %d seen %d run %q step %d.%d waiting %v", v.epoch, v.seen, v.run, v.step, v.attempt, v.waiting)
}
