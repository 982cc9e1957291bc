package outbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"chorus/internal/chat"
	"chorus/internal/journal"
)

// Call is one thing to do on a platform.
type Call struct {
	Lane   journal.Lane
	Key    string
	Nonce  string // of a message to be made: always the same for the same key
	ID     string // the message to change, delete or react to
	Thread chat.ThreadID
	Part   int
	Body   json.RawMessage
	File   []byte // the bytes of what goes along, where Body only names them
}

// Probe asks whether a message has been made after all.
type Probe struct {
	Lane  journal.Lane
	Key   string
	Nonce string
	Body  json.RawMessage // as it was sent, for platforms that do not give nonces back
	After string          // it stands behind this message; empty: nothing is known
	Since time.Time       // it was not sent before
}

// Platform is what a maker must do. Calls come from several goroutines, for one lane from
// one at a time, each with a deadline. Errors are a *RateLimited or a *Trouble; any other
// error means that nobody knows what happened.
type Platform interface {
	// Create makes a message. With a nonce that was used a short while ago it gives the
	// id of the message made then, if the platform can (see Options.NonceWindow).
	Create(context.Context, Call) (id string, err error)
	// Edit, React and Unreact may be repeated. Delete of what is not there is a Trouble
	// with Gone, which counts as done.
	Edit(context.Context, Call) error
	Delete(context.Context, Call) error
	React(context.Context, Call) error
	Unreact(context.Context, Call) error
	// Find looks for a message of ours by nonce, or by author, body and time.
	Find(context.Context, Probe) (id string, v Verdict, err error)
	// Answers reports whether the platform says anything at all just now: what fails then
	// fails by itself.
	Answers(context.Context) bool
}

// Verdict is what a search for a message came to.
type Verdict int

// The verdicts.
const (
	Unknown Verdict = iota // the platform cannot tell: the message is never made again
	Absent                 // it is not there
	Present                // it is, with the id that was given
)

// RateLimited is the platform's word that a call was not done because there were too many.
type RateLimited struct {
	After  time.Duration
	Global bool // no call at all until then, not only this kind in this lane
}

// Error says how long.
func (e *RateLimited) Error() string {
	return fmt.Sprintf("rate limited: not before %v (global: %v)", e.After, e.Global)
}

// Why says what sort of trouble there is.
type Why string

// The closed set of reasons. All but Temporary are for ever and mean that nothing was done.
const (
	Temporary Why = "temporary" // it may have been done, or not; try again
	Gone      Why = "gone"      // the message is not there, or nobody says what is not
	Nowhere   Why = "nowhere"   // the channel is not there, and nothing that stood in it
	Forbidden Why = "forbidden" // a permission is missing
	Archived  Why = "archived"  // the platform's thread is closed
	Invalid   Why = "invalid"   // the platform does not take this body
	Unsure    Why = "unsure"    // it may be there or not, and nobody can find out
	Broken    Why = "broken"    // the platform fails on this one again and again, and answers others; it was looked for and is not there
)

// Trouble is an error of the platform.
type Trouble struct {
	Why  Why
	Err  error
	Said string // what the platform said, for people; "": nothing of use
}

// Error says what it is and what the platform said.
func (e *Trouble) Error() string { return fmt.Sprintf("%s: %v", e.Why, e.Err) }

// Unwrap gives what the platform said.
func (e *Trouble) Unwrap() error { return e.Err }

// permanent tells the reason of an error that will be the same next time.
func permanent(err error) (Why, bool) {
	if t, ok := errors.AsType[*Trouble](err); ok && t.Why != Temporary {
		return t.Why, true
	}
	return Temporary, false
}
