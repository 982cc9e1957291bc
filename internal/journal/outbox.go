package journal

import (
	"crypto/sha256"
	"encoding/base32"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"chorus/internal/chat"
)

// Lane is one channel as one bot sees it. Messages in a lane keep
// their order; lanes are independent of each other.
type Lane struct {
	Platform string
	Bot      string
	Channel  string
}

// String formats the lane for logs and errors.
func (l Lane) String() string { return l.Platform + ":" + l.Bot + "/" + l.Channel }

// Thing says what kind of thing is wanted.
type Thing string

// The kinds of things in an outbox.
const (
	Message  Thing = "message"
	Reaction Thing = "reaction"
)

// Desired says what the thing with this key should look like from now
// on. Asking for the same again changes nothing.
type Desired struct {
	Lane   Lane
	Key    string        // names the thing permanently; unique in its lane
	Thread chat.ThreadID // the thread it belongs to; "" if none
	Seq    int64         // the event that it follows from; an older one never overtakes a newer one
	Part   int           // index in an answer of several messages
	Group  string        // if a thing of a group cannot be made, later ones of the group are not made either
	Thing  Thing         // "" means a message
	// Target is the platform's id of an existing message to change, delete or react
	// to. TargetKey is, for a reaction, the key of a message of ours in this lane. If
	// both are empty, a message is to be created.
	Target    string
	TargetKey string
	Body      json.RawMessage
	Final     bool // nothing follows, so it need not wait for its turn among edits
	Gone      bool // it should not exist (any more)
}

// OutState is the state of an outbox row.
type OutState string

// The states of an outbox row.
const (
	Planned    OutState = "planned"    // something is to be done
	Sending    OutState = "sending"    // a call has begun and its outcome is not known
	Sent       OutState = "sent"       // the platform has what is wanted
	Failed     OutState = "failed"     // it cannot be done; see Why and Error
	Superseded OutState = "superseded" // no longer wanted, and never made
)

// Outgoing is a row of the outbox: what is wanted and what became of it.
type Outgoing struct {
	Desired
	Order     int64 // place in the lane
	Nonce     string
	State     OutState
	Want      int64  // the wanted revision
	Have      int64  // the revision that the platform has; 0: none
	ID        string // the platform's id, once made
	Tried     int64  // the revision of the call with an unknown outcome; 0: none
	TriedBody json.RawMessage
	TriedAt   time.Time
	Attempts  int       // calls begun since the last success
	NotBefore time.Time // zero means at once
	Alone     time.Time // since when the platform has failed on this one while it answers others; zero if it does not
	Why       string    // of a failure: gone, forbidden, …
	Error     string
}

// Made reports whether there is something on the platform to change: a
// message that was made, or one that existed before.
func (o Outgoing) Made() bool { return o.ID != "" || o.Target != "" }

// Plan is one step of a durable reader. What it wants and its position are written together or not at all.
type Plan struct {
	Reader  string
	Thread  chat.ThreadID
	From    int64 // the reader's position; if it has moved: ErrMoved
	UpTo    int64
	Desired []Desired
}

// Outcome is the result of a call. A success always counts, whoever reports it first.
// Other outcomes count only if no other attempt has begun since.
type Outcome struct {
	Lane    Lane
	Key     string
	Attempt int   // the number that BeginSend returned
	Rev     int64 // after a success: the revision that the platform has now
	ID      string
	// State is Sent, Planned (certainly not done, try again at NotBefore), Sending (not
	// known, try again at NotBefore), Failed (final) or Superseded.
	State     OutState
	NotBefore time.Time
	Alone     time.Time // for Planned and Sending: as in Outgoing
	Why       string
	Error     string
}

// Place says where a message on a platform belongs.
type Place struct {
	Thread chat.ThreadID
	Seq    int64
	Part   int
	Ours   bool // we wrote it
	Lane   Lane // if it is ours
	Key    string
}

// Memo is a small value that a part of the program must not forget.
type Memo struct {
	Key   string
	Value []byte
}

// MaxNonce is the maximum length of a nonce on the platform with the lowest limit.
const MaxNonce = 25

// Nonce returns the nonce of the thing with this key, which is always the same: 120 bits in 24 characters.
func (l Lane) Nonce(key string) string {
	h := sha256.New()
	for _, t := range []string{l.Platform, l.Bot, l.Channel, key} {
		fmt.Fprintf(h, "%d:%s", len(t), t)
	}
	return strings.ToLower(base32.StdEncoding.EncodeToString(h.Sum(nil)[:15]))
}
