package outbox

import (
	"context"
	"fmt"
	"sync"
	"time"

	"chorus/internal/journal"
)

// A platform that is down is waited for, however long it takes. One that answers but keeps
// failing on one thing is not, because other things wait behind that one.

// leastTries is how often a thing must fail before the thing itself is blamed.
const leastTries = 8

// askAfter is the number of consecutive failures after which the platform is asked whether it answers.
const askAfter = 3

// solo tracks a thing on which the platform fails while it answers
// others. What a restart forgets is tried once more.
type solo struct {
	tries  int       // consecutive failures
	proof  time.Time // since when we know that the platform accepts others of its kind; zero: we do not
	proven int       // failures after that
	over   bool      // it is given up as soon as we know that it does not exist
	looks  int       // failed attempts to find that out
}

// alone evaluates a failure of a call that began at began. It returns since when the platform
// has failed on this one alone, and whether that has been long enough.
func (l *lane) alone(on context.Context, j job, began time.Time) (since time.Time, over bool) {
	key := j.row.Key
	if on.Err() != nil || l.e.calls.Err() != nil {
		return j.row.Alone, false // it was cancelled, which proves nothing
	}
	if l.stumbled[key] < askAfter && j.row.Alone.IsZero() {
		return time.Time{}, false
	}
	if !l.e.pulse.answers(l.e.calls, began, l.e.ask) {
		delete(l.solos, key)
		return time.Time{}, false
	}
	now := time.Now()
	if since = j.row.Alone; since.IsZero() { // the first failure, or something else is wanted now
		since = now
		delete(l.solos, key)
	}
	s := l.solos[key]
	if s == nil {
		s = &solo{}
		l.solos[key] = s
	}
	s.tries++
	switch taken := l.e.pulse.taken(j.do); {
	case s.over:
		s.looks++
	case !s.proof.IsZero():
		s.proven++
	case taken.After(since):
		s.proof = now
	}
	sure := s.proven >= leastTries && now.Sub(s.proof) >= l.e.o.GiveUp
	long := s.tries >= leastTries && now.Sub(since) >= l.e.o.GiveUpUnsure
	s.over = s.over || sure || long
	// A message may have been made after all, so search for it first if possible.
	return since, s.over && (j.do != create || s.looks >= leastTries)
}

// lastLook reports whether a message is no longer made but only searched for.
func (l *lane) lastLook(key string) bool { return l.solos[key] != nil && l.solos[key].over }

// broken returns the error of a thing that was given up.
func broken(o journal.Outgoing) error {
	return &Trouble{Why: Broken, Err: fmt.Errorf("it failed %d times while the platform answered others, at last so: %s", o.Attempts, o.Error)}
}

// ask asks the platform whether it answers.
func (e *Engine) ask(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, e.o.CallTimeout)
	defer cancel()
	return e.o.Platform.Answers(ctx)
}

// pulse records whether the platform answers, and what it accepts.
type pulse struct {
	asking chan struct{} // buffer of one: one caller asks for all

	mu    sync.Mutex
	last  map[action]time.Time // success of each kind
	asked time.Time            // when it was last asked
	well  bool                 // the answer to that
}

func newPulse() *pulse { return &pulse{asking: make(chan struct{}, 1), last: map[action]time.Time{}} }

// took records a success.
func (p *pulse) took(do action, now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.last[do] = now
}

// taken returns when something of a kind last succeeded, or zero.
func (p *pulse) taken(do action) time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.last[do]
}

// answers reports whether the platform has answered anything since a time, or does now.
func (p *pulse) answers(ctx context.Context, since time.Time, ask func(context.Context) bool) bool {
	select {
	case p.asking <- struct{}{}:
		defer func() { <-p.asking }()
	case <-ctx.Done():
		return false
	}
	if well, known := p.known(since); known {
		return well
	}
	now := time.Now()
	well := ask(ctx)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.asked, p.well = now, well
	return well
}

// known returns what is known without asking.
func (p *pulse) known(since time.Time) (well, known bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, at := range p.last {
		if at.After(since) {
			return true, true
		}
	}
	return p.well, p.asked.After(since)
}
