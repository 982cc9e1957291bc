// Package desk holds the words of approvals: what the gate ruled, and what is
// stored while a call waits for somebody's yes. The engine writes them, the store
// keeps them, transports show them.
package desk

import (
	"encoding/json"
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
	Audit   *Audit    // what the audit log will say; nil for nothing
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

// Approval is one question with everything a person needs to answer it.
type Approval struct {
	ID         string
	Thread     chat.ThreadID
	Run        string
	Call       chat.ToolUse
	Actions    []string
	Dir        string
	Bound      json.RawMessage // facts checked again before it runs
	Preview    string          // a diff, when files would change
	Risk       string
	Rule       string
	AskedBy    chat.Principal
	AskedAt    time.Time
	Deadline   time.Time // zero: none
	State      State
	AnsweredBy string
	Note       string
}

// Change is one change to the approvals table inside a commit: a new approval,
// or (by id, only while pending) its answer.
type Change struct {
	New    *Approval
	Answer *Answer
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
