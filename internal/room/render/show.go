// Package render folds what happened in a thread into what a platform shows of it: a
// status that lives while the agent works, the answer, cards that ask, and a sign on
// each message of what became of it.
//
// It promises that what is wanted in the end is a function of the journal alone: pieces
// that were dropped, a crash, or a second reader change nothing but what is seen on the
// way. Each ended run has one authoritative answer; it begins in the message that was
// the status, or takes its place below what was said beside the conversation. Every prompt that was taken or refused ends with a terminal sign. Keys
// of messages never change, so whoever remembers what it has sent knows what to edit.
package render

import (
	"fmt"
	"slices"
	"time"

	"chorus/internal/chat"
	"chorus/internal/room/split"
)

// The signs.
const (
	SignAccepted = "👀"
	SignWorking  = "⚙️"
	SignDone     = "✅"
	SignNot      = "❌"
	SignRefused  = "🛑" // on an answer that the model would not give
	thought      = ".💭 "
)

// Options say how much is shown. The zero value shows answers and nothing else.
type Options struct {
	Platform   string // whose message ids are used for replies and signs; required
	Split      split.Options
	Status     bool   // a message that shows how the work goes, and becomes the answer
	Apart      bool   // it does not become the answer, and goes when that is there
	Reactions  bool   // signs on the prompts
	Footer     bool   // steps, tokens, cost and time under the answer
	Brief      bool   // of those only cost and time, and nothing where it cost nothing
	Label      string // stands first in the footer
	Preambles  bool   // what was said between calls is part of the answer
	Thinking   bool   // what the model thought, as dot messages
	ToolOutput bool   // each call and its result, as dot messages
	Name       string // the agent's, in those
	Newest     bool   // an answer replies to the newest of the prompts that it answers, not to the oldest

	// Words prepares a model's text for the platform (mentions); nil: as it is.
	Words func(string) string
	// Call says in a few words what a call does; nil or "": its name.
	Call func(name string, args []byte) string
	// Price is what tokens cost, in billionths of a dollar, for the status; nil: not shown there.
	Price func(model string, u chat.Usage) int64
}

// Message is one that should stand on the platform. With neither text nor card it
// should not, and is taken away if it does.
type Message struct {
	Key     string
	ReplyTo string // id on the platform; "" none, also when that message was taken back
	Text    string
	File    *split.File
	Card    *Card
	Status  bool   // it shows how the work goes, and is no part of the answer
	Stop    string // the run that a stop button under it would end
	Aside   bool   // spoken beside the conversation: through a webhook where there is one
	Final   bool   // it will not change again; it may be sent without waiting
}

// Absent reports a message that should not be there.
func (m Message) Absent() bool { return m.Text == "" && m.File == nil && m.Card == nil }

// Reaction is a sign that should be on a message: of somebody else's (On, its id) or
// of ours (Key).
type Reaction struct{ On, Key, Emoji string }

// Card asks for an approval, or tells how it was answered.
type Card struct {
	Approval string
	Tool     string
	Actions  []string
	Rule     string
	Preview  string
	Unbound  string       // what of the call a yes cannot be held to
	Why      string       // what a tool hook says that wants it asked for
	Fields   []chat.Field // that a question asks for
	chat.Assessment
	Until    time.Time
	Who      string // may answer
	FirstYes string // who said yes where two must
	Open     bool   // buttons are under it
	OK       bool
	By       string // who answered; "" with Open false: nobody will
	Note     string
}

// Wanted is all that should be shown.
type Wanted struct {
	Messages  []Message // in the order in which they are to appear
	Reactions []Reaction
	Typing    bool
}

// View is the fold over one thread, for one goroutine. Hand it every event in order,
// from the first one or from where the thread was idle.
type View struct {
	o       Options
	seq     int64
	prompts map[int64]*prompt
	order   []int64
	runs    []*run
	cards   []*card
	notices []Message // what schedules, and processes that run in the background, tell people
}

// New is a view of a thread in which nothing has happened.
func New(o Options) *View {
	return &View{o: o, prompts: map[int64]*prompt{}}
}

// prompt is a message that waits, or was taken, or will not be.
type prompt struct {
	id      string
	run     string
	refused string
	gone    bool
}

type card struct {
	Card
	run string
}

// Seq is the number of the last event that was taken in.
func (v *View) Seq() int64 { return v.seq }

