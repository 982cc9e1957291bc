// Package workview says what people are shown of a task wherever they meet it: the words of its card, which buttons are legal
// now, and what is worth calling somebody for. It knows no platform: a chat transport makes messages of it, a page could make
// boxes of it.
//
// It promises that a button is offered only where the rules of package work allow its step, and that everything it says follows
// from what it is given.
package workview

import (
	"fmt"
	"slices"
	"strings"

	"chorus/internal/room/mark"
	"chorus/internal/room/split"
	"chorus/internal/work"
)

// Action is something that people do about a task with a button.
type Action string

// The actions.
const (
	Approve Action = "approve"
	Reject  Action = "reject" // with what is not right
	Stop    Action = "stop"
	Restart Action = "restart"
	Skip    Action = "skip"
	Reopen  Action = "reopen"  // with what is not right
	Resolve Action = "resolve" // the merge conflict, with another task
	Edit    Action = "edit"    // its description, which is shown to be changed
	Diff    Action = "diff"
	Error   Action = "error"
)

// labels are what buttons are called.
var labels = map[Action]string{Approve: "Approve", Reject: "Reject…", Stop: "Stop", Restart: "Restart", Skip: "Skip", Reopen: "Reopen…", Resolve: "Resolve the conflict", Edit: "Edit…", Diff: "Show diff", Error: "Show error"}

// Label is what its button is called.
func (a Action) Label() string { return labels[a] }

// Known reports whether there is such an action.
func (a Action) Known() bool { return labels[a] != "" }

// Reads reports whether it changes nothing.
func (a Action) Reads() bool { return a == Diff || a == Error }

// Asks reports whether words are asked for first.
func (a Action) Asks() bool { return a == Reject || a == Reopen || a == Edit }

// Actions are those that are legal now, the most likely first.
func Actions(t work.Task) []Action {
	var out []Action
	add := func(a Action, step work.Step, in ...work.State) {
		if _, err := work.Next(t.State, step); err == nil && slices.Contains(in, t.State) {
			out = append(out, a)
		}
	}
	add(Approve, work.PlanApproved, work.AwaitingPlanApproval)
	add(Reject, work.PlanRejected, work.AwaitingPlanApproval)
	add(Approve, work.Approved, work.AwaitingApproval)
	add(Reject, work.AdminRestart, work.AwaitingApproval)
	add(Stop, work.AdminStop, work.Assigned, work.InProgress, work.WaitingInput, work.Paused, work.AwaitingPlanApproval)
	if t.Run == "" { // a stopped worker may still be ending
		add(Restart, work.AdminRestart, work.Failed, work.Blocked, work.Paused)
	}
	if t.Conflicted() {
		out = append(out, Resolve)
	}
	add(Skip, work.AdminSkip, work.Failed, work.Blocked)
	if t.Branch != "" && t.Attempt > 0 && (t.State.Over() || t.State == work.AwaitingApproval) {
		out = append(out, Diff)
	}
	if t.State == work.Failed || t.State == work.Blocked {
		out = append(out, Error)
	}
	if slices.Contains([]work.State{work.Defined, work.Ready, work.Paused, work.Failed, work.Blocked}, t.State) { // a run that is on would not see it
		out = append(out, Edit)
	}
	add(Reopen, work.AdminRestart, work.Completed)
	return out
}

// Legal reports whether an action is possible now.
func Legal(t work.Task, a Action) bool { return slices.Contains(Actions(t), a) }

// Tone is what a card is about at a glance.
type Tone string

// The tones.
const (
	Quiet Tone = "quiet" // it waits for its turn
	Busy  Tone = "busy"
	Asks  Tone = "asks" // somebody is waited for
	Good  Tone = "good"
	Bad   Tone = "bad"
)

// look is how a state is shown.
type look struct {
	tone  Tone
	sign  string
	words string
	label string
}

