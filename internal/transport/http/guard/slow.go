package guard

import (
	"net/http"
	"strconv"
	"sync"
	"time"

	"chorus/internal/command"
)

// How much guessing is borne.
const (
	freeFailures = 10               // before anybody waits
	firstWait    = 2 * time.Second  // doubled by each further failure
	longestWait  = 15 * time.Minute //
	forgetAfter  = 30 * time.Minute // without a failure
	maxGuessers  = 4096             // remembered at once
)

// slowness makes whoever fails wait. It remembers a bounded number of places; when
// more guess at once, all new ones share one place.
type slowness struct {
	mu    sync.Mutex
	known map[string]*failing
}

type failing struct {
	count int
	until time.Time
	last  time.Time
}

func newSlowness() *slowness { return &slowness{known: map[string]*failing{}} }

func (s *slowness) wait(from string, now time.Time) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	f := s.known[s.place(from)]
	if f == nil {
		return 0
	}
	return f.until.Sub(now)
}

func (s *slowness) failed(from string, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.known) >= maxGuessers {
		for k, f := range s.known {
			if now.Sub(f.last) > forgetAfter {
				delete(s.known, k)
			}
		}
	}
	place := s.place(from)
	f := s.known[place]
	if f == nil || now.Sub(f.last) > forgetAfter {
		f = &failing{}
		s.known[place] = f
	}
	f.count, f.last = f.count+1, now
	if over := f.count - freeFailures; over > 0 {
		f.until = now.Add(min(longestWait, firstWait<<min(over-1, 20)))
	}
}

// place is under what a place is remembered.
func (s *slowness) place(from string) string {
	if _, ok := s.known[from]; !ok && len(s.known) >= maxGuessers {
		return "everybody else"
	}
	return from
}

// tooOften says how long to wait.
func tooOften(w http.ResponseWriter, wait time.Duration) error {
	seconds := int(wait/time.Second) + 1
	w.Header().Set("Retry-After", strconv.Itoa(seconds))
	return command.Errorf(command.Busy, "too many wrong tokens came from here; try again in %d s", seconds)
}

// once remembers what was used until it could not be used any more anyway.
type once struct {
	mu   sync.Mutex
	seen map[string]time.Time // until when
}

func newOnce() *once { return &once{seen: map[string]time.Time{}} }

// use reports whether this is the first time.
func (o *once) use(what string, until, now time.Time) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	for k, t := range o.seen {
		if now.After(t) {
			delete(o.seen, k)
		}
	}
	if _, again := o.seen[what]; again {
		return false
	}
	o.seen[what] = until
	return true
}
