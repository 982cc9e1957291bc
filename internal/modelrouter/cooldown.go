package modelrouter

import (
	"strings"
	"time"

	"chorus/internal/model"
)

// pick returns the first healthy key that was not tried, or nil.
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

// doubtful returns the key that rests only because it was not accepted and failed longest ago:
// somebody may have paid by now, and asking is better than refusing unasked.
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

// soonest is practically at once. Zero would mean that nobody said how long to wait.
const soonest = time.Millisecond

// wait returns how long it takes until the first rate-limited key may be asked again. A
// key whose rest ended while the others were asked is already free.
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

// well records that a key works. If it rests because another call
// was refused meanwhile, it continues to rest.
func (p *Pool) well(s *keyState) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !time.Now().Before(s.until) || s.auth {
		s.strikes, s.auth, s.until = 0, false, time.Time{}
	}
}

// rest lets a key rest after a failure that is due to the key. An only key never
// rests: nothing could replace it, and the caller knows how to wait.
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
		// Calls that ran in parallel fail in parallel; that counts as one strike.
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

// leastSecret is how long a word must be to be redacted: a shorter one is no
// key, and redacting it would only garble the text.
const leastSecret = 6

// clean makes a failure fit to show: it removes the vendor's keys and adds where the key is set.
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
