// Package transcript folds a thread's events into what the model is shown and what is still to be done.
//
// It is pure: the same events give the same requests, in every process and after every crash. The
// prefix is stable: the messages of a request begin with those of the previous request, unless a
// roll, a clear or a compaction lies between them. Pairs are complete: no history, however broken,
// yields a tool call without its result or a result without its call.
package transcript

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"chorus/internal/chat"
	"chorus/internal/model"
	"chorus/internal/text"
	"chorus/internal/window"
)

// Renderer names the way requests are rendered. Every run records it, so that
// a replay knows whether it can rebuild the request.
const Renderer = "chorus-2"

// firstRenderer kept deleted or edited words in the window until the next
// roll, and did not tell the model that a run had failed.
const firstRenderer = "chorus-1"

// Rebuilds reports whether the requests of a run with this renderer can be rebuilt.
func Rebuilds(renderer string) bool { return renderer == Renderer || renderer == firstRenderer }

// Log is the folded state of one thread. It is not safe for concurrent use.
type Log struct {
	seq          int64     // last event applied
	now          time.Time // time of the event that is being applied
	place        int64     // messages placed so far, ever
	window       []entry
	turn         *turn     // the last answer, until its results are placed
	pending      []item    // words and notes that get their place in the next request
	waiting      []Waiting // prompts nobody has taken
	run          *Run
	ended        *chat.RunEnded // the last run's end
	notes        map[string]string
	edits        map[int64]edit // edits of placed messages, applied at the next roll
	hidden       []entry        // messages that a reaction has hidden
	renderer     string         // of the last run
	read         []string       // files read since the last compaction
	modified     []string
	used         int            // tokens of the last answered request and its answer
	usedAt       int            // how many window messages that count covers
	headSize     int            // tokens of system prompt and tools
	rolled       int64          // messages placed when the window was last cut
	mark         int64          // place of the lasting cache mark
	sent         sent           // the last request that was answered
	acknowledged *model.Message // follows the summary of a conversation
	opening      *model.Message // precedes a window that begins with an answer
	shown        []shownTurn    // of the last request, where the run's dialogue settings change something
	shownAs      chat.Dialogue
	renewal      *item // an import that replaces everything before it once the run has ended

	blob func(hash string) ([]byte, error)
}

// New returns the log of an empty thread. blob loads imported lines; it may be nil if there are none.
func New(blob func(hash string) ([]byte, error)) *Log {
	return &Log{notes: map[string]string{}, edits: map[int64]edit{}, blob: blob}
}

// Seq returns the number of the last event applied.
func (l *Log) Seq() int64 { return l.seq }

// Run returns the current run, or nil.
func (l *Log) Run() *Run { return l.run }

// Ended returns the end of the last run, or nil before the first.
func (l *Log) Ended() *chat.RunEnded { return l.ended }

// Waiting returns the prompts that no run has taken, oldest first.
func (l *Log) Waiting() []Waiting { return l.waiting }

// Calls returns the calls of the last answer whose results are not placed yet.
func (l *Log) Calls() []Call {
	if l.turn == nil {
		return nil
	}
	return l.turn.Calls
}

// OpenCalls reports whether one of them has no result yet.
func (l *Log) OpenCalls() bool {
	return slices.ContainsFunc(l.Calls(), func(c Call) bool { return !c.Done })
}

// Unreadable reports whether a part of the last answer could not be read.
func (l *Log) Unreadable() bool { return l.turn != nil && l.turn.Unreadable }

// Cut reports whether the length limit stopped the last answer.
func (l *Log) Cut() bool { return l.turn != nil && l.turn.Cut }

// Note returns what this window last showed about something, or "".
func (l *Log) Note(what string) string { return l.notes[what] }

// Heard returns what people said since the last answer as text or,
// with all, what they said in the whole window.
func (l *Log) Heard(all bool) string {
	var out []string
	hear := func(kind entryKind, m *model.Message) {
		switch {
		case kind == words && m.Role == model.User:
			out = append(out, m.Blocks.Text())
		case kind == said && !all:
			out = nil
		}
	}
	for _, e := range l.window {
		hear(e.kind, e.msg)
	}
	for _, it := range l.pending {
		for _, m := range it.msgs {
			hear(it.kind, m)
		}
	}
	return strings.Join(out, "\n\n")
}

// Wanted returns the events whose files have yet to be fetched, among
// those that the next request shows for the first time.
func (l *Log) Wanted() []int64 {
	var out []int64
	for _, w := range l.waiting {
		if w.Blocks.Wanted() {
			out = append(out, w.Seq)
		}
	}
	for _, it := range l.pending {
		if slices.ContainsFunc(it.msgs, func(m *model.Message) bool { return m.Blocks.Wanted() }) {
			out = append(out, it.seq)
		}
	}
	return out
}

