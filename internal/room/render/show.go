// Package render folds what happened in a thread into what a platform shows of it:
// a status that is updated while the agent works, the answer, cards that ask, and
// a sign on each prompt for what became of it.
//
// The final state depends only on the journal: dropped live pieces, a crash, or a second reader
// change only what is seen on the way. Each ended run has one authoritative answer. It begins in
// the message that was the status, or replaces it below what was said aside. Every prompt that
// was taken or refused ends with a final sign. Keys of messages never change, so a caller that
// remembers what it has sent knows what to edit.
package render

import (
	"fmt"
	"slices"
	"strings"
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
	SignRefused  = "🛑" // for an answer that the model refused to give
	thought      = ".💭 "
)

// Options say how much is shown. The zero value shows only answers.
type Options struct {
	Platform   string // platform whose message ids are used for replies and signs; required
	Split      split.Options
	Status     bool   // a message that shows progress and becomes the answer
	Apart      bool   // the status does not become the answer, and is removed once that is there
	Reactions  bool   // signs on the prompts
	Footer     bool   // steps, tokens, cost and time under the answer
	Brief      bool   // only cost and time, and nothing if it cost nothing
	Label      string // first part of the footer
	Preambles  bool   // what was said between calls is part of the answer
	Thinking   bool   // what the model thought, as dot messages
	ToolOutput bool   // each call and its result, as dot messages
	Name       string // the agent's name in those
	Newest     bool   // an answer replies to the newest of its prompts, not to the oldest

	// Words prepares a model's text for the platform (mentions); nil leaves it unchanged.
	Words func(string) string
	// Call describes a call in a few words; if it is nil or returns "", the call's name is used.
	Call func(name string, args []byte) string
	// Price returns the cost of tokens in billionths of a dollar, for the status; nil shows no cost there.
	Price func(model string, u chat.Usage) int64
}

// Message is a message that should be on the platform. Without text, file and
// card it should not exist, and is removed if it does.
type Message struct {
	Key     string
	ReplyTo string // id on the platform; "" if none, or if that message was deleted
	Text    string
	File    *split.File
	Card    *Card
	Status  bool   // it shows progress and is not part of the answer
	Stop    string // the run that its stop button would end
	Aside   bool   // said aside: posted through a webhook if there is one
	Final   bool   // it will not change again and may be sent without waiting
}

// Absent reports whether the message should not exist.
func (m Message) Absent() bool { return m.Text == "" && m.File == nil && m.Card == nil }

// Reaction is a sign that should be on a message: somebody else's (On, its id) or ours (Key).
type Reaction struct{ On, Key, Emoji string }

// Card asks for an approval, or says how it was answered.
type Card struct {
	Approval string
	Tool     string
	Actions  []string
	Rule     string
	Preview  string
	Unbound  string       // the part of the call that an approval cannot pin down
	Why      string       // why a tool hook wants approval
	Fields   []chat.Field // fields of a question
	chat.Assessment
	Until    time.Time
	Who      string // who may answer
	FirstYes string // who approved first, if two must approve
	Open     bool   // it has buttons
	OK       bool
	By       string // who answered; "" with Open false: nobody will
	Note     string
}

// Wanted is everything that should be shown.
type Wanted struct {
	Messages  []Message // in order of appearance
	Reactions []Reaction
	Typing    bool
}

// View is the folded state of one thread, for use by one goroutine. Pass it every event in
// order, from the first one or from a point where the thread was idle.
type View struct {
	o       Options
	seq     int64
	prompts map[int64]*prompt
	order   []int64
	runs    []*run
	cards   []*card
	notices []Message // what schedules and background processes tell people
}

// New returns a View of a thread without events.
func New(o Options) *View {
	return &View{o: o, prompts: map[int64]*prompt{}}
}

// prompt is a message that waits, was taken, or was refused.
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

// Seq returns the number of the last event applied.
func (v *View) Seq() int64 { return v.seq }

// Apply applies an event. It ignores events that were applied already.
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
		case b.From.Kind == chat.System && b.Principal.Kind == chat.ProcessHook && b.Intake != chat.Inject, // only for the model
			b.From.Kind == chat.System && b.Principal.Kind == chat.ScheduleRule:
			v.notices = append(v.notices, v.notice(ev.Seq, b.Blocks.Text())...)
		}
	case chat.Steered:
		v.arrived(ev)
	case chat.Refused:
		if p := v.prompts[b.Seq]; p != nil {
			p.refused = b.Why
			if strings.HasPrefix(b.Why, "stopped by ") { // by whom is an id, and they know
				p.refused = "the work was stopped"
			}
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

// notice returns what is told outside of runs, split like an answer. Its first
// message has the key from when there was always just one.
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

// Live applies a live piece. It may be lost.
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

// runOf returns the run of an event. An event that names none belongs to the current run.
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

// Idle reports whether nothing runs or waits, so that the wanted
// messages will not change until something new arrives.
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

// Forget drops what is over, once all of it has been sent. It does not change what is wanted of anything else.
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
