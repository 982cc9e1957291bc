package repl

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"chorus/internal/chat"
	"chorus/internal/markdown"
)

// presenter turns items into news. It holds the current state and shows nothing.
type presenter struct {
	label func(name string, args []byte) string
	name  func(key string) string // a person's display name
	now   func() time.Time

	last    int64 // number of the last event seen
	run     string
	over    map[string]bool // ended runs; late pieces of them are ignored, however many runs later they arrive
	since   time.Time       // when the current state of the run began
	calls   []*call         // without a result, in order of creation
	prompts map[int64]heard
	order   []int64 // the keys of prompts in order
	usage   chat.Usage
	context int // tokens of the conversation in the model's view; 0: unknown
	cost    int64

	step, attempt int
	shown         strings.Builder // the text of this attempt that was passed on
	closed        bool            // this attempt has its Said
	compacting    bool
	thinking      bool
	retryUntil    time.Time
}

// presenterOf returns a presenter for a session.
func presenterOf(s Session) *presenter {
	t := newPresenter(s.Label)
	if known, ok := s.(Namer); ok {
		t.name = known.NameOf
	}
	return t
}

func newPresenter(label func(string, []byte) string) *presenter {
	return &presenter{label: label, name: func(key string) string { return chat.PrincipalOf(key).Label() }, now: time.Now, over: map[string]bool{}, prompts: map[int64]heard{}, closed: true, step: -1}
}

// tell takes the next item.
func (t *presenter) tell(it Item) []news {
	if it.Event != nil {
		if it.Event.Seq > 0 {
			if it.Event.Seq <= t.last {
				return nil // seen before the watch was restarted
			}
			t.last = it.Event.Seq
		}
		return t.event(*it.Event)
	}
	switch live := it.Live.(type) {
	case chat.Delta:
		return t.delta(live)
	case chat.Progress:
		t.progress(live)
	}
	return nil
}

func (t *presenter) event(e chat.Event) []news {
	switch b := e.Body.(type) {
	case chat.Received:
		if b.Prompt {
			t.wait(e.Seq, heard{from: b.From, text: b.Blocks.Text()})
		}
	case chat.Edited:
		if h, ok := t.prompts[b.Seq]; ok && !b.Files {
			h.text = b.Blocks.Text()
			t.prompts[b.Seq] = h
		}
	case chat.Deleted:
		t.unwait(b.Seq)
	case chat.Refused:
		t.unwait(b.Seq)
		return []news{remark{text: "not taken: " + b.Why, bad: true}}
	case chat.RunStarted:
		t.run, t.since = b.Run, t.now()
		t.begin(-1, 0)
		t.closed, t.calls = true, nil
		return []news{opened{b}}
	case chat.Took:
		return t.took(b)
	case chat.Asked:
		t.run = cmp.Or(e.Run, t.run)
		out := t.begin(b.Step, b.Attempt)
		t.compacting = b.Purpose == chat.ForCompaction
		t.closed = t.compacting // its text is not for people
		return out
	case chat.Said:
		t.run = cmp.Or(e.Run, t.run)
		return t.said(b)
	case chat.ToolBegan:
		return t.toolBegan(b)
	case chat.Deferred:
		return t.toolBegan(chat.ToolBegan{Call: b.Call, Name: b.Name})
	case chat.ToolRan:
		return t.toolRan(b)
	case chat.ApprovalAsked, chat.ApprovalAnswered:
		return t.approval(b)
	case chat.ApprovalNoted:
		if b.What == chat.Reminder {
			return []news{remark{text: "an approval is still pending"}}
		}
		return []news{remark{text: t.name(b.By) + " approved; another person must approve too"}}
	case chat.Steered:
		h := heard{from: b.From, text: b.Blocks.Text(), mode: b.Mode}
		t.wait(e.Seq, h)
	case chat.Compacted:
		t.usage = t.usage.Plus(b.Usage)
		t.compacting, t.context = false, 0
		return []news{remark{text: "the conversation so far was summarized to make room"}}
	case chat.Rolled:
		t.context = 0
		return []news{remark{text: olderLeft(b)}}
	case chat.Cleared:
		t.context = 0
		return []news{remark{text: "the context was cleared"}}
	case chat.RunEnded:
		return t.runEnded(b)
	case chat.AbortAsked, chat.Noted, chat.Imported, chat.Forked, chat.Reacted:
		// Their effects are shown by other events.
	}
	return nil
}

func olderLeft(b chat.Rolled) string {
	if b.Because == "" {
		return "older messages are outside the window"
	}
	return "older messages are outside the window (" + b.Because + ")"
}

