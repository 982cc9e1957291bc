package outbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"chorus/internal/journal"
)

// Call is one thing to do on a platform.
type Call struct {
	Lane  journal.Lane
	Key   string
	Nonce string // for a new message: always the same for the same key
	ID    string // the message to change, delete or react to
	Body  json.RawMessage
	File  []byte // the bytes of the attachment, if Body only names it
}

// Probe asks whether a message has been made after all.
type Probe struct {
	Lane  journal.Lane
	Key   string
	Nonce string
	Body  json.RawMessage // as sent, for platforms that do not return nonces
	After string          // it comes after this message; "" if not known
	Since time.Time       // it was not sent before this
}

// Platform is what a platform implementation must provide. Calls come from several goroutines,
// but for one lane from one at a time, each with a deadline. Errors are a *RateLimited or a
// *Trouble. Any other error means that nobody knows what happened.
type Platform interface {
	// Create makes a message. With a nonce that was used recently it returns the id of the
	// message made then, if the platform can do so (see Options.NonceWindow).
	Create(context.Context, Call) (id string, err error)
	// Edit, React and Unreact may be repeated. Deleting what does not exist
	// is a Trouble with Gone, which counts as done.
	Edit(context.Context, Call) error
	Delete(context.Context, Call) error
	React(context.Context, Call) error
	Unreact(context.Context, Call) error
	// Find searches for a message of ours by nonce, or by author, body and time.
	Find(context.Context, Probe) (id string, v Verdict, err error)
	// Answers reports whether the platform answers anything at all just now. If
	// it does, a failing call fails for its own reasons.
	Answers(context.Context) bool
}

// Verdict is the result of a search for a message.
type Verdict int

// The verdicts.
const (
	Unknown Verdict = iota // the platform cannot tell: the message is never made again
	Absent                 // it does not exist
	Present                // it exists, with the returned id
)

// RateLimited means that the platform refused a call because there were too many.
type RateLimited struct {
	After  time.Duration
	Global bool // no calls at all until then, not only this kind in this lane
}

// Error says how long to wait.
func (e *RateLimited) Error() string {
	return fmt.Sprintf("rate limited: not before %v (global: %v)", e.After, e.Global)
}

// Why says what kind of trouble there is.
type Why string

// The kinds of trouble. All but Temporary are final and mean that nothing was done.
const (
	Temporary Why = "temporary" // it may have been done, or not; try again
	Gone      Why = "gone"      // the message does not exist, or something unspecified does not
	Nowhere   Why = "nowhere"   // the channel does not exist, nor anything in it
	Forbidden Why = "forbidden" // a permission is missing
	Archived  Why = "archived"  // the platform's thread is closed
	Invalid   Why = "invalid"   // the platform rejects this body
	Unsure    Why = "unsure"    // it may exist or not, and nobody can find out
	Broken    Why = "broken"    // the platform keeps failing on this one while it answers others; it was searched for and does not exist
)

// Trouble is an error of the platform.
type Trouble struct {
	Why  Why
	Err  error
	Said string // what the platform said, for people; "" if nothing useful
}

// Error returns the kind and the platform's error.
func (e *Trouble) Error() string { return fmt.Sprintf("%s: %v", e.Why, e.Err) }

// Unwrap returns the platform's error.
func (e *Trouble) Unwrap() error { return e.Err }

// permanent returns the reason of an error that would be the same next time.
func permanent(err error) (Why, bool) {
	if t, ok := errors.AsType[*Trouble](err); ok && t.Why != Temporary {
		return t.Why, true
	}
	return Temporary, false
}
