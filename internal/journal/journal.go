// Package journal is the contract of durable writing: what one transaction on a
// thread holds, what the store answers, and the errors a writer must tell apart.
// The engine writes through it, the store implements it, the model check holds
// both against a small reference.
//
// Numbers come only from the thread's row. There are two kinds of writers:
//
//   - the owner, who holds the thread's lock and epoch. Its commit carries
//     Epoch; if the row has another epoch it gets ErrFenced and must stop at once.
//     With Expect it also demands that nothing arrived since; otherwise ErrMoved,
//     nothing is written, and it must read the new events and decide again.
//   - guests (transports, people who answer), with Epoch 0. They may only append
//     the kinds that IsGuest names, and they set the thread's wake mark.
package journal

import (
	"errors"
	"time"

	"chorus/internal/approval"
	"chorus/internal/chat"
	"chorus/internal/ledger"
)

// The errors a writer tells apart.
var (
	// ErrFenced: somebody else owns the thread now. Stop, say nothing.
	ErrFenced = errors.New("another process has taken over this thread")
	// ErrMoved: events arrived that the writer has not seen.
	ErrMoved = errors.New("the thread has moved")
	// ErrUnknown: there is no such thread (blob, agent …).
	ErrUnknown = errors.New("not found")
	// ErrSettled: the approval was answered already.
	ErrSettled = errors.New("already answered")
	// ErrDuplicate: an event with this platform id, kind and version is there already.
	ErrDuplicate = errors.New("already in the journal")
	// ErrBudget: a reservation would break a ceiling, and nothing was written. The
	// error is a *ledger.Refusal, which says which in a sentence for people.
	ErrBudget = ledger.ErrRefused
)

// Commit is one transaction on one thread: all that a step makes true, or nothing.
type Commit struct {
	Thread    chat.ThreadID
	Epoch     int64 // 0: a guest
	Expect    int64 // the next number the writer has seen; 0: does not matter
	Events    []chat.Event
	Status    chat.Status // empty: unchanged
	Money     []ledger.Entry
	Ceilings  *ledger.Ceilings  // what the reservations in Money must keep to; nil: nothing
	Warned    []*ledger.Refusal // soft limits at which the room is being asked with this commit
	Approvals []approval.Change
	Audit     []approval.Audit
	Blobs     []chat.Blob
	// Create makes the thread if it is not there (guests only).
	Create *Thread
	// MaxWaiting is the queue limit for prompts in this commit: a Received prompt
	// beyond it is written and followed by its Refused. 0: no limit. Steered words
	// are never refused: they are for the run that is on.
	MaxWaiting int
	// Beside are guests' commits on other threads that become true with this one. One whose event is there already,
	// or whose thread is gone, is left out.
	Beside []Commit
}

// Committed is what a commit became.
type Committed struct {
	Events  []chat.Event // the drafts (and a Refused the store added) with number and time
	Next    int64        // the thread's next number
	Waiting int          // untaken prompts after it
	Beside  []Committed  // in the order of Commit.Beside; of what was there already it has no events
}

// Thread is the row of a thread.
type Thread struct {
	ID         chat.ThreadID
	Agent      string
	Place      string
	Owner      chat.Principal
	Title      string // first words, for lists
	Dir        string // the working directory its tools use
	Status     chat.Status
	Epoch      int64
	Next       int64 // number of the next event; 1 for an empty thread
	Waiting    int
	Wake       bool
	Created    time.Time
	LastActive time.Time
	Parent     Parent // zero: nobody's
	Placement  string // the label of the machines that have its files; empty: any may run it
	Listing    string // pinned, archived, Deleted, Erased or "": how lists show it
}

// The listings of threads that were deleted. Those that are Deleted can be brought back; of those that are Erased only the row is left.
const (
	Deleted = "deleted"
	Erased  = "erased"
)

// Gone reports whether a thread was deleted: nobody finds it, whether or not it can still be brought back.
func (t Thread) Gone() bool { return t.Listing == Deleted || t.Listing == Erased }

// Parent is who began a thread that an agent began.
type Parent struct {
	Thread chat.ThreadID
	Run    string
	Call   string // which waits for its answer; "": nobody does
	Root   string // the run at the top, whose budget it uses
}

// Arrival is the one commit over several threads: something came from outside,
// once, whoever hears it. Threads are created as needed.
type Arrival struct {
	Platform   string
	Bot        string
	What       string // message, reaction, edit …
	PlatformID string
	Version    int
	Decision   string // what routing decided, for the record
	Commits    []Commit
}

// Arrived is what an arrival became. Again is true when it had been there
// already; then nothing was written and Commits is empty.
type Arrived struct {
	Again   bool
	Commits []Committed
}

// Snapshot is the folded state of a thread after event Seq.
type Snapshot struct {
	Thread chat.ThreadID
	Seq    int64
	Codec  string // who can read State; another codec is ignored
	State  []byte
}

// IsPrompt reports whether the body waits to be taken by a run.
func IsPrompt(body chat.Body) bool {
	switch b := body.(type) {
	case chat.Received:
		return b.Prompt
	case chat.Steered:
		return true
	default:
		return false
	}
}

// IsGuest reports whether a guest may append the body.
func IsGuest(body chat.Body) bool {
	switch b := body.(type) {
	case chat.ApprovalAsked:
		return b.During
	case chat.Received, chat.Refused, chat.Reacted, chat.Edited, chat.Deleted, chat.Steered,
		chat.AbortAsked, chat.ApprovalAnswered, chat.ApprovalNoted, chat.Imported, chat.Forked, chat.Settled:
		return true
	default:
		return false
	}
}

// Wakes reports whether the body gives an actor something to do.
func Wakes(body chat.Body) bool {
	switch b := body.(type) {
	case chat.Received:
		return b.Prompt
	case chat.Steered, chat.AbortAsked, chat.ApprovalAnswered, chat.Settled:
		return true
	default:
		return false
	}
}