// Apply takes in an event. One that was taken in already changes nothing.
func (v *View) Apply(ev chat.Event) {
	if ev.Seq != 0 && ev.Seq <= v.seq {
		return
	}
	v.seq = max(v.seq, ev.Seq)
	switch b := ev.Body.(type) {
	case chat.Received:
		switch {
		case b.Prompt:
			v.arrived(ev)
		case b.From.Kind == chat.System && b.Principal.Kind == chat.ProcessHook && b.Intake != chat.Inject, // that is for the model alone
			b.From.Kind == chat.System && b.Principal.Kind == chat.ScheduleRule:
			v.notices = append(v.notices, v.notice(ev.Seq, b.Blocks.Text())...)
		}
	case chat.Steered:
		v.arrived(ev)
	case chat.Refused:
		if p := v.prompts[b.Seq]; p != nil {
			p.refused = b.Why
		}
	case chat.Deleted:
		if p := v.prompts[b.Seq]; p != nil {
			p.gone = true
		}
	case chat.RunStarted:
		if v.run(b.Run) == nil {
			v.runs = append(v.runs, &run{id: b.Run, model: b.Model, began: ev.At})
		}
	case chat.Took:
		v.took(b)
	case chat.ApprovalAsked:
		v.cards = append(v.cards, &card{run: v.runOf(ev), Card: Card{Approval: b.ID, Tool: b.Name, Actions: b.Actions, Rule: b.Rule, Preview: b.Preview, Unbound: b.Unbound, Why: b.Why, Fields: b.Fields, Assessment: b.Assessment, Until: b.Until, Who: b.Who, Open: true}})
	case chat.ApprovalNoted:
		if c := v.card(b.ID); c != nil && b.What == chat.FirstYes {
			c.FirstYes = b.By
		}
	case chat.ApprovalAnswered:
		if c := v.card(b.ID); c != nil {
			c.Open, c.OK, c.By, c.Note = false, b.OK, b.By, b.Note
		}
	default:
		if r := v.run(v.runOf(ev)); r != nil {
			r.apply(ev, v.o)
		}
	}
}

// notice is what is told without a run, cut as an answer is. Its first message has the key that it had when it was always one.
func (v *View) notice(seq int64, text string) (out []Message) {
	o := v.o.Split
	o.Whole = "notice"
	all := split.Fit(text, o)
	for i, text := range all.Texts() {
		m := Message{Key: fmt.Sprintf("notice-%d", seq), Text: text, Final: true}
		if i > 0 {
			m.Key += fmt.Sprintf("/%d", i)
		}
		out = append(out, m)
	}
	if len(out) > 0 {
		out[0].File = all.File
	}
	return out
}

// Live takes in a piece that is shown on the way. It may be lost.
func (v *View) Live(l chat.Live) {
	switch p := l.(type) {
	case chat.Delta:
		if r := v.run(p.Run); r != nil && p.What == chat.DeltaText {
			r.delta(p)
		}
	case chat.Progress:
		if r := v.run(p.Run); r != nil && r.end == nil {
			r.progress(p)
		}
	}
}

func (v *View) arrived(ev chat.Event) {
	p := &prompt{}
	if ev.Platform == v.o.Platform {
		p.id = ev.PlatformID
	}
	v.prompts[ev.Seq] = p
	v.order = append(v.order, ev.Seq)
}

func (v *View) took(b chat.Took) {
	r := v.run(b.Run)
	for _, seq := range b.Seqs {
		if p := v.prompts[seq]; p != nil {
			p.run = b.Run
			if r != nil {
				r.prompts = append(r.prompts, seq)
			}
		}
	}
}

func (v *View) run(id string) *run {
	i := slices.IndexFunc(v.runs, func(r *run) bool { return r.id == id })
	if i < 0 {
		return nil
	}
	return v.runs[i]
}

// runOf is the run of an event; one that names none is of the run that is on.
func (v *View) runOf(ev chat.Event) string {
	if ev.Run != "" {
		return ev.Run
	}
	if b, ok := ev.Body.(chat.RunEnded); ok && b.Run != "" {
		return b.Run
	}
	if n := len(v.runs); n > 0 && v.runs[n-1].end == nil {
		return v.runs[n-1].id
	}
	return ""
}

func (v *View) card(id string) *card {
	i := slices.IndexFunc(v.cards, func(c *card) bool { return c.Approval == id })
	if i < 0 {
		return nil
	}
	return v.cards[i]
}

// Idle reports that nothing is on and nothing waits: what is wanted will not change
// until something new arrives.
func (v *View) Idle() bool {
	for _, r := range v.runs {
		if r.end == nil {
			return false
		}
	}
	for _, p := range v.prompts {
		if p.run == "" && p.refused == "" && !p.gone {
			return false
		}
	}
	return true
}

// Forget drops what is over, once all of it has been sent. It never changes what is
// wanted of anything else.
func (v *View) Forget() {
	v.notices = nil
	over := map[string]bool{}
	v.runs = slices.DeleteFunc(v.runs, func(r *run) bool { over[r.id] = r.end != nil; return r.end != nil })
	v.cards = slices.DeleteFunc(v.cards, func(c *card) bool { return over[c.run] })
	v.order = slices.DeleteFunc(v.order, func(seq int64) bool {
		p := v.prompts[seq]
		done := over[p.run] || p.refused != "" || p.gone && p.run == ""
		if done {
			delete(v.prompts, seq)
		}
		return done
	})
}