var looks = map[work.State]look{
	work.Defined: {Quiet, "⏳", "waits for other tasks", waiting}, work.Ready: {Quiet, "🕓", "waits for a worker", waiting}, work.Assigned: {Busy, "🔧", "is being prepared", working},
	work.InProgress: {Busy, "🔧", "is being worked on", working}, work.WaitingInput: {Asks, "❓", "asks something", "asks"}, work.Paused: {Quiet, "⏸️", "is paused", "paused"},
	work.Verifying: {Busy, "🔀", "is being merged", "merging"}, work.AwaitingApproval: {Asks, "🔍", "waits for a yes", needsYes}, work.Completed: {Good, "✅", "is done", "done"},
	work.AwaitingPlanApproval: {Asks, "🗺️", "has a plan that waits for a yes", needsYes},
	work.Failed:               {Bad, "❌", "has failed", "failed"}, work.Blocked: {Bad, "🚫", "is blocked", "blocked"},
}

// The labels of several states.
const (
	waiting  = "waiting"
	working  = "working"
	needsYes = "needs a yes"
)

// Label is a state in a word or two, for tags and columns.
type Label struct {
	Name, Sign string
	Over       bool // nothing more is done about the task
}

// LabelOf is the one of a state.
func LabelOf(s work.State) Label { return Label{looks[s].label, looks[s].sign, s == work.Completed} }

// deleted is the label of a task that is gone.
func deleted() Label { return Label{"deleted", "🗑️", true} }

// Labels are all that there are, in the order in which tasks get them.
func Labels() []Label {
	var out []Label
	for _, s := range []work.State{work.Ready, work.InProgress, work.WaitingInput, work.Paused, work.Verifying, work.AwaitingApproval, work.Completed, work.Failed, work.Blocked} {
		out = append(out, LabelOf(s))
	}
	return append(out, deleted())
}

// Words say where a task in a state is, behind its name.
func Words(s work.State) string { return looks[s].words }

// Facts are what a card is made of.
type Facts struct {
	Task   work.Task
	Result *work.Result // of the newest attempt that ended; nil: none did
	Stuck  []work.Task  // what waits for it while it is blocked
	Needs  []work.Task  // what it waits for
	Where  string       // where its conversation is shown, as a mark; "": nowhere
	May    []string     // who may say yes, as marks or in words; none: whoever sees the project
}

// Card is what people are shown of a task.
type Card struct {
	Tone    Tone
	Text    string // Markdown with marks
	Actions []Action
	Label   Label
}

// The sizes of a card's parts, in characters.
const (
	maxTitle   = 120
	maxWhy     = 500
	maxSummary = 900
	maxNamed   = 5
)

// Of is the card of a task.
func Of(f Facts) Card {
	t, l := f.Task, looks[f.Task.State]
	var b strings.Builder
	fmt.Fprintf(&b, "%s **%s** %s", l.sign, plain(t.Title, maxTitle), l.words)
	if t.State == work.Completed && strings.HasPrefix(t.Why, "skipped by ") {
		fmt.Fprintf(&b, " (%s)", plain(t.Why, 100))
	}
	if !t.Moved.IsZero() {
		b.WriteString(" " + mark.Ago(t.Moved))
	}
	b.WriteByte('\n')
	if open := unfinished(f.Needs); t.State == work.Defined && len(open) > 0 {
		b.WriteString("It needs " + named(open) + ".\n")
	}
	if t.Why != "" && t.State != work.Completed && !(t.State == work.AwaitingApproval && strings.HasPrefix(t.Why, waitsForYes)) {
		b.WriteString("> " + plain(t.Why, maxWhy) + "\n")
	}
	if !t.NotBefore.IsZero() && (t.State == work.Paused || t.State == work.Ready) {
		b.WriteString("It goes on " + mark.Ago(t.NotBefore) + ".\n")
	}
	b.WriteString(result(f))
	if len(f.Stuck) > 0 {
		b.WriteString(waitFor(f.Stuck) + "\n")
	}
	if t.PR != "" {
		b.WriteString(t.PR + "\n")
	}
	if len(f.May) > 0 && l.label == needsYes {
		b.WriteString("Only " + strings.Join(f.May, " or ") + " may say yes.\n")
	}
	b.WriteString(mark.Small(small(t)))
	return Card{Tone: l.tone, Text: b.String(), Actions: Actions(t), Label: LabelOf(t.State)}
}

// waitsForYes begins a reason that says what the card and its buttons say already.
const waitsForYes = "the result waits for a yes"

