package render

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"chorus/internal/chat"
	"chorus/internal/text"
)

// RunSteps describes what one run did, for people.
type RunSteps struct {
	Run     string
	Model   string
	Profile string
	Prompts []int64 // the events it answers
	Head    string  // hash of the blob with the system prompt
	Noted   []string
	Dropped []string // settings that its requests could not carry, each with the reason
	Left    []string // why older messages were left out, one line each time
	Window  int      // size of the model's window in tokens
	Began   time.Time
	End     *chat.RunEnded // nil while it is running
	Ended   time.Time
	Step    int // last step of the model
	Steps   []Step
	Usage   chat.Usage
	Read    []string
	Changed []string
}

// Step is one thing that a run did: it asked its model, ran a call, or waited for approval.
type Step struct {
	Kind  StepKind
	Seq   int64 // the event it began with
	What  string
	Began time.Time
	Took  time.Duration
	Open  bool // it has not ended
	State string
}

// StepKind says what a run did or waited for in a step.
type StepKind string

// The kinds of steps.
const (
	StepModel  StepKind = "model"
	StepTool   StepKind = "tool"
	StepAgent  StepKind = "agent"  // another agent works for it
	StepPerson StepKind = "person" // somebody is asked
)

// StepsOf folds the events of one run. Events of others may be among them. call
// describes a call in a few words; if it is nil, the call's name is used.
func StepsOf(events []chat.Event, call func(name string, args []byte) string) RunSteps {
	f := stepFold{call: call, labels: map[string]string{}, asked: -1}
	for _, ev := range events {
		f.apply(ev)
	}
	return f.RunSteps
}

type stepFold struct {
	RunSteps
	call   func(string, []byte) string
	labels map[string]string // labels of calls, by id
	asked  int               // index of the open request; -1 if none
}

func (f *stepFold) apply(ev chat.Event) {
	switch b := ev.Body.(type) {
	case chat.RunStarted:
		f.Run, f.Model, f.Profile, f.Head, f.Began = b.Run, b.Model, b.Settings.Profile, b.Head, ev.At
		f.Window = b.Settings.ContextWindow
	case chat.Took:
		f.Prompts = append(f.Prompts, b.Seqs...)
	case chat.Noted:
		f.Noted = append(f.Noted, b.What)
	case chat.Asked:
		f.Step, f.Model = b.Step, b.Model
		for _, d := range b.Dropped {
			if !slices.Contains(f.Dropped, d) {
				f.Dropped = append(f.Dropped, d)
			}
		}
		f.lost()
		what := "the model"
		if b.Purpose != chat.ForTurn && b.Purpose != "" {
			what = "the model, for a summary of what came before"
		}
		f.begin(StepModel, what, ev)
		f.asked = len(f.Steps) - 1
	case chat.Said:
		f.said(ev, b)
	case chat.Rolled:
		f.Left = append(f.Left, b.Because)
	case chat.Compacted:
		f.Usage = f.Usage.Plus(b.Usage)
		f.end(f.asked, ev.At, "done")
		f.asked = -1
	case chat.ToolBegan:
		f.begin(StepTool, f.label(b.Call, b.Name), ev)
	case chat.Deferred:
		f.begin(StepAgent, f.label(b.Call, b.Name), ev)
	case chat.ToolRan:
		f.ran(ev, b)
	case chat.ApprovalAsked:
		f.begin(StepPerson, "a yes to "+f.label(b.Call, b.Name), ev)
	case chat.ApprovalAnswered:
		state := "no"
		if b.OK {
			state = "yes"
		}
		f.end(f.open("a yes to "+f.label(b.Call, "")), ev.At, state)
	case chat.RunEnded:
		f.lost()
		f.End, f.Ended, f.Usage = &b, ev.At, b.Usage
		for i := range f.Steps {
			if f.Steps[i].Open {
				f.end(i, ev.At, "ended with the run")
			}
		}
	}
}

// label describes a call.
func (f *stepFold) label(call, name string) string {
	if l := f.labels[call]; l != "" {
		return l
	}
	return cmp.Or(name, "a call")
}

