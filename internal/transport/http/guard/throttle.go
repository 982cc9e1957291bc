package guard

import (
	"net/http"
	"strconv"
	"sync"
	"time"

	"chorus/internal/operation"
)

// Limits for wrong tokens.
const (
	freeFailures = 10              // before a client must wait
	firstWait    = 2 * time.Second // doubled by each further failure
	maxWait      = 15 * time.Minute
	forgetAfter  = 30 * time.Minute // without a failure
	maxClients   = 4096             // remembered at once
)

// throttle makes clients wait that sent wrong tokens. It remembers maxClients addresses; beyond that, all new ones share one entry.
type throttle struct {
	mu      sync.Mutex
	clients map[string]*failures
}

type failures struct {
	count int
	until time.Time
	last  time.Time
}

func newThrottle() *throttle { return &throttle{clients: map[string]*failures{}} }

// failed records a wrong token. A client that must still wait is told how long; what it sends until then does not count.
func (s *throttle) failed(from string, now time.Time) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.clients) >= maxClients {
		for k, f := range s.clients {
			if now.Sub(f.last) > forgetAfter {
				delete(s.clients, k)
			}
		}
	}
	place := s.key(from)
	f := s.clients[place]
	if f == nil || now.Sub(f.last) > forgetAfter {
		f = &failures{}
		s.clients[place] = f
	}
	if wait := f.until.Sub(now); wait > 0 {
		return wait
	}
	f.count, f.last = f.count+1, now
	if over := f.count - freeFailures; over > 0 {
		f.until = now.Add(min(maxWait, firstWait<<min(over-1, 20)))
	}
	return 0
}

// key returns the entry under which an address is counted.
func (s *throttle) key(from string) string {
	if _, ok := s.clients[from]; !ok && len(s.clients) >= maxClients {
		return "everybody else"
	}
	return from
}

// tooManyFailures is the error that says how long to wait.
func tooManyFailures(w http.ResponseWriter, wait time.Duration) error {
	seconds := int(wait/time.Second) + 1
	w.Header().Set("Retry-After", strconv.Itoa(seconds))
	return operation.Errorf(operation.Busy, "too many wrong tokens from your address; try again in %d s", seconds)
}
