package discordsim

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"time"

	"chorus/internal/sim/discordsim/guild"
	"chorus/internal/sim/discordsim/ratelimit"
)

// The kinds of faults. Those of the first line happen once, immediately; the others stay until they are used up or cleared.
const (
	FaultDrop, FaultReconnect, FaultInvalidate = "drop", "reconnect", "invalidate"
	// FaultLose, FaultDuplicate and FaultDelay are about events.
	FaultLose, FaultDuplicate, FaultDelay = "lose", "duplicate", "delay"
	// FaultDeaf is a connected gateway that sends nothing, not even acks; FaultMute acks, but loses every event.
	FaultDeaf, FaultMute = "deaf", "mute"
	// FaultAway makes the guild unavailable: clients learn of it on connecting, but get nothing from it.
	FaultAway = "away"
	// FaultError, FaultLimit, FaultSlow and FaultHangup are about REST.
	FaultError, FaultLimit, FaultSlow, FaultHangup = "error", "limit", "slow", "hangup"
)

// Fault is a deliberate failure.
type Fault struct {
	ID   int    `json:"id"`
	Kind string `json:"kind" yaml:"kind"`
	// Bot is the affected bot; empty: everybody.
	Bot string `json:"bot,omitempty" yaml:"bot"`
	// Event is the affected event, such as MESSAGE_CREATE; empty: all.
	Event string `json:"event,omitempty" yaml:"event"`
	// Route limits requests: a part of "POST /channels/{channel}/messages"; empty: all.
	Route string `json:"route,omitempty" yaml:"route"`
	// Body limits requests to bodies with this text; empty: all.
	Body string `json:"body,omitempty" yaml:"body"`
	// Count is how often it happens; 0: until it is cleared.
	Count int `json:"count,omitempty" yaml:"count"`
	// Rate is the share of cases it affects, between 0 and 1; 0: all. Seed makes it repeatable.
	Rate float64 `json:"rate,omitempty" yaml:"rate"`
	Seed uint64  `json:"seed,omitempty" yaml:"seed"`
	// Millis is how late or slow something is, or how long a client should wait, by the machine's clock.
	Millis int `json:"millis,omitempty" yaml:"millis"`
	// Status is the HTTP status of an error; 0: 500. Code is the close code of a drop; 0: none.
	Status int `json:"status,omitempty" yaml:"status"`
	Code   int `json:"code,omitempty" yaml:"code"`
	// After lets a request do its work first: only the answer fails.
	After bool `json:"after,omitempty" yaml:"after"`
	// Global makes a rate limit the global one.
	Global bool `json:"global,omitempty" yaml:"global"`
	// Resumable says whether an invalidated session may be resumed.
	Resumable bool `json:"resumable,omitempty" yaml:"resumable"`

	dice *rand.Rand
}

// Inject adds a fault and returns its number, for Clear.
func (s *Sim) Inject(f Fault) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if f.Bot != "" && s.guild.AccountNamed(f.Bot) == nil {
		return 0, fmt.Errorf("there is no bot %q", f.Bot)
	}
	switch f.Kind {
	case FaultDrop, FaultReconnect, FaultInvalidate:
		s.strike(f)
		s.connectionsChanged()
		return 0, nil
	case FaultLose, FaultDuplicate, FaultDelay, FaultDeaf, FaultMute, FaultAway, FaultError, FaultLimit, FaultSlow, FaultHangup:
	default:
		return 0, fmt.Errorf("there is no fault %q; there are drop, reconnect, invalidate, lose, duplicate, delay, deaf, mute, away, error, limit, slow and hangup", f.Kind)
	}
	f.dice = rand.New(rand.NewPCG(f.Seed, 1))
	f.ID = int(s.guild.NewID() & 0x7fffffff)
	s.faults = append(s.faults, &f)
	return f.ID, nil
}

// Clear ends a fault; 0: all of them. Events held back by a deaf gateway are sent then.
func (s *Sim) Clear(id int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	kept := s.faults[:0:0]
	for _, f := range s.faults {
		if id != 0 && f.ID != id {
			kept = append(kept, f)
		}
	}
	s.faults = kept
	for _, n := range s.sessions {
		if n.socket != nil {
			n.socket.wakeWriter()
		}
	}
}

// strike applies an immediate fault to the sockets of a bot.
func (s *Sim) strike(f Fault) {
	for _, n := range append([]*session(nil), s.sessions...) {
		if f.Bot != "" && n.who.Username != f.Bot {
			continue
		}
		k := n.socket
		switch f.Kind {
		case FaultInvalidate:
			if !f.Resumable {
				s.forget(n)
			}
			if k != nil {
				k.send(opInvalidSession, f.Resumable)
			}
		case FaultReconnect:
			if k != nil {
				k.send(opReconnect, nil)
			}
		case FaultDrop:
			if k == nil {
				continue
			}
			n.socket = nil
			if f.Code != 0 {
				k.shut(f.Code, "closed on demand")
			} else {
				k.cancel()
			}
		}
	}
}