func (f *stepFold) begin(kind StepKind, what string, ev chat.Event) {
	f.Steps = append(f.Steps, Step{Kind: kind, Seq: ev.Seq, What: what, Began: ev.At, Open: true})
}

// open returns the newest open step with that name, or -1.
func (f *stepFold) open(what string) int {
	for i, s := range slices.Backward(f.Steps) {
		if s.Open && s.What == what {
			return i
		}
	}
	return -1
}

func (f *stepFold) end(i int, at time.Time, state string) {
	if i < 0 {
		return
	}
	s := &f.Steps[i]
	s.Open, s.Took, s.State = false, max(0, at.Sub(s.Began)), state
}

// lost ends a request that was never answered because the process died.
func (f *stepFold) lost() {
	if f.asked >= 0 {
		f.Steps[f.asked].Open, f.Steps[f.asked].State = false, "lost"
		f.asked = -1
	}
}

func (f *stepFold) said(ev chat.Event, b chat.Said) {
	f.Usage = f.Usage.Plus(b.Usage)
	uses := b.Blocks.Calls()
	state := "answered"
	switch {
	case b.Error != nil:
		state = "failed: " + oneLine(b.Error.Message, statusLine)
	case b.Partial:
		state = "cut off"
	case b.Stop == chat.StopRefused:
		state = "would not answer"
	case len(uses) > 0:
		state = "wanted " + text.Count(len(uses), "call")
	}
	f.end(f.asked, ev.At, state)
	f.asked = -1
	for _, u := range uses {
		f.labels[u.ID] = u.Name
		if f.call != nil {
			if l := f.call(u.Name, u.Args); l != "" {
				f.labels[u.ID] = l
			}
		}
	}
}

func (f *stepFold) ran(ev chat.Event, b chat.ToolRan) {
	what := f.label(b.Call, b.Name)
	i := f.open(what)
	took := time.Duration(b.TookMS) * time.Millisecond
	if i < 0 { // read-only calls have no event for their beginning
		f.begin(StepTool, what, ev)
		i = len(f.Steps) - 1
		f.Steps[i].Began = ev.At.Add(-took)
	}
	state := "ok"
	switch {
	case b.Outcome != chat.Ran && b.Outcome != "":
		state = string(b.Outcome)
	case !b.Succeeded():
		state = "failed"
	}
	f.end(i, ev.At, state)
	if took > 0 {
		f.Steps[i].Took = took
	}
	f.Read, f.Changed = text.AddNew(f.Read, b.Read...), text.AddNew(f.Changed, b.Changed...)
}

// Doing returns what the run is doing now, or "" when it is over.
func (t RunSteps) Doing() string {
	if t.End != nil {
		return ""
	}
	for _, s := range slices.Backward(t.Steps) {
		if s.Open {
			return "waiting for " + s.What
		}
	}
	return "working"
}

// Lines describes the steps for people, one per line, with the time each took.
func (t RunSteps) Lines(now time.Time) []string {
	out := make([]string, 0, len(t.Steps))
	for i, s := range t.Steps {
		took, state := s.Took, s.State
		if s.Open {
			took, state = now.Sub(s.Began), "still on"
		}
		out = append(out, fmt.Sprintf("%d. `%s` %s, %s", i+1, oneLine(s.What, statusLine), state, Duration(took)))
	}
	return out
}

// Duration formats a duration for people.
func Duration(d time.Duration) string {
	switch {
	case d < time.Millisecond:
		return "no time"
	case d < time.Second:
		return fmt.Sprintf("%d ms", d.Milliseconds())
	case d < time.Minute:
		return strings.TrimSuffix(fmt.Sprintf("%.1f", d.Seconds()), ".0") + " s"
	default:
		return elapsed(d)
	}
}

// Tokens says how many tokens went in, how many of those were cached, and how many came out.
func Tokens(u chat.Usage) string { return tokens(u) }

// Money formats billionths of a dollar for people, or returns "" for nothing.
func Money(nanos int64) string { return money(nanos) }
