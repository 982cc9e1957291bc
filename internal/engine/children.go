package engine

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"chorus/internal/bus"
	"chorus/internal/chat"
	"chorus/internal/journal"
	"chorus/internal/text"
)

// MaxDepth is how many agents may be nested below the one that people talk to, each working for the one above.
const MaxDepth = 3

// maxAnswer is how much of a child's answer its parent gets, in
// bytes. It is as much as one tool result may hold.
const maxAnswer = 48 << 10

// ancestor is a thread above one that an agent started, with its call that waits for it.
type ancestor struct {
	thread chat.ThreadID
	run    string
	call   string
}

// ancestors returns the threads that wait for this one, closest first.
func (e *Engine) ancestors(ctx context.Context, row journal.Thread) []ancestor {
	var out []ancestor
	for p := row.Parent; p.Thread != "" && p.Call != "" && len(out) < MaxDepth; {
		out = append(out, ancestor{p.Thread, p.Run, p.Call})
		above, err := e.timed.Thread(ctx, p.Thread)
		if err != nil {
			break // that thread is not told what happens below; nothing depends on it
		}
		p = above.Parent
	}
	return out
}

// ancestors returns those of the run's thread.
func (h *host) ancestors(ctx context.Context) []ancestor {
	if h.row.Parent.Call == "" {
		return nil
	}
	if h.above == nil {
		h.above = h.a.engine.ancestors(ctx, h.row)
	}
	return h.above
}

// settles returns the commit that ends the waiting of a thread's parent, once.
func (e *Engine) settles(row journal.Thread, answer string, failed bool) []journal.Commit {
	p := row.Parent
	if p.Thread == "" || p.Call == "" {
		return nil
	}
	c := e.guest(p.Thread, row.Agent, chat.Settled{Call: p.Call, Blocks: chat.TextBlocks(answer), Failed: failed})
	c.Events[0].Run, c.Events[0].Platform, c.Events[0].PlatformID = p.Run, "agent", p.Run+"/"+p.Call
	return []journal.Commit{c}
}

// ended returns the answer that a run's end gives to the parent.
func (h *host) ended(ctx context.Context, end chat.RunEnded) ([]journal.Commit, error) {
	if h.row.Parent.Call == "" {
		return nil, nil
	}
	said := h.said
	if run := h.a.log.Run(); said == "" && run != nil && run.Spoke { // it was said before a restart
		var err error
		if said, err = lastWords(ctx, h.a.engine.Journal, h.a.thread, run.Seq); err != nil {
			return nil, err
		}
	}
	answer, failed := said, end.Reason != chat.EndDone || strings.TrimSpace(said) == ""
	if failed {
		answer = fmt.Sprintf("agent %s did not finish (%s): %s", h.agent, end.Reason, end.Text)
		if said != "" {
			answer += "\nIts last words:\n" + said
		}
	}
	if len(answer) > maxAnswer {
		answer = text.Clip(answer, maxAnswer) + fmt.Sprintf("\n[cut: the whole answer is in session %s]", h.a.thread.Thread())
	}
	return h.a.engine.settles(h.row, answer, failed), nil
}

// lastWords returns the last text that an agent has said since an event.
func lastWords(ctx context.Context, j Reader, thread chat.ThreadID, since int64) (string, error) {
	last := ""
	for {
		events, err := j.Events(ctx, thread, since, page)
		if err != nil {
			return "", err
		}
		for _, ev := range events {
			since = ev.Seq
			if said, ok := ev.Body.(chat.Said); ok && said.Error == nil && strings.TrimSpace(said.Blocks.Text()) != "" {
				last = said.Blocks.Text()
			}
		}
		if len(events) < page {
			return last, nil
		}
	}
}