// pick returns the first fault of a kind that applies now, before or after the work, and counts it. The caller holds the lock.
func (s *Sim) pick(kind, bot, name string, after bool) *Fault {
	return s.pickAbout(kind, bot, name, "", after)
}

// pickAbout is pick for a request with a body.
func (s *Sim) pickAbout(kind, bot, name, body string, after bool) *Fault {
	for i, f := range s.faults {
		about := f.Event
		if f.Event == "" {
			about = f.Route
		}
		if f.Kind != kind || f.After != after || f.Bot != "" && f.Bot != bot || !strings.Contains(name, about) || !strings.Contains(body, f.Body) {
			continue
		}
		if f.Rate > 0 && f.dice.Float64() >= f.Rate {
			continue
		}
		if f.Count > 0 {
			if f.Count--; f.Count == 0 {
				s.faults = append(s.faults[:i:i], s.faults[i+1:]...)
			}
		}
		return f
	}
	return nil
}

// deaf reports whether a bot's gateway is deaf now. The caller holds the lock.
func (s *Sim) deaf(who *guild.Account) bool {
	for _, f := range s.faults {
		if f.Kind == FaultDeaf && (f.Bot == "" || f.Bot == who.Username) {
			return true
		}
	}
	return false
}

// deliver sends an event to a session, subject to faults. The caller holds the lock.
func (s *Sim) deliver(n *session, e guild.Event) {
	bot := n.who.Username
	if !n.who.Bot {
		n.push(e.Name, s.guild.Render(e, n.who, n.intents&guild.IntentContent != 0))
		return
	}
	if s.pick(FaultMute, bot, e.Name, false) != nil || s.pick(FaultLose, bot, e.Name, false) != nil {
		return
	}
	raw := s.guild.Render(e, n.who, n.intents&guild.IntentContent != 0)
	send := func() { n.push(e.Name, raw) }
	if s.pick(FaultDuplicate, bot, e.Name, false) != nil {
		once := send
		send = func() { once(); once() }
	}
	if f := s.pick(FaultDelay, bot, e.Name, false); f != nil {
		s.afterLocked(time.Duration(f.Millis)*time.Millisecond, send)
		return
	}
	send()
}

// faulty answers a request with a fault, if one applies; true: it has answered. People are not affected.
func (s *Sim) faulty(w http.ResponseWriter, r *http.Request, pattern, body string, who *guild.Account) bool {
	if who != nil && !who.Bot {
		return false
	}
	bot := nameOf(who)
	s.mu.Lock()
	slow := s.pickAbout(FaultSlow, bot, pattern, body, false)
	f := s.pickAnswer(bot, pattern, body, false)
	s.mu.Unlock()
	if slow != nil && !waitOr(s.quit, r.Context().Done(), time.Duration(slow.Millis)*time.Millisecond) {
		return true
	}
	if f == nil {
		return false
	}
	s.goWrong(w, f)
	return true
}

// peek reads a request's body for a fault, and restores it.
func (s *Sim) peek(r *http.Request, pattern string) string {
	s.mu.Lock()
	curious := ratelimit.ReadsBody(pattern) || slices.ContainsFunc(s.faults, func(f *Fault) bool { return f.Body != "" })
	s.mu.Unlock()
	if !curious || r.Body == nil {
		return ""
	}
	data, _ := io.ReadAll(io.LimitReader(r.Body, bodyLimit)) // the next reader gets the error
	r.Body = struct {
		io.Reader
		io.Closer
	}{io.MultiReader(bytes.NewReader(data), r.Body), r.Body}
	return string(data)
}

// pickAnswer returns the fault for a request, before or after its work. The caller holds the lock.
func (s *Sim) pickAnswer(bot, pattern, body string, after bool) *Fault {
	for _, kind := range []string{FaultLimit, FaultError, FaultHangup} {
		if f := s.pickAbout(kind, bot, pattern, body, after); f != nil {
			return f
		}
	}
	return nil
}

// goWrong answers with a fault.
func (s *Sim) goWrong(w http.ResponseWriter, f *Fault) {
	switch f.Kind {
	case FaultHangup:
		panic(http.ErrAbortHandler) // closes the connection without an answer, as intended
	case FaultLimit:
		wait := time.Duration(f.Millis) * time.Millisecond
		v := ratelimit.Refused(wait, s.opts.Clock.Now().Add(wait), f.Global)
		v.Headers(w.Header())
		show(w, http.StatusTooManyRequests, v.Body())
	default:
		status := f.Status
		if status == 0 {
			status = http.StatusInternalServerError
		}
		show(w, status, object{"message": fmt.Sprintf("%d: %s", status, http.StatusText(status)), "code": 0})
	}
}
