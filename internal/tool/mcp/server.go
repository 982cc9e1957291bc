package mcp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"chorus/internal/tool/mcp/serverconfig"
)

const (
	firstPause = time.Second
	longPause  = time.Minute
	// maxAttempts is how often in a row a server may fail before it is given
	// up: about three minutes with the pauses between.
	maxAttempts = 8
	// steady is how long a server must have run for a failure to count as the first.
	steady = time.Minute
	// restartWait is how long a call waits for a server that crashed: enough for the first three
	// pauses and restarts, but less than a person waits without any message.
	restartWait = 15 * time.Second
	// quiet is the minimum time between two readings of a list that keeps changing.
	quiet = time.Second

	mostPages = 100
	mostTools = 1000
)

// server is one configured server and its running connection, if any.
type server struct {
	Server
	hub    *Hub
	key    string // its part of tool names
	redact func(string) string
	tried  chan struct{} // closed when the first start has succeeded or failed

	mu        sync.Mutex
	state     State
	why       string
	next      time.Time
	live      *live
	came      bool // it was ready once
	tools     []listed
	resources bool
	manual    string          // its instructions
	news      chan struct{}   // closed at the next change of state
	watching  map[string]bool // resources that an agent wants to be told about, and whether they have changed since it read them
}

func newServer(h *Hub, s Server, key string) *server {
	if s.StartTimeout <= 0 {
		s.StartTimeout = serverconfig.DefaultStart
	}
	if s.CallTimeout <= 0 {
		s.CallTimeout = serverconfig.DefaultCall
	}
	if s.TaskTimeout <= 0 {
		s.TaskTimeout = serverconfig.DefaultTask
	}
	return &server{Server: s, hub: h, key: key, redact: redactor(s), state: Off,
		tried: make(chan struct{}), news: make(chan struct{}), watching: map[string]bool{}}
}

func (s *server) dir() string {
	if filepath.IsAbs(s.Dir) {
		return s.Dir
	}
	return filepath.Join(s.hub.opt.Dir, s.Dir)
}

// set changes the state under the lock and notifies those who wait for it.
func (s *server) set(change func()) {
	s.mu.Lock()
	change()
	close(s.news)
	s.news = make(chan struct{})
	s.mu.Unlock()
	s.hub.notify()
}

// supervise keeps the server running until ctx is done.
func (s *server) supervise(ctx context.Context) {
	var first sync.Once
	tried := func() { first.Do(func() { close(s.tried) }) }
	defer tried()
	defer s.set(func() { s.state, s.why, s.live = Off, "it was shut down", nil })
	for failures := 0; ; {
		s.set(func() { s.state, s.why, s.next = Starting, "", time.Time{} })
		err := s.life(ctx, tried, &failures)
		if ctx.Err() != nil {
			return
		}
		failures++
		pause := s.hub.pause(failures)
		if _, ok := errors.AsType[*configError](err); ok || failures >= maxAttempts {
			pause = 0
		}
		s.set(func() {
			s.live, s.why = nil, err.Error()
			if s.state, s.next = Failed, (time.Time{}); pause > 0 {
				s.state, s.next = Restarting, time.Now().Add(pause)
			}
		})
		tried()
		s.observe()
		var over <-chan time.Time // never fires for a server that is not tried again
		if pause > 0 {
			over = time.After(pause)
		}
		select {
		case <-over:
		case <-ctx.Done():
			return
		}
	}
}

// life runs one connection from start to end. The error says why it ended.
func (s *server) life(ctx context.Context, tried func(), failures *int) error {
	l, err := s.dial(ctx)
	if err != nil {
		return err
	}
	defer l.close()
	if err := s.list(l); err != nil {
		return l.explain(fmt.Errorf("its tools could not be listed: %w", err))
	}
	greeting := l.session.InitializeResult()
	s.set(func() {
		s.state, s.why, s.live, s.came = Ready, "", l, true
		s.resources = greeting.Capabilities != nil && greeting.Capabilities.Resources != nil
		s.manual = multiline(greeting.Instructions, longInstructions)
	})
	tried()
	s.observe()
	s.hub.work.Go(func() { s.rewatch(l.ctx, l) }) // a server that does not answer must not hold up the rest
	defer s.set(func() {
		s.live, s.state, s.why, s.next = nil, Restarting, "it has just ended", time.Now().Add(s.hub.pause(1))
	})
	began := time.Now()
	defer func() {
		if time.Since(began) > steady {
			*failures = 0
		}
	}()
	s.attend(ctx, l)
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := l.session.Wait(); err != nil {
		return l.explain(err)
	}
	return l.explain(errEnded)
}

