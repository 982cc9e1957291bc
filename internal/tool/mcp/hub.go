// Package mcp makes the tools of MCP servers into tools of ours. It promises that
// the program never waits for a server to begin, that every wait on one has an end,
// that a server which dies is started again and one which does not come is named
// with its reason, that no process and no goroutine outlives Close, and that
// nothing a server says of itself is believed: its tools declare no access, so they
// are judged by their names and arguments, and its process sees no secret that its
// own configuration does not name.
package mcp

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"chorus/internal/sandbox"
	"chorus/internal/tool"
	"chorus/internal/tool/mcp/serverconfig"
)

// Server is how one MCP server is reached.
type Server = serverconfig.Server

// State is how a server is.
type State string

// The states.
const (
	Off        State = "off"        // not started yet, disabled, or shut down
	Starting   State = "starting"   // its first answer is waited for
	Ready      State = "ready"      // its tools can be called
	Restarting State = "restarting" // it failed, and is tried again at Next
	Failed     State = "failed"     // it failed, and is left alone until Restart
)

// Status is how a server is and why, without secrets.
type Status struct {
	Server string
	State  State
	Why    string
	Next   time.Time // when it is tried again
	Tools  int       // how many it had when it was last asked
}

// String is a line for people.
func (s Status) String() string {
	text := s.Server + ": " + string(s.State)
	if s.State == Ready {
		return fmt.Sprintf("%s, %d tools", text, s.Tools)
	}
	if s.State == Restarting {
		text += " in " + s.wait()
	}
	if s.Why != "" {
		text += ": " + s.Why
	}
	return text
}

func (s Status) wait() string {
	return max(time.Second, time.Until(s.Next).Round(time.Second)).String()
}

// absent is what a model is told of a server that is not there.
func (s Status) absent() string {
	switch s.State {
	case Starting:
		return "The MCP server " + s.Server + " is still starting. Try again later."
	case Restarting:
		return fmt.Sprintf("The MCP server %s is not running: %s. It is started again in %s; try again then, or do without.", s.Server, s.Why, s.wait())
	case Failed:
		return fmt.Sprintf("The MCP server %s is not running: %s. Do without it.", s.Server, s.Why)
	default:
		return "The MCP server " + s.Server + " is not running. Do without it."
	}
}

// Options are what a hub must know of the place.
type Options struct {
	Dir     string   // where servers run; "" is the working directory
	Environ []string // what of it may be passed on; nil is the program's own
	Version string   // the program's, for greetings
	Logins  *Logins  // to servers on the network; nil: there are none
	// Prepare is asked before each start of a process: whether it may still be started, and
	// how it is isolated. A nil result starts it as it is. Nil: every one is.
	Prepare func(ctx context.Context, s Server, dir string) (*sandbox.Prepared, error)
	// Confirm is asked once a process has answered: whether what was started is what was
	// meant. An error ends it. Nil: it is.
	Confirm func(s Server) error
	// Observe is told how a server is, whenever one has come or failed; it must not wait long. Nil: nobody is.
	Observe func(s Server, status Status)
	// Tasks remembers which task a call became, so that it is found again by the process that takes the call up after a crash.
	// Nil: a call that was cut off is not taken up.
	Tasks TaskStore
}

// Hub holds the configured servers. Nothing runs before Start or Tools. It is safe
// for concurrent use.
type Hub struct {
	opt     Options
	servers []*server // sorted by name
	ctx     context.Context
	cancel  context.CancelFunc
	work    sync.WaitGroup
	pause   func(failures int) time.Duration

	mu      sync.Mutex
	begun   time.Time
	closed  bool
	host    Host
	changed chan struct{} // closed at the next change
}

