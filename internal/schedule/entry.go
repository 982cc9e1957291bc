package schedule

import (
	"time"

	"chorus/internal/chat"
)

// Schedule is something that is said to a thread at set times.
type Schedule struct {
	ID      string
	Owner   chat.Principal // whose rights and money it uses
	Thread  chat.ThreadID
	Words   string
	Said    string // when, as it was said
	Spec    string // when, as it is read
	Zone    string
	CatchUp string
	Jitter  time.Duration
	Due     time.Time // zero: never again
	Begins  time.Time // Due and its jitter
	Paused  bool
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
	Due   time.Time
	State string
	Seq   int64 // of the prompt
	Why   string
	At    time.Time
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