func (t *presenter) wait(seq int64, h heard) {
	t.prompts[seq] = h
	t.order = append(t.order, seq)
}

func (t *presenter) unwait(seq int64) (heard, bool) {
	h, ok := t.prompts[seq]
	if !ok {
		return heard{}, false
	}
	delete(t.prompts, seq)
	for i, s := range t.order {
		if s == seq {
			t.order = append(t.order[:i:i], t.order[i+1:]...)
			break
		}
	}
	return h, true
}

func (t *presenter) took(b chat.Took) []news {
	t.run = cmp.Or(b.Run, t.run)
	var out []news
	for _, seq := range b.Seqs {
		if h, ok := t.unwait(seq); ok {
			out = append(out, h)
		}
	}
	return out
}

// begin prepares for a new attempt at a message.
func (t *presenter) begin(step, attempt int) []news {
	if step == t.step && attempt == t.attempt {
		return nil
	}
	var out []news
	if t.shown.Len() > 0 && !t.closed {
		out = append(out, wroteVoid{}) // the attempt was lost without an end
	}
	t.step, t.attempt = step, attempt
	t.shown.Reset()
	t.closed, t.thinking, t.compacting = false, false, false
	t.since, t.retryUntil = t.now(), time.Time{}
	return out
}

func (t *presenter) delta(d chat.Delta) []news {
	if t.over[d.Run] || d.Run != t.run && t.run != "" || d.Step < t.step || d.Step == t.step && d.Attempt < t.attempt {
		return nil // belongs to something that has ended
	}
	t.run = d.Run
	out := t.begin(d.Step, d.Attempt)
	if t.closed {
		return out
	}
	t.thinking = d.What == chat.DeltaThinking
	have := t.shown.Len()
	if d.What != chat.DeltaText || d.Offset > have || d.Offset+len(d.Text) <= have || d.Offset < 0 {
		return out // no text, after a gap (the Said will fill it), or known
	}
	text := d.Text[have-d.Offset:]
	t.shown.WriteString(text)
	return append(out, wrote{text})
}

func (t *presenter) said(b chat.Said) []news {
	out := t.begin(b.Step, b.Attempt)
	t.usage = t.usage.Plus(b.Usage)
	if t.compacting && b.Error == nil {
		return out
	}
	if n := b.Usage.Total(); n > 0 && b.Error == nil {
		t.context = n
	}
	wasClosed := t.closed
	t.closed = true
	if b.Error != nil {
		if t.shown.Len() > 0 && !wasClosed {
			out = append(out, wroteVoid{})
		}
		t.shown.Reset()
		if b.Error.Final {
			return out // the run's end says it
		}
		t.since = t.now()
		t.retryUntil = t.since.Add(time.Duration(b.Error.RetryMS) * time.Millisecond)
		return append(out, remark{text: retryWords(*b.Error), bad: true})
	}
	text := b.Blocks.Text()
	if chat.IsSilent(text) {
		text = "" // there is nothing to say
	}
	shown := t.shown.String()
	if !strings.HasPrefix(text, shown) {
		out = append(out, wroteVoid{})
		shown = ""
	}
	if rest := text[len(shown):]; rest != "" {
		out = append(out, wrote{rest})
	}
	t.since = t.now()
	calls := b.Blocks.Calls()
	for _, c := range calls {
		label := markdown.Truncate(t.label(c.Name, c.Args), 300)
		t.calls = append(t.calls, &call{id: c.ID, name: c.Name, label: cmp.Or(label, c.Name), args: c.Args, since: t.now()})
	}
	return append(out, wroteAll{text: text, calls: len(calls) > 0, more: b.Stop == chat.StopLength})
}

func (t *presenter) find(id, name string) (*call, int) {
	for i, c := range t.calls {
		if c.id == id {
			return c, i
		}
	}
	return &call{id: id, name: name, label: markdown.Truncate(name, 80), since: t.now()}, -1
}

func (t *presenter) toolBegan(b chat.ToolBegan) []news {
	c, i := t.find(b.Call, b.Name)
	if i < 0 {
		t.calls = append(t.calls, c)
	}
	c.begun, c.waits, c.since = true, false, t.now()
	return []news{began{c}}
}

func (t *presenter) toolRan(b chat.ToolRan) []news {
	c, i := t.find(b.Call, b.Name)
	if i >= 0 {
		t.calls = append(t.calls[:i:i], t.calls[i+1:]...)
	}
	t.since = t.now()
	return []news{finished{c, t.named(b)}}
}

