// Package discordsim simulates Discord locally: a guild with people, bots, channels and threads behind the real REST API
// (v10) and the real gateway, on one port. It promises to be as strict as Discord (permissions, limits, error codes,
// intents, time-outs), to lose, duplicate, delay and refuse only what it is told to, and to leave nothing behind when it
// stops.
//
// Bots use it with any client library; people use the same API with their own token, through the page, a script, or the methods of Sim.
package discordsim

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"

	"chorus/internal/sim/discordsim/guild"
	"chorus/internal/sim/discordsim/ratelimit"
)

// Sim is a running guild. All methods may be called from several goroutines.
type Sim struct {
	opts  Options
	url   string
	mux   *http.ServeMux
	quit  chan struct{} // closed when the guild ends; all waits end then
	done  chan struct{} // closed when nothing runs any more
	close func()
	tasks sync.WaitGroup // sockets, streams, timers

	mu       sync.Mutex
	stopped  bool
	guild    *guild.Guild
	limits   *ratelimit.Limiter
	sessions []*session
	streams  map[*stream]struct{}
	faults   []*Fault
	changed  chan struct{} // closed and replaced on every event
	log      []Happening
	timers   map[*func() bool]struct{}
	script   scriptState
	calls    []Call // the newest requests of bots
	called   int    // how many there were
}

// Happening is an event of the guild, for waiters.
type Happening struct {
	Name string
	Data []byte // as JSON
}

// New creates a guild that is not listening yet; url is its future address.
func New(o Options, url string) (*Sim, error) {
	o, err := o.filled()
	if err != nil {
		return nil, err
	}
	s := &Sim{
		opts: o, url: url, quit: make(chan struct{}), done: make(chan struct{}), changed: make(chan struct{}),
		streams: map[*stream]struct{}{}, timers: map[*func() bool]struct{}{},
	}
	s.guild, err = guild.New(guild.Settings{
		Name: o.Guild, System: o.System, Bots: o.Bots, People: o.People, Roles: o.Roles, Channels: o.Channels,
		URL: url, TimeScale: o.TimeScale, Now: o.Clock.Now, Emit: s.spread, After: s.afterLocked,
	})
	if err != nil {
		return nil, err
	}
	s.limits = ratelimit.New(s.guild.Now, s.guild.Scale)
	s.mux = http.NewServeMux()
	s.routes()
	if err := s.checkScript(o.Script); err != nil {
		return nil, err
	}
	return s, nil
}

// Start runs a guild until ctx ends or Stop is called.
func Start(ctx context.Context, o Options) (*Sim, error) {
	if o.Addr == "" {
		o.Addr = "127.0.0.1:0"
	}
	l, err := net.Listen("tcp", o.Addr)
	if err != nil {
		return nil, fmt.Errorf("start the Discord simulator: %w", err)
	}
	s, err := New(o, "http://"+l.Addr().String())
	if err != nil {
		_ = l.Close() // nothing was served on it
		return nil, err
	}
	ctx, s.close = context.WithCancel(ctx)
	go func() {
		defer close(s.done)
		_ = s.serve(ctx, l) // it ends with the context; nobody needs its error
	}()
	s.play()
	return s, nil
}

// TB is the part of testing.TB that StartT needs.
type TB interface {
	Helper()
	Cleanup(func())
	Fatalf(format string, args ...any)
}

// StartT runs a guild for one test.
func StartT(t TB, o Options) *Sim {
	t.Helper()
	s, err := Start(context.Background(), o)
	if err != nil {
		t.Fatalf("%v", err)
	}
	t.Cleanup(s.Stop)
	return s
}

// Stop ends the guild and waits until nothing of it runs. It may be called twice.
func (s *Sim) Stop() {
	s.close()
	<-s.done
}

// Done is closed when the guild has ended.
func (s *Sim) Done() <-chan struct{} { return s.done }

func (s *Sim) serve(ctx context.Context, l net.Listener) error {
	srv := &http.Server{Handler: http.HandlerFunc(s.front), ReadHeaderTimeout: 30 * time.Second}
	ended := make(chan struct{})
	context.AfterFunc(ctx, func() {
		defer close(ended)
		s.end()
		_ = srv.Close() // its error is that of the listener, which is closing anyway
	})
	err := srv.Serve(l)
	s.close()
	<-ended
	s.tasks.Wait()
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}

// front counts the handlers, so that Stop can wait for them.
func (s *Sim) front(w http.ResponseWriter, r *http.Request) {
	if !s.begin() {
		return
	}
	defer s.tasks.Done()
	s.mux.ServeHTTP(w, r)
}

// begin registers a task that Stop waits for; false: the guild has ended.
func (s *Sim) begin() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped {
		return false
	}
	s.tasks.Add(1)
	return true
}

func (s *Sim) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stopped = true
	close(s.quit)
	for stop := range s.timers {
		if (*stop)() {
			s.tasks.Done()
		}
	}
}

// afterLocked calls f with the lock held after d. The caller holds the lock.
func (s *Sim) afterLocked(d time.Duration, f func()) {
	if s.stopped {
		return
	}
	s.tasks.Add(1)
	var stop func() bool
	key := &stop
	stop = s.opts.Clock.AfterFunc(d, func() {
		defer s.tasks.Done()
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.timers, key)
		if !s.stopped {
			f()
		}
	})
	s.timers[key] = struct{}{}
}

// spread sends an event to everybody who may see it. The caller holds the lock.
func (s *Sim) spread(e guild.Event) {
	raw := s.guild.Render(e, nil, true)
	s.log = append(s.log, Happening{Name: e.Name, Data: raw})
	if len(s.log) > 2*s.opts.Replay {
		s.log = append([]Happening(nil), s.log[s.opts.Replay:]...)
	}
	for _, session := range s.sessions {
		if session.wants(s.guild, e) {
			s.deliver(session, e)
		}
	}
	for stream := range s.streams {
		if s.guild.Reaches(e, stream.who) {
			stream.push(e.Name, s.guild.Render(e, stream.who, true))
		}
	}
	close(s.changed)
	s.changed = make(chan struct{})
}

// URL is the simulator's address.
func (s *Sim) URL() string { return s.url }

// API is the base URL of REST.
func (s *Sim) API() string { return s.url + "/api/v10" }

// Gateway is the URL of the gateway.
func (s *Sim) Gateway() string { return "ws" + s.url[len("http"):] + "/gateway" }

// Guild returns the guild's id.
func (s *Sim) Guild() guild.ID { return s.guild.ID }

// Token returns the token of a person or a bot; "" if there is nobody of that name.
func (s *Sim) Token(name string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if a := s.guild.AccountNamed(name); a != nil {
		return a.Token
	}
	return ""
}

// User returns the id of a person or a bot; 0 if there is nobody of that name.
func (s *Sim) User(name string) guild.ID {
	s.mu.Lock()
	defer s.mu.Unlock()
	if a := s.guild.AccountNamed(name); a != nil {
		return a.ID
	}
	return 0
}

// Channel returns the id of the first channel or thread of that name; 0 if there is none.
func (s *Sim) Channel(name string) guild.ID {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := s.guild.ChannelNamed(name); c != nil {
		return c.ID
	}
	return 0
}

// Role returns the id of a role; 0 if there is none of that name.
func (s *Sim) Role(name string) guild.ID {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r := s.guild.RoleNamed(name); r != nil {
		return r.ID
	}
	return 0
}
