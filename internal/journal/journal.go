// Package journal is the contract for durable writing: what one transaction on a thread contains,
// what the store answers, and the errors a writer must distinguish. The engine writes through it
// and the store implements it. The model check compares both with a small reference implementation.
//
// Event numbers come only from the thread's row. There are two kinds of writers:
//
//   - The owner holds the thread's lock and epoch. Its commit carries Epoch; if the row has
//     another epoch, the commit fails with ErrFenced and the owner must stop at once. With
//     Expect it also requires that nothing arrived since. Otherwise the commit writes nothing
//     and fails with ErrMoved, and the owner must read the new events and decide again.
//   - Guests (transports, people who answer) have Epoch 0. They may only append the kinds
//     that IsGuest names, and they set the thread's wake mark.
package journal

import (
	"errors"
	"time"

	"chorus/internal/approval"
	"chorus/internal/chat"
	"chorus/internal/ledger"
)

// The errors that writers distinguish.
var (
	// ErrFenced means that somebody else owns the thread now. Stop and write nothing more.
	ErrFenced = errors.New("another process has taken over this thread")
	// ErrMoved means that events arrived that the writer has not seen.
	ErrMoved = errors.New("the thread has moved")
	// ErrUnknown means that there is no such thread, blob, agent and so on.
	ErrUnknown = errors.New("not found")
	// ErrSettled means that the approval was already answered.
	ErrSettled = errors.New("already answered")
	// ErrDuplicate means that an event with this platform id, kind and version exists already.
	ErrDuplicate = errors.New("already in the journal")
	// ErrBudget means that a reservation would exceed a ceiling; nothing was written. The error is
	// a *ledger.Refusal, which names the ceiling in a sentence for people.
	ErrBudget = ledger.ErrRefused
)

// Commit is one transaction on one thread. It is written completely or not at all.
type Commit struct {
	Thread    chat.ThreadID
	Epoch     int64 // 0 for a guest
	Expect    int64 // the next number that the writer expects; 0: any
	Events    []chat.Event
	Status    chat.Status // "" if unchanged
	Money     []ledger.Entry
	Ceilings  *ledger.Ceilings  // what the reservations in Money must keep to; nil: nothing
	Warned    []*ledger.Refusal // soft limits about which this commit asks the room
	Approvals []approval.Change
	Audit     []approval.Audit
	Blobs     []chat.Blob
	// Create creates the thread if it does not exist (guests only).
	Create *Thread
	// MaxWaiting is the queue limit for prompts in this commit. A Received prompt beyond
	// it is written and followed by its Refused. 0 means no limit. Steered words are
	// never refused, because they are for the current run.
	MaxWaiting int
	// Beside are commits by guests on other threads, made in the same transaction. One
	// whose event already exists, or whose thread is gone, is left out.
	Beside []Commit
}

// Committed is the result of a commit.
type Committed struct {
	Events  []chat.Event // the drafts (and a Refused added by the store) with number and time
	Next    int64        // the thread's next number
	Waiting int          // prompts not yet taken after it
	Beside  []Committed  // in the order of Commit.Beside; without events where they existed already
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
	Parent     Parent // zero if it has none
	Placement  string // the label of the machines that have its files; "": any may run it
	Listing    string // how lists show it: pinned, archived, Deleted, Erased or ""
}

// The listings of deleted threads. A Deleted thread can be restored; of an Erased one only the row is left.
const (
	Deleted = "deleted"
	Erased  = "erased"
)

// Gone reports whether a thread was deleted. Nobody can find it, whether or not it can still be restored.
func (t Thread) Gone() bool { return t.Listing == Deleted || t.Listing == Erased }

// Parent is the origin of a thread that an agent started.
type Parent struct {
	Thread chat.ThreadID
	Run    string
	Call   string // the call that waits for its answer; "" if none does
	Root   string // the topmost run, whose budget it uses
}

// Arrival is one commit over several threads: something that came from outside once,
// with all the threads that hear it. Threads are created as needed.
type Arrival struct {
	Platform   string
	Bot        string
	What       string // message, reaction, edit …
	PlatformID string
	Version    int
	Decision   string // what routing decided, for the record
	Commits    []Commit
}

// Arrived is the result of an arrival. Again means that it had been written
// before; then nothing was written and Commits is empty.
type Arrived struct {
	Again   bool
	Commits []Committed
}

// Snapshot is the folded state of a thread after event Seq.
type Snapshot struct {
	Thread chat.ThreadID
	Seq    int64
	Codec  string // the format of State; a state in another codec is ignored
	State  []byte
}

// IsPrompt reports whether the body waits for a run to take it.
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
