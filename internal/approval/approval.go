// Package approval holds the words of approvals: what the gate ruled, and what is
// stored while a call waits for somebody's yes. The engine writes them, the store
// keeps them, transports show them.
package approval

import (
	"encoding/json"
	"strings"
	"time"

	"chorus/internal/chat"
)

// Verdict is what the gate says about a call.
type Verdict string

// The verdicts.
const (
	Allow   Verdict = "allow"
	Deny    Verdict = "deny"    // the model is told; the run goes on
	Pending Verdict = "pending" // somebody must be asked; the run is suspended
	End     Verdict = "end"     // somebody would have to be asked and nobody can be: the run ends denied
)

// Ruling is the gate's answer for one call.
type Ruling struct {
	Verdict Verdict
	Reason  string    // for people and for the model
	Rule    string    // the rule that decided, as written
	Ask     *Approval // with Pending
	// Assessment is what people are told besides, with Pending.
	Assessment chat.Assessment
	Audit      *Audit // what the audit log will say; nil for nothing
	// Hides says which files the call must leave out when it looks through many: rules keep them from being read; nil: none.
	Hides func(path string) bool
}

// State is where an approval stands.
type State string

// The states of an approval.
const (
	Open      State = "pending"
	Approved  State = "approved"
	Refused   State = "denied"
	Expired   State = "expired"
	Cancelled State = "cancelled"
)

// Who has ended approvals that nobody answered.
const (
	ByDeadline = "deadline"
	BySystem   = "system" // nobody needs an answer any more
)

// And stands between the keys of several people who approved together.
const And = " and "

// Approval asks whether something may be done, with everything a person needs to answer it.
type Approval struct {
	ID      string
	Thread  chat.ThreadID
	Run     string
	Call    chat.ToolUse
	Actions []string
	Dir     string
	Bound   json.RawMessage // facts checked again before it runs
	Preview string          // a diff, when files would change
	chat.Assessment
	Rule       string
	Reason     string // why it is asked
	Again      string // what has changed since it was approved before; "": it was not
	AskedBy    chat.Principal
	Payer      chat.Principal
	AskedAt    time.Time
	Deadline   time.Time    // zero: none
	Remind     time.Time    // when people are reminded of it; zero: they were, or never
	Who        string       // who may answer, as ParseWho reads it; "": DefaultWho
	Fields     []chat.Field // what a question asks for; none: a yes or a no is the answer
	Votes      []Vote       // what people said so far, the first one first
	State      State
	AnsweredBy string
	AnsweredAt time.Time
	Note       string
}

// questionAction marks an approval that is a question: it is answered with words, and the note of a yes is the answer.
const questionAction = "question:"

// QuestionAction is the action of a question that somebody else than the agent asks.
func QuestionAction(asker string) string { return questionAction + asker }

// IsQuestion reports whether actions are those of a question: a yes carries the answer in its note, a no declines it.
func IsQuestion(actions []string) bool {
	return len(actions) == 1 && strings.HasPrefix(actions[0], questionAction)
}

// Vote is what one person said to an approval.
type Vote struct {
	By   chat.Principal
	OK   bool
	Note string
	At   time.Time
}

// Change is one change to the approvals table inside a commit: a new approval,
// or (by id, only while pending) what somebody said, its reminder, its answer.
type Change struct {
	New    *Approval
	Vote   *Ballot
	Answer *Answer
	// Remind is the id of an approval of which people are being reminded.
	Remind string
	// CancelRun cancels every pending approval of this run.
	CancelRun string
}

// Answer settles a pending approval.
type Answer struct {
	ID    string
	State State
	By    string
	Note  string
}

// Ballot is a vote on its way into the table. Before is how many votes its writer
// had seen: where there are more, the writer must look again.
type Ballot struct {
	ID string
	Vote
	Before int
}

// Filter narrows a list of approvals; zero fields do not.
type Filter struct {
	Thread chat.ThreadID
	Run    string
	State  State
	Due    time.Time // only those whose deadline is not after it
	Remind time.Time // only those of which people must have been reminded by then
	Prefix string    // how the id begins
	Newest bool      // the newest first; else the oldest
	Limit  int       // 0: 100
}

// Audit is one line of the audit log.
type Audit struct {
	Agent     string
	Thread    chat.ThreadID
	Run       string
	Call      string
	Principal chat.Principal
	Action    string
	Decision  string // allow, ask_approved, ask_denied, deny
	Rule      string
	Detail    string
}