// named replaces the key by the name in a call that somebody elsewhere denied.
func (t *presenter) named(b chat.ToolRan) chat.ToolRan {
	rest, ok := strings.CutPrefix(b.Blocks.Text(), "denied by ")
	key, note, _ := strings.Cut(rest, ": ")
	by := chat.PrincipalOf(key)
	if !ok || b.Outcome != chat.Denied || by.Kind == "" || by.Kind == chat.LocalUser || strings.ContainsAny(key, " \n") {
		return b
	}
	said := "denied by " + t.name(key)
	if note != "" {
		said += ": " + note
	}
	b.Blocks = chat.TextBlocks(said)
	return b
}

func (t *presenter) approval(body chat.Body) []news {
	switch b := body.(type) {
	case chat.ApprovalAsked:
		if c, i := t.find(b.Call, b.Name); i >= 0 {
			c.waits = true
		}
		return []news{asked{b}}
	case chat.ApprovalAnswered:
		c, _ := t.find(b.Call, "the call")
		c.waits, c.since = false, t.now()
		if b.By != "" && chat.PrincipalOf(b.By).Kind != chat.LocalUser {
			b.By = t.name(b.By)
		} else {
			b.By = "" // the person at this machine knows
		}
		return []news{settled{b, c.label}}
	}
	return nil
}

func (t *presenter) progress(p chat.Progress) {
	c, i := t.find(p.Call, p.Tool)
	if i < 0 {
		return
	}
	for line := range strings.SplitSeq(p.Text, "\n") {
		line = strings.TrimRight(line, "\r")
		if strings.HasPrefix(line, "\r") && len(c.progress) > 0 { // overwrites the previous line
			c.progress = c.progress[:len(c.progress)-1]
		}
		if line = line[strings.LastIndexByte(line, '\r')+1:]; strings.TrimSpace(line) != "" {
			c.progress = append(c.progress, markdown.Truncate(line, 300))
		}
	}
	c.progress = c.progress[max(0, len(c.progress)-liveLines):]
}

func (t *presenter) runEnded(b chat.RunEnded) []news {
	t.cost += b.Cost
	t.over[b.Run] = true
	if t.run != "" && b.Run != t.run {
		return []news{ended{b}}
	}
	var out []news
	if t.shown.Len() > 0 && !t.closed {
		out = append(out, wroteAll{text: t.shown.String()})
	}
	t.run, t.calls, t.closed, t.compacting, t.thinking = "", nil, true, false, false
	t.retryUntil = time.Time{}
	t.shown.Reset()
	return append(out, ended{b})
}

// doing says what the run is doing, for a status line, and since when. It
// is empty if no run is active.
func (t *presenter) doing() (what string, since time.Time) {
	if t.run == "" {
		return "", time.Time{}
	}
	for _, c := range t.calls {
		if c.waits {
			return "waiting for an answer: " + c.label, c.since
		}
	}
	for _, c := range t.calls {
		if c.begun {
			return "→ " + c.label, c.since
		}
	}
	switch {
	case len(t.calls) > 0:
		return "→ " + t.calls[0].label, t.calls[0].since
	case t.compacting:
		return "summarizing the conversation", t.since
	case t.now().Before(t.retryUntil):
		return "waiting before the next attempt", t.since
	case t.thinking:
		return "thinking", t.since
	case t.shown.Len() > 0 && !t.closed:
		return "writing", t.since
	}
	return "waiting for the model", t.since
}

// output are the last lines of the running calls.
func (t *presenter) output() []string {
	for i := len(t.calls) - 1; i >= 0; i-- {
		if len(t.calls[i].progress) > 0 {
			return t.calls[i].progress
		}
	}
	return nil
}

// retryWords says what went wrong and what happens next.
func retryWords(f chat.Failure) string {
	what := map[string]string{
		"overloaded": "overloaded", "rate_limit": "too many requests", "network": "the connection failed",
	}[f.Kind]
	if what == "" {
		what = cmp.Or(markdown.Truncate(f.Message, 200), f.Kind, "the attempt failed")
	}
	if f.Next != "" {
		return what + ", asking " + f.Next + " instead"
	}
	if f.RetryMS <= 0 {
		return what + ", trying again"
	}
	return fmt.Sprintf("%s, trying again in %s", what, seconds(time.Duration(f.RetryMS)*time.Millisecond))
}

func seconds(d time.Duration) string {
	if d < time.Second {
		return "a moment"
	}
	return fmt.Sprintf("%d s", int((d+time.Second/2)/time.Second))
}