// New makes a hub of the servers that are not disabled. Of two with one name the
// first counts.
func New(servers []Server, opt Options) *Hub {
	h := &Hub{opt: opt, pause: pause, changed: make(chan struct{})}
	h.ctx, h.cancel = context.WithCancel(context.Background())
	var names []string
	var kept []Server
	for _, s := range servers {
		if !s.Disabled && !slices.Contains(names, s.Name) {
			names, kept = append(names, s.Name), append(kept, s)
		}
	}
	keys := serverKeys(names)
	for _, s := range kept {
		h.servers = append(h.servers, newServer(h, s, keys[s.Name]))
	}
	slices.SortFunc(h.servers, func(a, b *server) int { return strings.Compare(a.Name, b.Name) })
	return h
}

// pause doubles from a second to a minute.
func pause(failures int) time.Duration {
	return min(firstPause<<min(failures-1, 10), longPause)
}

// Start begins to start all servers, and returns at once.
func (h *Hub) Start() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed || !h.begun.IsZero() {
		return
	}
	h.begun = time.Now()
	for _, s := range h.servers {
		s.mu.Lock()
		s.state = Starting
		s.mu.Unlock()
		h.work.Go(func() { s.supervise(h.ctx) })
	}
}

// server finds one by its name or its part of the tools' names.
func (h *Hub) server(name string) *server {
	for _, s := range h.servers {
		if s.Name == name || s.key == name {
			return s
		}
	}
	return nil
}

// Listing is what there is at a moment.
type Listing struct {
	Tools        []tool.Tool
	Missing      []Status      // the servers whose tools are not among them, and why
	Instructions []Instruction // what servers say about their use
	Off          []string      // sentences for the model about tools that the caller took out of the list
}

// Instruction is what a server says about its use, in its own words.
type Instruction struct{ Server, Text string }

// Notice is what a model should know of the servers that are missing; "" when none is.
func (l Listing) Notice() string {
	var lines []string
	for _, s := range l.Missing {
		lines = append(lines, s.absent())
	}
	lines = append(lines, l.Off...)
	return strings.Join(lines, "\n")
}

// Tools starts the servers if need be, waits until each has come or failed once, at
// most its start deadline and at most as long as ctx, and lists the tools. keep
// (may be nil) stores what is too long to show. A server that died and is started
// again keeps its tools; their calls say so.
func (h *Hub) Tools(ctx context.Context, keep tool.Keep) Listing {
	h.Start()
	h.settle(ctx)
	var out Listing
	resources := false
	for _, s := range h.servers {
		tools, has, ok := s.offer(keep)
		if !ok {
			out.Missing = append(out.Missing, s.status())
			continue
		}
		out.Tools = append(out.Tools, tools...)
		resources = resources || has
		if text := s.instructions(); text != "" {
			out.Instructions = append(out.Instructions, Instruction{s.Name, text})
		}
	}
	if resources {
		out.Tools = append(out.Tools, h.resourceTools(keep)...)
	}
	slices.SortFunc(out.Tools, func(a, b tool.Tool) int { return cmp.Compare(a.Spec().Name, b.Spec().Name) })
	return out
}

// settle waits for the first start of every server to come to an end.
func (h *Hub) settle(ctx context.Context) {
	h.mu.Lock()
	begun := h.begun
	h.mu.Unlock()
	for _, s := range h.servers {
		late := time.NewTimer(time.Until(begun.Add(s.StartTimeout)))
		select {
		case <-s.tried:
		case <-late.C:
		case <-ctx.Done():
		case <-h.ctx.Done():
		}
		late.Stop()
	}
}

// Status says how every server is, sorted by name.
func (h *Hub) Status() []Status {
	out := make([]Status, len(h.servers))
	for i, s := range h.servers {
		out[i] = s.status()
	}
	return out
}

// Changed is closed when a server next comes, goes or changes its tools. Take it
// before looking, so that nothing is missed.
func (h *Hub) Changed() <-chan struct{} {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.changed
}

func (h *Hub) notify() {
	h.mu.Lock()
	defer h.mu.Unlock()
	close(h.changed)
	h.changed = make(chan struct{})
}

// Close ends all servers and returns when they are gone: at most a few seconds. It
// may be called twice; calls that are under way fail.
func (h *Hub) Close() {
	h.mu.Lock()
	h.closed = true
	h.mu.Unlock()
	h.cancel()
	h.work.Wait()
}
