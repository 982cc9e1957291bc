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

// Lane is one channel as one bot sees it. What we say there keeps its order; lanes
// know nothing of each other.
type Lane struct {
	Platform string
	Bot      string
	Channel  string
}

// String is the lane for logs and errors.
func (l Lane) String() string { return l.Platform + ":" + l.Bot + "/" + l.Channel }

// Thing says what sort of thing is wanted.
type Thing string

// The closed set of things in an outbox.
const (
	Message  Thing = "message"
	Reaction Thing = "reaction"
)

// Desired is what the thing with this key should look like from now on. Asking for the
// same again changes nothing.
type Desired struct {
	Lane   Lane
	Key    string        // names the thing for ever; unique in its lane
	Thread chat.ThreadID // whose it is; empty: nobody's
	Seq    int64         // the event that it follows from; an older one never overtakes a newer
	Part   int           // of an answer in several messages
	Group  string        // when a thing of a group cannot be made, the later ones of it are not made either
	Thing  Thing         // empty: a message
	// Target is the platform's id of a message that is there already: the one to change
	// or delete, or the one to react to. TargetKey is, for a reaction, the key of a message
	// of ours in this lane. Both empty: a message to be made.
	Target    string
	TargetKey string
	Body      json.RawMessage
	Final     bool // nothing follows: it need not wait for its turn among edits
	Gone      bool // it should not be there (any more)
}

// OutState is where a row of an outbox stands.
type OutState string

// The closed set of states.
const (
	Planned    OutState = "planned"    // something is to be done
	Sending    OutState = "sending"    // a call was begun and its outcome is not known
	Sent       OutState = "sent"       // the platform has what is wanted
	Failed     OutState = "failed"     // it cannot be done; Why and Error say why
	Superseded OutState = "superseded" // no longer wanted before it was ever made
)

// Outgoing is a row of the outbox: what is wanted and what has become of it.
type Outgoing struct {
	Desired
	Order     int64 // place in the lane
	Nonce     string
	State     OutState
	Want      int64  // revision that is wanted
	Have      int64  // revision that the platform has; 0: none
	ID        string // the platform's id, once made
	Tried     int64  // revision of the call with an unknown outcome; 0: none
	TriedBody json.RawMessage
	TriedAt   time.Time
	Attempts  int       // calls begun since the last success
	NotBefore time.Time // zero: at once
	Alone     time.Time // since when the platform fails on this one, though it answers others; zero: it does not
	Why       string    // of a failure: gone, forbidden, …
	Error     string
	Created   time.Time
	Changed   time.Time
}

// Made reports whether there is something on the platform to change: a message that was
// made, or one that was there before.
func (o Outgoing) Made() bool { return o.ID != "" || o.Target != "" }

// Plan is one step of a durable reader: what it wants and its place are true together or
// not at all.
type Plan struct {
	Reader  string
	Thread  chat.ThreadID
	From    int64 // where the reader stood; if it stands elsewhere: ErrMoved
	UpTo    int64
	Desired []Desired
}

// Outcome is what a call came to. A success is true whoever tells it first; the others
// count only if no other attempt was begun since.
type Outcome struct {
	Lane    Lane
	Key     string
	Attempt int   // the number that BeginSend gave
	Rev     int64 // of a success: the revision that the platform has now
	ID      string
	// State: Sent; Planned (certainly not done, again at NotBefore); Sending (nobody knows,
	// again at NotBefore); Failed (for ever); Superseded.
	State     OutState
	NotBefore time.Time
	Alone     time.Time // of Planned and Sending: as in Outgoing
	Why       string
	Error     string
}

// Place is where a message on a platform belongs.
type Place struct {
	Thread chat.ThreadID
	Seq    int64
	Part   int
	Ours   bool // we wrote it
	Lane   Lane // of ours
	Key    string
}

// Memo is a small thing that a part of the program must not forget.
type Memo struct {
	Key   string
	Value []byte
}

// MaxNonce is how long the shortest of the platforms lets a nonce be.
const MaxNonce = 25

// Nonce is the one that always belongs to the thing: 120 bits in 24 characters.
func (l Lane) Nonce(key string) string {
	h := sha256.New()
	for _, t := range []string{l.Platform, l.Bot, l.Channel, key} {
		fmt.Fprintf(h, "%d:%s", len(t), t)
	}
	return strings.ToLower(base32.StdEncoding.EncodeToString(h.Sum(nil)[:15]))
}
