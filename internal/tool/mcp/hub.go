// Package mcp turns the tools of MCP servers into tools of ours.
//
// It promises that:
//   - the program never waits for a server to start, and every wait on a server has a limit;
//   - a server that dies is started again, and one that does not start is named with the reason;
//   - no process and no goroutine outlives Close;
//   - nothing a server says about itself is trusted: its tools declare no access, so they are judged by their names and arguments;
//   - a server's process sees no secret that its own configuration does not name.
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

// Server says how to reach one MCP server.
type Server = serverconfig.Server

// State is the state of a server.
type State string

// The states.
const (
	Off        State = "off"        // not started yet, disabled, or shut down
	Starting   State = "starting"   // waiting for its first answer
	Ready      State = "ready"      // its tools can be called
	Restarting State = "restarting" // it failed, and is tried again at Next
	Failed     State = "failed"     // it failed, and is not tried again until Restart
)

// Status is the state of a server and the reason, without secrets.
type Status struct {
	Server string
	State  State
	Why    string
	Next   time.Time // when it is tried again
	Tools  int       // number of tools when last listed
}

// String returns a line for people.
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

// absent returns what a model is told about a server that is missing.
func (s Status) absent() string {
	switch s.State {
	case Starting:
		return "The MCP server " + s.Server + " is still starting. Try again later."
	case Restarting:
		return fmt.Sprintf("The MCP server %s is not running: %s. It will be restarted in %s; try again then, or do without.", s.Server, s.Why, s.wait())
	case Failed:
		return fmt.Sprintf("The MCP server %s is not running: %s. Do without it.", s.Server, s.Why)
	default:
		return "The MCP server " + s.Server + " is not running. Do without it."
	}
}

// Options are what a hub must know about its surroundings.
type Options struct {
	Dir     string   // where servers run; "" means the working directory
	Environ []string // what may be passed on of it; nil means the program's own environment
	Version string   // the program's version, for greetings
	Logins  *Logins  // logins to remote servers; nil: none
	// Prepare is called before each start of a process. It decides whether the process may
	// still be started, and how it is isolated. A nil result starts it without isolation.
	// If Prepare is nil, every process is started so.
	Prepare func(ctx context.Context, s Server, dir string) (*sandbox.Prepared, error)
	// Confirm is called once a process has answered, to check that the right thing
	// was started. An error ends the process. nil: no check.
	Confirm func(s Server) error
	// Observe receives a server's status whenever the server has started or
	// failed. It must not block for long. It may be nil.
	Observe func(s Server, status Status)
	// Tasks stores which task a call became, so that the process that resumes the call
	// after a crash finds it. nil: interrupted calls are not resumed.
	Tasks TaskStore
}

// Hub holds the configured servers. Nothing runs before Start or Tools. It is safe for concurrent use.
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

// New returns a hub of the servers that are not disabled. If two have the same name, the first is used.
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

// Start begins to start all servers and returns at once.
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

// server finds a server by its name or by its part of tool names.
func (h *Hub) server(name string) *server {
	for _, s := range h.servers {
		if s.Name == name || s.key == name {
			return s
		}
	}
	return nil
}

// Listing is what servers offer at a given moment.
type Listing struct {
	Tools        []tool.Tool
	Missing      []Status      // the servers whose tools are missing, and why
	Instructions []Instruction // the servers' instructions for use
	Off          []string      // sentences for the model about tools that the caller removed from the list
}

// Instruction is a server's own text about its use.
type Instruction struct{ Server, Text string }

// Notice returns what a model should know about missing servers, or "".
func (l Listing) Notice() string {
	var lines []string
	for _, s := range l.Missing {
		lines = append(lines, s.absent())
	}
	lines = append(lines, l.Off...)
	return strings.Join(lines, "\n")
}

// Tools starts the servers if needed and waits until each has started or failed once, at most until its start
// deadline or the end of ctx. Then it lists the tools. keep (may be nil) stores output that is too long to
// show. A server that died and is being started again keeps its tools; calls of them say so.
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

// settle waits until the first start of every server has succeeded or failed.
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

// Status returns the status of every server, sorted by name.
func (h *Hub) Status() []Status {
	out := make([]Status, len(h.servers))
	for i, s := range h.servers {
		out[i] = s.status()
	}
	return out
}

// Changed returns a channel that is closed when a server next starts, stops or changes
// its tools. Call it before looking, so that no change is missed.
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

// Close ends all servers and returns when they have ended, after a few seconds
// at most. It may be called twice. Calls in progress fail.
func (h *Hub) Close() {
	h.mu.Lock()
	h.closed = true
	h.mu.Unlock()
	h.cancel()
	h.work.Wait()
}