// Places returns how many messages have been placed so far.
func (l *Log) Places() int64 { return l.place }

// Begins returns the place of the first message in the window. It moves when the window is cut.
func (l *Log) Begins() int64 {
	if len(l.window) == 0 {
		return l.place + 1
	}
	return l.window[0].place
}

// PlaceOf returns the place of the message that event seq brought, or 0 if it is not in the window.
func (l *Log) PlaceOf(seq int64) int64 {
	for _, e := range l.window {
		if e.seq == seq {
			return e.place
		}
	}
	return 0
}

// Messages returns how many messages the window has.
func (l *Log) Messages() int { return len(l.window) }

// Shown returns how many messages the next request would have, not counting waiting prompts and notes.
func (l *Log) Shown() int {
	n := 0
	for _, e := range l.window {
		if e.kind != note {
			n++
		}
	}
	for _, it := range l.pending {
		if it.kind != note {
			n += len(it.msgs)
		}
	}
	return n
}

// PromptPlace returns the place of the nth prompt from the end, or 0 if there are fewer.
func (l *Log) PromptPlace(n int) int64 {
	for i := len(l.window) - 1; i >= 0; i-- {
		if e := l.window[i]; e.kind == words && e.msg.Role == model.User {
			if n--; n == 0 {
				return e.place
			}
		}
	}
	return 0
}

// Apply applies the next event. Events must come in order and without gaps.
func (l *Log) Apply(ev chat.Event) error {
	if ev.Seq != l.seq+1 {
		return fmt.Errorf("fold %s: event %d follows %d", ev.Thread, ev.Seq, l.seq)
	}
	l.now = ev.At
	if err := l.apply(ev); err != nil {
		return fmt.Errorf("fold event %d of %s: %w", ev.Seq, ev.Thread, err)
	}
	l.seq = ev.Seq
	return nil
}

// Suppose applies a result that is not in the journal yet, as if it were the next event.
// It returns a function that undoes this if something else becomes the next event.
// Between the two, only further Suppose calls are allowed.
func (l *Log) Suppose(ran chat.ToolRan) (takeBack func()) {
	before := *l
	var turnBefore turn
	var runBefore Run
	if l.turn != nil {
		turnBefore = *l.turn
		turnBefore.Calls = slices.Clone(l.turn.Calls)
	}
	if l.run != nil {
		runBefore = *l.run
	}
	l.ran(ran)
	l.seq++
	return func() {
		*l = before
		if l.turn != nil {
			*l.turn = turnBefore
		}
		if l.run != nil {
			*l.run = runBefore
		}
	}
}

func (l *Log) apply(ev chat.Event) error {
	switch b := ev.Body.(type) {
	case chat.Received:
		w := Waiting{ev.Seq, b.From, b.Principal, b.Blocks, b.Intake, false, b.Terms, b.Together, b.Silent, ""}
		if b.Prompt {
			l.waiting = append(l.waiting, w)
			return nil
		}
		if window.Hidden(window.Item{Text: b.Blocks.Text(), Heard: true}) {
			return nil
		}
		return l.pend(ev.Seq, words, model.User, b.From, b.Blocks)
	case chat.Steered:
		l.waiting = append(l.waiting, Waiting{ev.Seq, b.From, b.Principal, b.Blocks, b.Mode, true, b.Terms, false, false, ""})
	case chat.Refused:
		l.drop(b.Seq)
	case chat.Deleted:
		return l.deleted(ev.Seq, b)
	case chat.Edited:
		return l.edit(ev.Seq, b)
	case chat.Reacted:
		return l.reacted(ev.Seq, b)
	case chat.Forked:
		// Shown to people, but not part of the prompt.
	case chat.Imported:
		return l.imported(ev, b)
	case chat.RunStarted:
		l.run = &Run{ID: b.Run, Seq: ev.Seq, Model: b.Model, Head: b.Head, Settings: b.Settings, Principal: b.Principal, Terms: b.Terms, Started: ev.At}
		l.ended, l.renderer = nil, b.Renderer
		return l.settle()
	case chat.Took:
		return l.took(b)
	case chat.Noted:
		l.notes[b.What] = b.Knows()
		err := l.pend(ev.Seq, note, model.User, chat.Participant{Kind: chat.System},
			chat.TextBlocks(fmt.Sprintf("<note about=%q>\n%s\n</note>", b.What, b.Text)))
		if n := len(l.pending); err == nil && n > 0 && b.Whole == "" { // a difference means nothing without its base
			l.pending[n-1].what = b.What
		}
		return err
	case chat.Asked:
		return l.asked(ev.At, b)
	case chat.Said:
		return l.said(ev, b)
	case chat.ToolBegan:
		if c := l.call(b.Call); c != nil {
			c.Began = true
		}
	case chat.ToolRan:
		l.ran(b)
	case chat.Deferred:
		if c := l.call(b.Call); c != nil {
			c.Deferred = b.Thread
		}
	case chat.Settled:
		if c := l.call(b.Call); c != nil && c.Delegated() {
			c.Settled = &b
		}
	case chat.ApprovalAsked:
		if c := l.call(b.Call); c != nil && !b.During {
			c.Approval, c.Answered, c.OK = b.ID, false, false
		}
	case chat.ApprovalAnswered:
		if c := l.call(b.Call); c != nil && c.Approval == b.ID && !c.Answered {
			c.Answered, c.OK, c.Note, c.By = true, b.OK, b.Note, b.By
		}
	case chat.ApprovalNoted:
		// The approval is still open.
	case chat.AbortAsked:
		l.abort(b)
	case chat.Rolled:
		return l.roll(b)
	case chat.Cleared:
		// A run must still answer what it has taken. Words that were only heard are cleared with the rest.
		idle := l.run == nil
		l.pending = slices.DeleteFunc(l.pending, func(it item) bool { return idle || it.kind != words })
		return l.cutBefore(b.UpTo + 1)
	case chat.Compacted:
		return l.compacted(ev, b)
	case chat.RunEnded:
		if l.run != nil && l.run.ID == b.Run {
			tell := l.renderer != firstRenderer && l.renderer != "" && (b.Reason == chat.EndFailed || b.Reason == chat.EndBudget)
			l.run, l.ended = nil, &b
			if tell {
				text := fmt.Sprintf("<note about=\"failure\">\nYou could not answer what was said before this: %s\n</note>", clip(b.Text, maxFailure))
				if err := l.pend(ev.Seq, note, model.User, chat.Participant{Kind: chat.System}, chat.TextBlocks(text)); err != nil {
					return err
				}
			}
			return l.renew()
		}
	default:
		return fmt.Errorf("no rule for %T", ev.Body)
	}
	return nil
}

