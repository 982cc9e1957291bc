package render

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"chorus/internal/chat"
)

// run is the folded state of one run.
type run struct {
	id      string
	model   string
	began   time.Time
	prompts []int64

	answer  []string // what the model said without making calls
	joined  bool     // its last piece continues without a break, because it was cut by the length limit
	aside   string   // what the model said before its last calls
	thought []words
	calls   []*call
	step    int
	attempt int
	usage   chat.Usage
	refused bool
	trouble string // why the last attempt failed
	live    string // the unfinished answer
	note    string // what the run itself says it is doing

	end   *chat.RunEnded
	ended time.Time
	told  []Message // the answer as messages, once requested
}

type words struct {
	step int
	text string
}

// call is a tool call in the status.
type call struct {
	id, name, label, args string
	note                  string
	done, failed          bool
	outcome               chat.Outcome
	took                  time.Duration
	began                 time.Time // zero if it has not begun or was over at once
	result                string
}

func (r *run) apply(ev chat.Event, o Options) {
	if r.end != nil {
		return // nothing comes after the end
	}
	switch b := ev.Body.(type) {
	case chat.Asked:
		r.step, r.attempt, r.live, r.note = b.Step, b.Attempt, "", ""
		if b.Purpose != chat.ForTurn && b.Purpose != "" {
			r.note = "compacting the conversation"
		}
	case chat.Said:
		r.said(b, o)
	case chat.Compacted:
		r.usage = r.usage.Plus(b.Usage)
	case chat.ToolBegan:
		if i := slices.IndexFunc(r.calls, func(c *call) bool { return c.id == b.Call && !c.done }); i >= 0 {
			r.calls[i].began = ev.At
		}
	case chat.ToolRan:
		r.ran(b)
	case chat.RunEnded:
		r.end, r.ended, r.live = &b, ev.At, ""
	}
}

func (r *run) said(b chat.Said, o Options) {
	r.usage = r.usage.Plus(b.Usage)
	r.live, r.trouble = "", ""
	if b.Error != nil {
		r.trouble = b.Error.Message
		if until := b.Error.Until; !until.IsZero() {
			r.trouble = fmt.Sprintf("until %s UTC: %s", until.UTC().Format("15:04"), r.trouble)
		}
		return
	}
	for _, block := range b.Blocks {
		if t, ok := block.(chat.Thinking); ok && strings.TrimSpace(t.Text) != "" {
			r.thought = append(r.thought, words{b.Step, t.Text})
		}
	}
	r.refused = b.Stop == chat.StopRefused
	text, uses := b.Blocks.Text(), b.Blocks.Calls()
	if len(uses) > 0 {
		if o.Preambles {
			r.add(text, false)
		}
		r.aside, r.joined = text, false
		for _, u := range uses {
			label := ""
			if o.Call != nil {
				label = o.Call(u.Name, u.Args)
			}
			r.calls = append(r.calls, &call{id: u.ID, name: u.Name, label: label, args: string(u.Args)})
		}
		return
	}
	r.add(text, b.Stop == chat.StopLength)
}

// add appends a piece of the answer. cut says that the next piece continues in mid-sentence.
func (r *run) add(text string, cut bool) {
	switch {
	case strings.TrimSpace(text) == "":
		return
	case r.joined && len(r.answer) > 0:
		r.answer[len(r.answer)-1] += text
	default:
		r.answer = append(r.answer, text)
	}
	r.joined = cut
}

func (r *run) ran(b chat.ToolRan) {
	i := slices.IndexFunc(r.calls, func(c *call) bool { return c.id == b.Call && !c.done })
	if i < 0 {
		return
	}
	c := r.calls[i]
	c.done, c.failed, c.outcome, c.note = true, b.Failed || b.Exit != 0, b.Outcome, ""
	c.took, c.result = time.Duration(b.TookMS)*time.Millisecond, b.Blocks.Text()
}

// delta adds a piece of the unfinished answer. A piece after a gap is ignored.
func (r *run) delta(d chat.Delta) {
	if r.end != nil || d.Step < r.step || d.Step == r.step && d.Attempt < r.attempt {
		return
	}
	switch d.Offset {
	case 0:
		r.live = d.Text
	case len(r.live):
		r.live += d.Text
	}
}

func (r *run) progress(p chat.Progress) {
	if p.Call == "" {
		r.note = p.Text
		return
	}
	if i := slices.IndexFunc(r.calls, func(c *call) bool { return c.id == p.Call && !c.done }); i >= 0 {
		r.calls[i].note = p.Text
	}
}

// final returns the final answer. What went wrong is appended to whatever there
// is. An answer without words and without problems is empty.
func (r *run) final(o Options) string {
	parts := make([]string, 0, len(r.answer)+1)
	for _, text := range r.answer {
		parts = append(parts, strings.TrimSpace(prepared(o, text)))
	}
	if r.end.Reason == chat.EndDone {
		if n := len(r.answer); n > 0 && chat.IsSilent(r.answer[n-1]) {
			return "" // the agent has nothing to say
		}
		if len(parts) == 0 {
			return strings.TrimSpace(r.end.Text)
		}
		return strings.Join(parts, "\n\n")
	}
	if len(parts) == 0 && strings.TrimSpace(r.aside) != "" {
		parts = append(parts, strings.TrimSpace(prepared(o, r.aside)))
	}
	return strings.Join(append(parts, notice(*r.end)), "\n\n")
}

func prepared(o Options, text string) string {
	if o.Words == nil {
		return text
	}
	return o.Words(text)
}

// notice says why there is no answer, or only part of one.
func notice(e chat.RunEnded) string {
	text := strings.TrimSpace(e.Text)
	if text == "" && e.Error != nil {
		text = strings.TrimSpace(e.Error.Message)
	}
	switch e.Reason {
	case chat.EndAborted:
		text = cmp.Or(text, "Stopped.")
		return "*" + text + "*"
	case chat.EndLimit:
		text = cmp.Or(text, "Stopped at the limit of model calls; the task may be incomplete.")
		return "*" + text + "*"
	case chat.EndBudget:
		return "**Out of budget.** " + text
	case chat.EndDenied:
		return "**Not allowed.** " + text
	default:
		return "**This did not work.** " + text
	}
}

// elapsed formats a running time for people. It gets coarser as it grows, so
// that a message is not edited for the sake of a second.
func elapsed(d time.Duration) string {
	s := max(int(d/time.Second), 0)
	switch {
	case s < 60:
		return fmt.Sprintf("%ds", s)
	case s < 600:
		return fmt.Sprintf("%dm %02ds", s/60, s%60/5*5)
	case s < 3600:
		return fmt.Sprintf("%dm", s/60)
	default:
		return fmt.Sprintf("%dh %02dm", s/3600, s%3600/60)
	}
}
