package schedule

import (
	"time"

	"chorus/internal/chat"
)

// Kind says what a schedule is for.
type Kind string

// The kinds. An agent in a room sets timers and self activations for itself.
const (
	Ordinary       Kind = ""
	Timer          Kind = "timer"
	SelfActivation Kind = "self_activation"
)

// Target is a channel of a platform in which a schedule posts its
// words and opens a new thread on them each time.
type Target struct {
	Adapter string // the platform
	Channel string // the channel's id there
	Agent   string // who posts and answers
}

// Schedule is a text to be said at set times, in a thread or in a channel.
type Schedule struct {
	ID      string
	Kind    Kind
	Owner   chat.Principal // its rights and money are used
	Thread  chat.ThreadID  // "" if it has a target
	Target  Target
	Words   string
	Said    string // when, as written by people
	Spec    string // when, as parsed
	Zone    string
	CatchUp string
	Jitter  time.Duration
	Due     time.Time // zero if never again
	Begins  time.Time // Due plus its jitter
	Paused  bool
	Held    bool // its conversation was deleted
	Told    bool // the owner was told that the budget is spent, and it has not run since
	Created time.Time
	File    string // the event file that it comes from; "" if somebody added it
	Digest  string // digest of that file
}

// The states of a due time.
const (
	Said    = "said"
	Refused = "refused"
	Skipped = "skipped"
)

// Run says what became of a due time.
type Run struct {
	Due    time.Time
	State  string
	Thread chat.ThreadID // where it was said; "" for the schedule's own thread
	Seq    int64         // sequence number of the prompt; 0 if it is not there yet
	Why    string
	At     time.Time
}

// Read parses when the schedule is due.
func (s Schedule) Read() (Spec, error) {
	zone, err := Zone(s.Zone)
	if err != nil {
		return Spec{}, err
	}
	return Read(s.Spec, zone)
}

// Begin returns when a due time begins, with the schedule's jitter.
func (s Schedule) Begin(due time.Time) time.Time {
	if due.IsZero() {
		return due
	}
	return due.Add(jitter(s.ID, due, s.Jitter))
}