func (l *Log) pend(seq int64, kind entryKind, role model.Role, from chat.Participant, blocks chat.Blocks) error {
	if len(blocks) == 0 {
		return nil
	}
	msg, err := model.NewMessage(role, from, blocks)
	if err != nil {
		return err
	}
	l.pending = append(l.pending, item{seq: seq, kind: kind, msgs: []*model.Message{msg}, at: l.now})
	if len(l.pending) > maxPending {
		// Nobody has sent a request for a long time, and no window is that long.
		l.pending = slices.Delete(l.pending, 0, len(l.pending)-maxPending/2)
	}
	return nil
}

// maxFailure is how much of a failure the model is told, in bytes.
const maxFailure = 300

func clip(s string, most int) string {
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + " …"
}

// maxPending limits what was heard since the last request.
const maxPending = 10000

func (l *Log) call(id string) *Call {
	if l.turn == nil {
		return nil
	}
	for i := range l.turn.Calls {
		if l.turn.Calls[i].Use.ID == id {
			return &l.turn.Calls[i]
		}
	}
	return nil
}

// abort ends the named run. Without a name it ends the current run or, if there is none, what waits.
func (l *Log) abort(b chat.AbortAsked) {
	switch {
	case l.run != nil && (b.Run == l.run.ID || b.Run == ""):
		l.run.Aborted, l.run.AbortedBy, l.run.AbortAll = true, b.By, b.All
		l.run.AbortOpen = b.Run == ""
	case b.Run == "":
		for i := range l.waiting {
			l.waiting[i].Stopped = b.By
		}
	}
}

func (l *Log) took(b chat.Took) error {
	for _, seq := range b.Seqs {
		i := slices.IndexFunc(l.waiting, func(w Waiting) bool { return w.Seq == seq })
		if i < 0 {
			continue
		}
		w := l.waiting[i]
		l.waiting = slices.Delete(l.waiting, i, i+1)
		if !w.Silent {
			if err := l.pend(seq, words, model.User, w.From, w.Blocks); err != nil {
				return err
			}
		}
		if l.run != nil {
			l.run.Final = false // there is something new to answer
			l.run.hear(Sender{w.Principal, w.Terms, w.Seq})
		}
	}
	return nil
}

// hear adds somebody to those whose words the run works on. Somebody whose roles or terms
// have changed is added again, so that nothing said earlier is lost.
func (r *Run) hear(s Sender) {
	for i, known := range r.Senders {
		if known.Terms == s.Terms && known.Principal.Same(s.Principal) {
			r.Senders[i].Seq = max(known.Seq, s.Seq)
			return
		}
	}
	r.Senders = append(r.Senders, s)
}