// attend returns when the connection is over. Until then it rereads the list
// of tools whenever the server says that it has changed.
func (s *server) attend(ctx context.Context, l *live) {
	changed := l.changed
	rest := time.NewTimer(0)
	defer rest.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-l.gone:
			return
		case <-rest.C:
			changed = l.changed
		case <-changed:
			if err := s.list(l); err == nil {
				s.set(func() {})
			}
			changed = nil
			rest.Reset(quiet)
		}
	}
}

// list reads the server's tools, page by page.
func (s *server) list(l *live) error {
	ctx, cancel := context.WithTimeout(l.ctx, s.StartTimeout)
	defer cancel()
	var tools []*offered
	seen := map[string]bool{}
	cursor := ""
	for range mostPages {
		page, next, err := l.listPage(ctx, cursor)
		if isCode(err, jsonrpc.CodeMethodNotFound) {
			break
		}
		if err != nil {
			return err
		}
		tools = append(tools, page...)
		if next == "" || seen[next] || len(tools) >= mostTools {
			break
		}
		seen[next], cursor = true, next
	}
	usable := s.usable(tools)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tools = usable
	return nil
}

// listPage reads one page of the list of tools. Later versions of the protocol
// handle tasks differently and need the SDK to know the list.
func (l *live) listPage(ctx context.Context, cursor string) (tools []*offered, next string, err error) {
	if l.session.InitializeResult().ProtocolVersion > settled {
		page, err := l.session.ListTools(ctx, &sdk.ListToolsParams{Cursor: cursor})
		if err != nil {
			return nil, "", err
		}
		for _, t := range page.Tools {
			if t != nil {
				tools = append(tools, &offered{Tool: *t})
			}
		}
		return tools, page.NextCursor, nil
	}
	page, err := sdk.CallCustomMethod[*listParams, *listResult](ctx, l.session, ownList, &listParams{Cursor: cursor})
	if err != nil {
		return nil, "", err
	}
	return page.Tools, page.NextCursor, nil
}

// longInstructions limits a server's instructions for use: every request of a thread contains them.
const longInstructions = 4000

// instructions returns the server's instructions for use, or "".
func (s *server) instructions() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.manual
}

// connection returns the connection for a call, or the reason why there is none. It waits for a
// server that is just starting, or that crashed and will start again soon.
func (s *server) connection(ctx context.Context) (*live, string) {
	s.hub.Start()
	ctx, cancel := context.WithTimeout(ctx, max(s.CallTimeout, restartWait))
	defer cancel()
	began := time.Now()
	for {
		s.mu.Lock()
		l, state, next, news := s.live, s.state, s.next, s.news
		s.mu.Unlock()
		if state == Ready && !over(l) {
			return l, ""
		}
		soon := state == Restarting && next.Sub(began) <= restartWait
		if state != Starting && state != Ready && !soon { // ready but closed: its new state will be known in a moment
			return nil, s.status().absent()
		}
		select {
		case <-news:
		case <-ctx.Done():
			return nil, s.status().absent()
		}
	}
}

func (s *server) observe() {
	if observe := s.hub.opt.Observe; observe != nil {
		observe(s.Server, s.status())
	}
}

func (s *server) status() Status {
	s.mu.Lock()
	defer s.mu.Unlock()
	return Status{Server: s.Name, State: s.state, Why: s.why, Next: s.next, Tools: len(s.tools)}
}

func isCode(err error, code int64) bool {
	var e *jsonrpc.Error
	return errors.As(err, &e) && e.Code == code
}

// isClosed reports whether an error means that a connection is over, rather than that a call failed.
func isClosed(err error) bool {
	return errors.Is(err, sdk.ErrConnectionClosed) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrClosedPipe) || errors.Is(err, sdk.ErrSessionMissing)
}
