// Package workview says what people are shown about a task: the words of its card, which buttons
// are currently allowed, and what is worth notifying somebody of. It knows no platform: a chat
// transport turns the result into messages, and a page could turn it into boxes.
//
// A button is offered only if the rules of package work allow its step. The output depends only on the input.
package workview

import (
	"fmt"
	"slices"
	"strings"

	"chorus/internal/room/mark"
	"chorus/internal/room/split"
	"chorus/internal/text"
	"chorus/internal/work"
)

// Action is something that people can do with a task by pressing a button.
type Action string

// The actions.
const (
	Approve Action = "approve"
	Reject  Action = "reject" // with an explanation of what is wrong
	Stop    Action = "stop"
	Restart Action = "restart"
	Skip    Action = "skip"
	Reopen  Action = "reopen"  // with an explanation of what is wrong
	Resolve Action = "resolve" // the merge conflict, with another task
	Edit    Action = "edit"    // its description, which is shown for editing
	Diff    Action = "diff"
	Error   Action = "error"
)

// labels are the labels of the buttons.
var labels = map[Action]string{Approve: "Approve", Reject: "Reject…", Stop: "Stop", Restart: "Restart", Skip: "Skip", Reopen: "Reopen…", Resolve: "Resolve the conflict", Edit: "Edit…", Diff: "Show diff", Error: "Show error"}

// Label returns the label of the action's button.
func (a Action) Label() string { return labels[a] }

// Known reports whether the action exists.
func (a Action) Known() bool { return labels[a] != "" }

// Reads reports whether the action changes nothing.
func (a Action) Reads() bool { return a == Diff || a == Error }

// Asks reports whether the action needs words from the user first.
func (a Action) Asks() bool { return a == Reject || a == Reopen || a == Edit }

// Actions returns the actions that are currently allowed, most likely first.
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
	if slices.Contains([]work.State{work.Defined, work.Ready, work.Paused, work.Failed, work.Blocked}, t.State) { // a current run would not see the change
		out = append(out, Edit)
	}
	add(Reopen, work.AdminRestart, work.Completed)
	return out
}

// Legal reports whether an action is currently possible.
func Legal(t work.Task, a Action) bool { return slices.Contains(Actions(t), a) }

// Tone is the general impression of a card.
type Tone string

// The tones.
const (
	Quiet Tone = "quiet" // it waits for its turn
	Busy  Tone = "busy"
	Asks  Tone = "asks" // it waits for somebody
	Good  Tone = "good"
	Bad   Tone = "bad"
)

// look says how a state is shown.
type look struct {
	tone  Tone
	sign  string
	words string
	label string
}

var looks = map[work.State]look{
	work.Defined: {Quiet, "⏳", "waits for other tasks", waiting}, work.Ready: {Quiet, "🕓", "waits for a worker", waiting}, work.Assigned: {Busy, "🔧", "is being prepared", working},
	work.InProgress: {Busy, "🔧", "is being worked on", working}, work.WaitingInput: {Asks, "❓", "asks something", "asks"}, work.Paused: {Quiet, "⏸️", "is paused", "paused"},
	work.Verifying: {Busy, "🔀", "is being merged", "merging"}, work.AwaitingApproval: {Asks, "🔍", "waits for approval", needsYes}, work.Completed: {Good, "✅", "is done", "done"},
	work.AwaitingPlanApproval: {Asks, "🗺️", "has a plan that waits for approval", needsYes},
	work.Failed:               {Bad, "❌", "has failed", "failed"}, work.Blocked: {Bad, "🚫", "is blocked", "blocked"},
}

// Labels shared by several states.
const (
	waiting  = "waiting"
	working  = "working"
	needsYes = "needs a yes"
)

// Label describes a state in a word or two, for tags and columns.
type Label struct {
	Name, Sign string
	Over       bool // nothing more will be done about the task
}

// LabelOf returns the label of a state.
func LabelOf(s work.State) Label { return Label{looks[s].label, looks[s].sign, s == work.Completed} }

// deleted is the label of a deleted task.
func deleted() Label { return Label{"deleted", "🗑️", true} }

// Labels returns all labels, in the order in which tasks get them.
func Labels() []Label {
	var out []Label
	for _, s := range []work.State{work.Ready, work.InProgress, work.WaitingInput, work.Paused, work.Verifying, work.AwaitingApproval, work.Completed, work.Failed, work.Blocked} {
		out = append(out, LabelOf(s))
	}
	return append(out, deleted())
}

