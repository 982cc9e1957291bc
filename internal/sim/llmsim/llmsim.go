// Package llmsim is a small real HTTP server that speaks the providers' wire formats (Anthropic, OpenAI, Google, Ollama
// and similar), so that everything above a provider can be tested over a real connection without a model. It promises to
// be as strict as the real servers (a request they would refuse is refused here, with their messages), to answer exactly
// as scripted, including faults, and to leave nothing behind: every handler ends when its client goes away or the server
// stops.
//
// A request is answered by, in this order: a rule whose condition matches, the next pushed turn, Options.Respond, the default turn, an echo.
package llmsim

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"
)

// Options configure how strict the server is and how it answers by default.
type Options struct {
	// Keys are the accepted keys; none: any key that is not empty.
	Keys []string
	// NoKey accepts requests without a key, as many OpenAI-compatible servers do.
	NoKey bool
	// Models are listed by /v1/models, and other names are answered with 404. Empty: the catalog is listed, and every name is accepted.
	Models []string
	// Window is the maximum number of tokens (bytes/4) of a request; 0: any number.
	Window int
	// Respond answers requests that no rule or pushed turn answers.
	Respond func(Request) Turn
	// Bench answers every request with tool turns and a final text, without validation, reading as little of the body as possible.
	Bench *Bench
	// Lenient skips validation and stores no bodies.
	Lenient bool
	// Seen is called for each request before it is answered; it may be nil.
	Seen func(Request)
}

// Server is the simulator. It is safe for concurrent use.
type Server struct {
	opts  Options
	mux   *http.ServeMux
	cache cache

	benchMade sync.Map // benchKey → []byte

	quit     chan struct{} // closed by Stop: stalled handlers end
	quitOnce sync.Once

	mu       sync.Mutex
	queue    []Turn
	rules    []Rule
	fallback *Turn
	requests []Request
	changed  chan struct{} // closed and replaced whenever requests change
}

// New creates a server that is not listening yet.
func New(opts Options) *Server {
	s := &Server{
		opts: opts, mux: http.NewServeMux(), quit: make(chan struct{}), changed: make(chan struct{}),
	}
	s.mux.HandleFunc("POST /v1/messages", s.measurable(Anthropic, s.speak(Anthropic, s.anthropicRequest, anthropicWhole, anthropicFrames)))
	s.mux.HandleFunc("POST /v1/messages/count_tokens", s.anthropicCount)
	s.mux.HandleFunc("POST /v1/chat/completions", s.measurable(OpenAI, s.speak(OpenAI, s.openaiRequest, openaiWhole, openaiFrames)))
	s.mux.HandleFunc("GET /v1/models", s.models)
	s.openaiRoutes()
	s.googleRoutes()
	s.ollamaRoutes()
	s.bedrockRoutes()
	s.mux.HandleFunc("GET /sim/requests", s.simRequests)
	s.mux.HandleFunc("POST /sim/script", s.simScript)
	return s
}

// Handler is the server without a listener.
func (s *Server) Handler() http.Handler { return s.mux }

// Start listens on a free port of this machine. stop closes every connection and
// waits for the handlers; it may be called twice.
func (s *Server) Start() (url string, stop func(), err error) {
	return s.StartAt("127.0.0.1:0")
}

// StartAt is Start at a given address.
func (s *Server) StartAt(addr string) (url string, stop func(), err error) {
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return "", nil, fmt.Errorf("start the model simulator: %w", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = s.Serve(ctx, l) // ends with the context; nobody needs its error
	}()
	return "http://" + l.Addr().String(), func() { cancel(); <-done }, nil
}

// Serve answers on l until ctx ends, then ends every handler and closes l.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	var gate sync.RWMutex // held for reading by each handler, for writing by the end
	srv := &http.Server{
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if !gate.TryRLock() {
				return
			}
			defer gate.RUnlock()
			s.mux.ServeHTTP(w, r)
		}),
		ReadHeaderTimeout: 30 * time.Second,
	}
	stopped := make(chan struct{})
	release := context.AfterFunc(ctx, func() {
		defer close(stopped)
		s.Stop()
		_ = srv.Close() // its error is that of the listener, which is closing anyway
	})
	err := srv.Serve(l)
	if release() {
		return fmt.Errorf("serve the model simulator: %w", err)
	}
	<-stopped
	gate.Lock() // and never unlocked: later clients are rejected
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}

