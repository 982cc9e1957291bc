// Package approval defines approvals: the gate's rulings, and what is stored while a call waits for
// approval. The engine writes them, the store keeps them, and transports show them.
package approval

import (
	"encoding/json"
	"strings"
	"time"

	"chorus/internal/chat"
)

// Verdict is the gate's decision about a call.
type Verdict string

// The verdicts.
const (
	Allow   Verdict = "allow"
	Deny    Verdict = "deny"    // the model is told; the run continues
	Pending Verdict = "pending" // somebody must be asked; the run is suspended
	End     Verdict = "end"     // somebody would have to be asked and nobody can be: the run ends as denied
)

// Ruling is the gate's answer for one call.
type Ruling struct {
	Verdict Verdict
	Reason  string    // for people and for the model
	Rule    string    // the rule that decided, as written
	Ask     *Approval // with Pending
	// Assessment is what people are told in addition, with Pending.
	Assessment chat.Assessment
	Audit      *Audit // the audit log entry; nil for none
	// Hides reports the files that the call must leave out when it searches through
	// many, because rules forbid reading them; nil if there are none.
	Hides func(path string) bool
}

// State is the state of an approval.
type State string

// The states of an approval.
const (
	Open      State = "pending"
	Approved  State = "approved"
	Refused   State = "denied"
	Expired   State = "expired"
	Cancelled State = "cancelled"
)

// What ended approvals that nobody answered.
const (
	ByDeadline = "deadline"
	BySystem   = "system" // nobody needs an answer any more
)

// And separates the keys of several people who approved together.
const And = " and "

// Approval asks whether something may be done, with everything a person needs to decide.
type Approval struct {
	ID      string
	Thread  chat.ThreadID
	Run     string
	Call    chat.ToolUse
	Actions []string
	Dir     string
	Bound   json.RawMessage // facts that are checked again before it runs
	Preview string          // a diff, if files would change
	chat.Assessment
	Rule       string
	Reason     string // why it needs approval
	Again      string // what has changed since an earlier approval; "" if there was none
	AskedBy    chat.Principal
	Payer      chat.Principal
	AskedAt    time.Time
	Deadline   time.Time    // zero if there is none
	Remind     time.Time    // when to remind people; zero if that is done, or never
	Who        string       // who may answer, as ParseWho reads it; "": DefaultWho
	Fields     []chat.Field // fields of a question; if empty, the answer is yes or no
	Votes      []Vote       // answers so far, oldest first
	State      State
	AnsweredBy string
	AnsweredAt time.Time
	Note       string
}

// questionAction marks an approval that is a question: it is answered
// in words, and the note of a yes is the answer.
const questionAction = "question:"

// QuestionAction returns the action of a question that somebody other than the agent asks.
func QuestionAction(asker string) string { return questionAction + asker }

// IsQuestion reports whether actions are those of a question: a yes has the answer in its note, a no declines.
func IsQuestion(actions []string) bool {
	return len(actions) == 1 && strings.HasPrefix(actions[0], questionAction)
}

// Vote is one person's answer to an approval.
type Vote struct {
	By   chat.Principal
	OK   bool
	Note string
	At   time.Time
}

// Change is one change to the approvals table within a commit: a new approval or, by id and
// only while it is pending, a vote, a reminder or the final answer.
type Change struct {
	New    *Approval
	Vote   *Ballot
	Answer *Answer
	// Remind is the id of an approval about which people are being reminded.
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

// Ballot is a vote to be written. Before is how many votes its writer had
// seen; if there are more, the writer must check again.
type Ballot struct {
	ID string
	Vote
	Before int
}

// Filter narrows a list of approvals. Zero fields match everything.
type Filter struct {
	Thread chat.ThreadID
	Run    string
	State  State
	Due    time.Time // only those whose deadline is not after this
	Remind time.Time // only those with a reminder due by then
	Prefix string    // prefix of the id
	Newest bool      // newest first, otherwise oldest first
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