// result is what the newest attempt gave, where somebody looks at it.
func result(f Facts) string {
	r := f.Result
	if r == nil || f.Task.State != work.AwaitingApproval && f.Task.State != work.Completed {
		return ""
	}
	text := ""
	if r.Summary != "" {
		text = split.Clip(strings.TrimSpace(r.Summary), maxSummary) + "\n"
	}
	facts := []string{count(len(r.Files), "file") + " changed"}
	if r.Tokens > 0 {
		facts = append(facts, count(int(r.Tokens), "token"))
	}
	if r.Cost > 0 {
		facts = append(facts, fmt.Sprintf("$%.2f", float64(r.Cost)/1e9))
	}
	return text + strings.Join(facts, ", ") + "\n"
}

func small(t work.Task) string {
	parts := []string{"`" + t.ID + "`", t.Project}
	if t.Agent != "" {
		parts = append(parts, t.Agent)
	}
	if t.Attempt > 1 {
		parts = append(parts, fmt.Sprintf("attempt %d", t.Attempt))
	}
	if t.Retries > 0 {
		parts = append(parts, fmt.Sprintf("%d of %d tries failed", t.Retries, t.MaxRetries))
	}
	return strings.Join(parts, " · ")
}

// Gone is the card of a task that was deleted.
func Gone(id, title, by string) Card {
	text := "🗑️ **" + plain(title, maxTitle) + "** was deleted"
	if by != "" {
		text += " by " + by
	}
	return Card{Tone: Quiet, Text: text + "\n" + mark.Small("`"+id+"`"), Label: deleted()}
}

// Call is what somebody is called for; false: an event is worth no call. Whoever is called sees the card too, so it is short.
func Call(e work.Event, f Facts) (string, bool) {
	title := "**" + plain(f.Task.Title, maxTitle) + "**"
	switch e.Type {
	case "task.awaiting_approval":
		return "🔍 " + title + " waits for your yes.", true
	case "task.awaiting_plan_approval":
		return "🗺️ " + title + " has made a plan that waits for your yes.", true
	case work.EventReminder:
		return "🔍 " + title + " still waits for your yes.", true
	case work.EventStuck:
		return "🚨 " + title + " waits for a yes since " + mark.Ago(f.Task.Moved) + ", and nobody has given one.", true
	case work.EventMergeDelayed:
		return "🔀 " + title + " is finished and cannot be merged yet; it is tried again.", true
	case "task.waiting_input":
		if f.Where != "" {
			return "❓ " + title + " asks something: " + f.Where, true
		}
		return "❓ " + title + " asks something.", true
	case "task.failed":
		return "❌ " + title + " has failed.", true
	case "task.blocked":
		if e.Step == work.AdminStop {
			return "", false // whoever stopped it knows
		}
		text := "🚫 " + title + " is blocked and needs somebody."
		if len(f.Stuck) > 0 {
			text += " " + waitFor(f.Stuck)
		}
		return text, true
	}
	return "", false
}

// Visible reports whether a task in this state is shown though nobody was shown it before: what only waits for its turn is not.
func Visible(s work.State) bool { return s != work.Defined && s != work.Ready && s != work.Assigned }

// waitFor says who is stuck.
func waitFor(stuck []work.Task) string {
	return fmt.Sprintf("%s cannot go on without it: %s.", count(len(stuck), "task"), named(stuck))
}

func named(list []work.Task) string {
	var ids []string
	for _, t := range list[:min(len(list), maxNamed)] {
		ids = append(ids, "`"+t.ID+"`")
	}
	if more := len(list) - maxNamed; more > 0 {
		ids = append(ids, fmt.Sprintf("%d more", more))
	}
	return strings.Join(ids, ", ")
}

func unfinished(list []work.Task) []work.Task {
	return slices.DeleteFunc(slices.Clone(list), func(t work.Task) bool { return t.State == work.Completed })
}

// count is a number with its noun, and commas between thousands.
func count(n int, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return split.Thousands(n) + " " + noun
}

// markdown is what would be read as a mark in the middle of a line.
var markdown = strings.NewReplacer("*", "\\*", "_", "\\_", "~", "\\~", "|", "\\|", "`", "'", "<", "‹", ">", "›")

// plain is somebody's text on one line, in which nothing is a mark.
func plain(text string, limit int) string {
	return markdown.Replace(split.Clip(strings.Join(strings.Fields(text), " "), limit))
}