// stops ends the thread that works on a call which ended without its answer.
func (h *host) stops(call string) []journal.Commit {
	for _, c := range h.a.log.Calls() {
		if c.Use.ID != call || !c.Delegated() {
			continue
		}
		by := h.agent
		if run := h.a.log.Run(); run != nil && run.AbortedBy != "" {
			by = run.AbortedBy
		}
		return []journal.Commit{h.a.engine.guest(c.Deferred, by, chat.AbortAsked{By: by, All: true})}
	}
	return nil
}

// shownAbove shows in the threads above what is asked here: whoever
// asked the first agent answers for all of them.
func shownAbove(above []ancestor, who string, body chat.Body) []journal.Commit {
	var out []journal.Commit
	for _, a := range above {
		id := ""
		switch b := body.(type) {
		case chat.ApprovalAsked:
			b.Call, b.During, id = a.call, true, b.ID
			body = b
		case chat.ApprovalAnswered:
			b.Call, id = a.call, b.ID
			body = b
		case chat.ApprovalNoted:
			return nil // the approval is still open
		}
		out = append(out, journal.Commit{Thread: a.thread, Events: []chat.Event{{Thread: a.thread, Run: a.run, Who: who, Body: body, Platform: "agent", PlatformID: id}}})
	}
	return out
}

// progressAbove shows in the threads above what the agent is doing.
func (h *host) progressAbove(ctx context.Context, events []chat.Event) {
	above := h.ancestors(ctx)
	if len(above) == 0 {
		return
	}
	for _, ev := range events {
		said, ok := ev.Body.(chat.Said)
		if !ok || said.Error != nil {
			continue
		}
		var doing []string
		for _, c := range said.Blocks.Calls() {
			doing = append(doing, c.Name+" "+text.Clip(string(c.Args), 80))
		}
		line := cmp.Or(strings.Join(doing, ", "), "done")
		for _, a := range above {
			h.a.engine.Bus.Publish(a.thread, bus.Note{Live: chat.Progress{Run: a.run, Call: a.call, Tool: "spawn_agent", Text: h.agent + ": " + line}})
		}
	}
}

// wroteBeside notifies others of commits on other threads. If nobody
// else runs those threads, this process does.
func (e *Engine) wroteBeside(commits []journal.Commit, done []journal.Committed) {
	for i, c := range commits {
		if i >= len(done) || len(done[i].Events) == 0 {
			continue
		}
		if c.Create != nil {
			e.ownChild(c.Thread)
		}
		e.Bus.Publish(c.Thread, bus.Note{Events: done[i].Events})
		e.notifyWatchers(c.Thread)
		if slices.ContainsFunc(done[i].Events, func(ev chat.Event) bool { return journal.Wakes(ev.Body) }) {
			e.wake(c.Thread, true)
		}
	}
}

// ownChild makes this process run a thread that an agent here started, whatever Adopt says about it.
func (e *Engine) ownChild(thread chat.ThreadID) {
	if e.Adopt(thread) {
		return // a server would remember all of them forever
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.children[thread] = true
}

func (e *Engine) adopts(thread chat.ThreadID) bool {
	if e.draining() {
		return false
	}
	if e.Adopt(thread) {
		return true
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.children[thread]
}

// rest writes what a suspended run waits for: approval, or other agents. It wakes
// those agents, because after a crash nobody else may run them.
func (h *host) rest(ctx context.Context) error {
	want := h.status
	for _, c := range h.a.log.Calls() {
		switch {
		case c.Done:
		case c.Approval != "" && !c.Answered:
			want = chat.Waiting
		case c.Delegated():
			if want != chat.Waiting {
				want = chat.Delegated
			}
			h.a.engine.ownChild(c.Deferred)
			h.a.engine.Wake(c.Deferred)
		}
	}
	if want == h.status {
		return nil
	}
	if _, err := h.a.engine.Journal.Commit(ctx, journal.Commit{Thread: h.a.thread, Epoch: h.epoch, Expect: h.seen + 1, Status: want}); err != nil {
		return err
	}
	h.status = want
	return nil
}
