package modelrouter

import (
	"strings"
	"time"

	"chorus/internal/model"
)

// pick is the first key that is well and was not tried; nil when there is none.
func (p *Pool) pick(tried map[*keyState]bool) *keyState {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	for _, s := range p.keys {
		if !tried[s] && !now.Before(s.until) {
			return s
		}
	}
	return nil
}

// doubtful is a key that rests only because it was not accepted, the one that failed
// longest ago: somebody may have paid by now. Better to ask than to refuse unasked.
func (p *Pool) doubtful() *keyState {
	p.mu.Lock()
	defer p.mu.Unlock()
	var first *keyState
	for _, s := range p.keys {
		if s.auth && (first == nil || s.until.Before(first.until)) {
			first = s
		}
	}
	return first
}

// soonest is as good as at once; no time at all would mean that nobody said how long.
const soonest = time.Millisecond

// wait is how long it takes until the first key that was too fast may be asked again. One
// whose rest ended while the others were asked is free already.
func (p *Pool) wait() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	now, least := time.Now(), time.Duration(0)
	for _, s := range p.keys {
		if d := max(s.until.Sub(now), soonest); !s.auth && !s.until.IsZero() && (least == 0 || d < least) {
			least = d
		}
	}
	return least
}

// well notes that a key works. One that rests because another call was refused
// meanwhile goes on resting.
func (p *Pool) well(s *keyState) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !time.Now().Before(s.until) || s.auth {
		s.strikes, s.auth, s.until = 0, false, time.Time{}
	}
}

// rest lets a key rest after a failure that is the key's. A key that is alone never
// rests: nobody could take its place, and the caller knows how to wait.
func (p *Pool) rest(s *keyState, e *model.Error) {
	if e.Kind != model.RateLimited && e.Kind != model.Auth {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.keys) < 2 {
		return
	}
	now := time.Now()
	if now.Before(s.until) && s.auth == (e.Kind == model.Auth) {
		// Calls that ran side by side fail side by side; that is one strike.
		s.until = later(s.until, now.Add(e.RetryAfter))
		return
	}
	s.strikes++
	d := e.RetryAfter
	if d <= 0 {
		d = min(shortRest<<min(s.strikes-1, 8), longRest)
	}
	s.auth, s.until = e.Kind == model.Auth, later(s.until, now.Add(d))
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// leastSecret is how long a word must be to be taken out of a text: a shorter one is
// no key, and taking it out would only garble what is said.
const leastSecret = 6

// clean is a failure that may be shown: no key of the vendor's in it, and the place
// where the key is set.
func (p *Pool) clean(e *model.Error) *model.Error {
	out := *e
	out.Setting = p.vendor.KeySetting()
	for _, s := range p.all() {
		for _, secret := range s.account.secrets() {
			if len(secret) < leastSecret {
				continue
			}
			out.Message = strings.ReplaceAll(out.Message, secret, "***")
			if out.Err != nil && strings.Contains(out.Err.Error(), secret) {
				out.Err = nil
			}
		}
	}
	return &out
}