// Stop ends every stalled or slow answer. The server cannot be used afterwards.
func (s *Server) Stop() { s.quitOnce.Do(func() { close(s.quit) }) }

// Push adds turns to the queue; each answers one request.
func (s *Server) Push(turns ...Turn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.queue = append(s.queue, turns...)
}

// Load adds a script's turns and rules, and replaces the default turn if it has one.
func (s *Server) Load(script Script) { s.load(script, false) }

// load loads a script, in addition to or instead of the current one. Unused pushed answers are dropped too: a test that
// posts a script starts over.
func (s *Server) load(script Script, instead bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if instead {
		s.queue, s.rules, s.fallback = nil, nil, nil
	}
	s.queue = append(s.queue, script.Turns...)
	s.rules = append(s.rules, script.Rules...)
	if script.Default != nil {
		s.fallback = script.Default
	}
	if script.Bench != nil {
		s.opts.Bench = script.Bench
		s.benchMade.Clear()
	}
}

// Waiting is the number of unused pushed turns.
func (s *Server) Waiting() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.queue)
}

// Requests returns all requests so far in order, including refused ones.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.requests)
}

// Wait returns when ok is true for the requests; it checks whenever one arrives or ends.
func (s *Server) Wait(ctx context.Context, ok func([]Request) bool) error {
	for {
		s.mu.Lock()
		requests, changed := slices.Clone(s.requests), s.changed
		s.mu.Unlock()
		if ok(requests) {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return fmt.Errorf("wait for the model simulator: %w", ctx.Err())
		}
	}
}

// keepBodies is how many requests are stored in full; older ones keep only an outline.
const keepBodies = 1000

// record stores a request and numbers it.
func (s *Server) record(r Request) Request {
	s.mu.Lock()
	r.N = len(s.requests) + 1
	r.State = Open
	s.requests = append(s.requests, r)
	if old := r.N - keepBodies - 1; old >= 0 {
		s.requests[old].Body, s.requests[old].Messages, s.requests[old].parts = nil, nil, nil
	}
	s.ring()
	s.mu.Unlock()
	if s.opts.Seen != nil {
		s.opts.Seen(r)
	}
	return r
}

// settle records how a request ended.
func (s *Server) settle(n int, state State) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.requests[n-1].State == Open {
		s.requests[n-1].State = state
	}
	s.ring()
}

// ring wakes all waiters; s.mu is held.
func (s *Server) ring() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// next decides what answers r.
func (s *Server) next(r Request) Turn {
	s.mu.Lock()
	for i := range s.rules {
		rule := &s.rules[i]
		if rule.spent() || !rule.When.fits(r) {
			continue
		}
		turn := rule.take()
		s.mu.Unlock()
		return turn.refer(r)
	}
	if len(s.queue) > 0 {
		turn := s.queue[0]
		s.queue = s.queue[1:]
		s.mu.Unlock()
		return turn.refer(r)
	}
	fallback := s.fallback
	s.mu.Unlock()
	switch {
	case s.opts.Respond != nil:
		return s.opts.Respond(r)
	case fallback != nil:
		return *fallback
	default:
		return Turn{Text: "echo: " + r.lastText()}
	}
}

// TB is what Launch needs of a test.
type TB interface {
	Helper()
	Cleanup(func())
	Fatalf(format string, args ...any)
}

// Launch starts a server for a test and stops it at the test's end.
func Launch(t TB, opts Options) (s *Server, url string) {
	t.Helper()
	s = New(opts)
	url, stop, err := s.Start()
	if err != nil {
		t.Fatalf("llmsim: %v", err)
	}
	t.Cleanup(stop)
	return s, url
}