// Words describes a state in words that follow the task's name.
func Words(s work.State) string { return looks[s].words }

// Facts are the data for a card.
type Facts struct {
	Task   work.Task
	Result *work.Result // of the newest attempt that ended; nil if none did
	Stuck  []work.Task  // the tasks that wait for it while it is blocked
	Needs  []work.Task  // the tasks it waits for
	Where  string       // where its conversation is shown, as a mark; "" if nowhere
	May    []string     // who may approve, as marks or in words; if empty, whoever sees the project
}

// Card is what people see of a task.
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

// Of returns the card of a task.
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
		b.WriteString("It continues " + mark.Ago(t.NotBefore) + ".\n")
	}
	b.WriteString(result(f))
	if len(f.Stuck) > 0 {
		b.WriteString(waitFor(f.Stuck) + "\n")
	}
	if t.PR != "" {
		b.WriteString(t.PR + "\n")
	}
	if len(f.May) > 0 && l.label == needsYes {
		b.WriteString("Only " + strings.Join(f.May, " or ") + " may approve.\n")
	}
	b.WriteString(mark.Small(small(t)))
	return Card{Tone: l.tone, Text: b.String(), Actions: Actions(t), Label: LabelOf(t.State)}
}

// waitsForYes begins a reason that repeats what the card and its buttons already say.
const waitsForYes = "the result waits for approval"

// result describes the result of the newest attempt in the states in which somebody looks at it.
func result(f Facts) string {
	r := f.Result
	if r == nil || f.Task.State != work.AwaitingApproval && f.Task.State != work.Completed {
		return ""
	}
	summary := ""
	if r.Summary != "" {
		summary = split.Clip(strings.TrimSpace(r.Summary), maxSummary) + "\n"
	}
	facts := []string{count(len(r.Files), "file") + " changed"}
	if r.Tokens > 0 {
		facts = append(facts, count(int(r.Tokens), "token"))
	}
	if r.Cost > 0 {
		facts = append(facts, text.Dollars(float64(r.Cost)/1e9))
	}
	return summary + strings.Join(facts, ", ") + "\n"
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

// Gone returns the card of a deleted task.
func Gone(id, title, by string) Card {
	text := "🗑️ **" + plain(title, maxTitle) + "** was deleted"
	if by != "" {
		text += " by " + by
	}
	return Card{Tone: Quiet, Text: text + "\n" + mark.Small("`"+id+"`"), Label: deleted()}
}

// Call returns what to notify somebody of, or false if the event is not worth a
// notification. It is short, because whoever is notified sees the card too.
func Call(e work.Event, f Facts) (string, bool) {
	title := "**" + plain(f.Task.Title, maxTitle) + "**"
	switch e.Type {
	case "task.awaiting_approval":
		return "🔍 " + title + " waits for your approval.", true
	case "task.awaiting_plan_approval":
		return "🗺️ " + title + " has made a plan that waits for your approval.", true
	case work.EventReminder:
		return "🔍 " + title + " still waits for your approval.", true
	case work.EventStuck:
		return "🚨 " + title + " waits for approval (requested " + mark.Ago(f.Task.Moved) + "), and nobody has answered.", true
	case work.EventMergeDelayed:
		return "🔀 " + title + " is finished but cannot be merged yet; merging will be retried.", true
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

// Visible reports whether a task in this state is shown even if it was not
// shown before. A task that only waits for its turn is not.
func Visible(s work.State) bool { return s != work.Defined && s != work.Ready && s != work.Assigned }

// waitFor names the tasks that are stuck.
func waitFor(stuck []work.Task) string {
	return fmt.Sprintf("%s cannot continue without it: %s.", count(len(stuck), "task"), named(stuck))
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

// count formats a number with its noun, and commas between thousands.
func count(n int, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return text.Thousands(n) + " " + noun
}

// markdown escapes what could be read as markup in the middle of a line.
var markdown = strings.NewReplacer("*", "\\*", "_", "\\_", "~", "\\~", "|", "\\|", "`", "'", "<", "‹", ">", "›")

// plain returns somebody's text on one line, with markup disabled.
func plain(text string, limit int) string {
	return markdown.Replace(split.Clip(strings.Join(strings.Fields(text), " "), limit))
}
