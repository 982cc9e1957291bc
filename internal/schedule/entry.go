package schedule

import (
	"time"

	"chorus/internal/chat"
)

// Kind says what a schedule is for.
type Kind string

// The kinds. A timer and a self activation are set by an agent in a room, for itself.
const (
	Ordinary       Kind = ""
	Timer          Kind = "timer"
	SelfActivation Kind = "self_activation"
)

// Target is a channel of a platform in which a schedule posts its words and opens a thread on them, each time a new one.
type Target struct {
	Adapter string // the platform
	Channel string // its id there
	Agent   string // who posts and answers
}

// Schedule is something that is said at set times: in a thread, or in a channel.
type Schedule struct {
	ID      string
	Kind    Kind
	Owner   chat.Principal // whose rights and money it uses
	Thread  chat.ThreadID  // "": it has a target
	Target  Target
	Words   string
	Said    string // when, as it was said
	Spec    string // when, as it is read
	Zone    string
	CatchUp string
	Jitter  time.Duration
	Due     time.Time // zero: never again
	Begins  time.Time // Due and its jitter
	Paused  bool
	Held    bool // the conversation in which it speaks was deleted
	Told    bool // the owner was told that the budget is spent, and it was not kept since
	Created time.Time
	File    string // the event file that it comes from; empty: somebody added it
	Digest  string // of that file
}

// The states of a due time.
const (
	Said    = "said"
	Refused = "refused"
	Skipped = "skipped"
)

// Run is what became of a due time.
type Run struct {
	Due    time.Time
	State  string
	Thread chat.ThreadID // where it was said; "": in the schedule's own thread
	Seq    int64         // of the prompt; 0: it is on its way
	Why    string
	At     time.Time
}

// Read reads when it is due.
func (s Schedule) Read() (Spec, error) {
	zone, err := Zone(s.Zone)
	if err != nil {
		return Spec{}, err
	}
	return Read(s.Spec, zone)
}

// Begin is when a due time begins: with the schedule's jitter.
func (s Schedule) Begin(due time.Time) time.Time {
	if due.IsZero() {
		return due
	}
	return due.Add(jitter(s.ID, due, s.Jitter))
}