// asked gives everything that the request shows its place.
func (l *Log) asked(at time.Time, b chat.Asked) error {
	placed, err := l.upcoming(b.Sees)
	if err != nil {
		return err
	}
	l.window = append(l.window, placed...)
	l.place += int64(len(placed))
	if at := l.markAt(l.window); at >= 0 {
		l.mark = l.window[at].place
	}
	l.turn = nil
	l.pending = slices.DeleteFunc(l.pending, func(it item) bool { return it.seq <= b.Sees })
	r := l.run
	if r == nil {
		return nil
	}
	if r.Open {
		r.Lost++
	}
	if b.Purpose != r.Purpose {
		r.Errors, r.Failing = 0, time.Time{}
	}
	r.Step, r.Attempt, r.Purpose, r.Open, r.Final, r.Asked = b.Step, b.Attempt, b.Purpose, true, false, at
	return nil
}

func (l *Log) said(ev chat.Event, b chat.Said) error {
	r := l.run
	if r != nil {
		r.Open, r.Lost = false, 0
		r.Usage = r.Usage.Plus(b.Usage)
	}
	if b.Error != nil {
		if r != nil {
			if r.Errors++; r.Failing.IsZero() {
				r.Failing = ev.At
			}
			r.Failure = b.Error
			if b.Error.Next != "" {
				r.Model, r.Errors, r.Failing = b.Error.Next, 0, time.Time{}
			}
			r.RetryAt = ev.At.Add(time.Duration(b.Error.RetryMS) * time.Millisecond)
			if b.Error.Kind == string(model.TooLong) {
				r.TooLong++
			}
		}
		return nil
	}
	blocks := sayable(b)
	if r != nil {
		r.Errors, r.Failing, r.Failure, r.Compacted, r.TooLong = 0, time.Time{}, nil, 0, 0
		r.Stop = b.Stop
		r.Final = len(blocks.Calls()) == 0
		r.Spoke = r.Spoke || strings.TrimSpace(blocks.Text()) != ""
		r.Steps++
		if r.Settings.Dialogue.ReportActions {
			r.Called = append(r.Called, blocks.Calls()...)
		}
		if b.Stop == chat.StopLength {
			r.Continued++
		}
	}
	if len(blocks) == 0 {
		return nil
	}
	// Answers are written with unique ids. Journals of earlier versions have the model's.
	shown := l.UniqueCalls(blocks)
	msg, err := model.NewMessage(model.Assistant, chat.Participant{Kind: chat.Agent}, shown)
	if err != nil {
		return err
	}
	l.place++
	l.window = append(l.window, entry{place: l.place, seq: ev.Seq, kind: said, msg: msg, at: ev.At})
	if b.Usage.Total() > 0 {
		l.used, l.usedAt = b.Usage.Total(), len(l.window)
		if r != nil {
			l.sent = sent{b.Usage.Total() - b.Usage.Output, r.Model, r.Head}
		}
	}
	if calls := blocks.Calls(); len(calls) > 0 {
		l.turn = &turn{Seq: ev.Seq, At: ev.At, Cut: b.Stop == chat.StopLength, Unreadable: len(b.Unreadable) > 0}
		for i, use := range shown.Calls() {
			l.turn.Calls = append(l.turn.Calls, Call{Use: calls[i], Shown: use.ID})
		}
	}
	return nil
}

// sayable returns the part of an answer that goes into the prompt. Of an aborted answer
// that is only the text, never a call that nobody will answer. If two calls have one id, in
// a journal of an earlier version, only the first was run.
func sayable(b chat.Said) chat.Blocks {
	var out chat.Blocks
	seen := map[string]bool{}
	for _, block := range b.Blocks {
		switch v := block.(type) {
		case chat.Text:
			if v.Text != "" {
				out = append(out, v)
			}
		case chat.Thinking:
			if !b.Partial && (v.Signature != "" || v.Redacted != "") {
				out = append(out, v)
			}
		case chat.ToolUse:
			if !b.Partial && v.ID != "" && !seen[v.ID] {
				seen[v.ID] = true
				out = append(out, v)
			}
		}
	}
	// Providers do not accept a message that contains only thinking.
	if !slices.ContainsFunc(out, func(b chat.Block) bool { _, thinks := b.(chat.Thinking); return !thinks }) {
		return nil
	}
	return out
}

func (l *Log) ran(b chat.ToolRan) {
	c := l.call(b.Call)
	if c == nil || c.Done {
		return
	}
	c.Done, c.Result = true, b
	l.read = text.AddNew(l.read, b.Read...)
	l.modified = text.AddNew(l.modified, b.Changed...)
	r := l.run
	if r == nil || b.Outcome == chat.Skipped || b.Outcome == chat.Interrupted {
		return
	}
	if b.Failed || b.Exit != 0 {
		r.Fails++
	} else {
		r.Fails = 0
	}
	if key := c.Use.Name + "\x00" + string(c.Use.Args); key == r.LastCall {
		r.Repeats++
	} else {
		r.LastCall, r.Repeats = key, 1
	}
}
