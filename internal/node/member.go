// Package node represents this process among the nodes that share a database:
// what it owns there, which conversations and projects it has the files of, and
// what happens to those whose node is gone.
package node

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"chorus/internal/chat"
	"chorus/internal/database"
	"chorus/internal/datadir"
	"chorus/internal/engine"
	"chorus/internal/owner"
	"chorus/internal/schedule"
	"chorus/internal/store"
	"chorus/internal/store/nodes"
	"chorus/internal/work"
)

// Member is this process among the nodes. It joins when it takes its first
// thing, so a command that only reads does not become a node. A nil Member is a
// process that shares its database with no node.
type Member struct {
	Env     func(string) string
	Version string // of this program
	Log     *slog.Logger
	Now     func() time.Time
	DB      *store.DB
	Home    *datadir.Home

	Serving  func() bool           // whether this process runs everybody's threads
	Running  func() *engine.Engine // nil until something must run
	Tasks    Tasks                 // stopped when the node hands over
	ToolTime func() time.Duration  // time for running tools when the node hands over

	MoveLost  bool          // a thread whose node is gone continues elsewhere if its folder was its own
	MoveAfter time.Duration // how long to wait for its node
	// CheckPlace says why the people of a thread may not work in a folder here.
	CheckPlace func(thread chat.ThreadID, dir string) error
	Channels   Channels
	Repos      func(ctx context.Context, project string) ([]work.Repo, error)

	lost    lostLabels
	node    atomic.Pointer[nodes.Node]
	drained atomic.Bool // whether this process has handed over what it had

	mu      sync.Mutex
	kind    string
	name    string
	address string
	stop    func()
	closed  bool
}

// Tasks is this process's work on the task queue.
type Tasks interface {
	Drain()
	Resume()
}

// Channels are the channels of chat platforms on which this process has a bot.
type Channels interface {
	HasBot(platform string) bool
	Announce(ctx context.Context, to schedule.Target, key, text string) error
}

var _ owner.Shared = (*Member)(nil)

// joinTime is how long joining may take.
const joinTime = 10 * time.Second

// joined returns the node, joining first if needed.
func (m *Member) joined() (*nodes.Node, error) {
	if n := m.node.Load(); n != nil {
		return n, nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if n := m.node.Load(); n != nil {
		return n, nil
	}
	if m.closed {
		return nil, errors.New("the node has left")
	}
	ctx, cancel := context.WithTimeout(context.Background(), joinTime)
	defer cancel()
	n, err := nodes.Join(ctx, nodes.Options{DB: m.DB, Name: m.Name(), Kind: cmp.Or(m.kind, "run"), Address: m.address, Version: m.Version, Log: m.Log, Changed: m.changed})
	if err != nil {
		return nil, err
	}
	running, cancel := context.WithCancel(context.Background())
	var work sync.WaitGroup
	work.Go(func() { n.Run(running) })
	m.stop = func() { cancel(); work.Wait() }
	m.node.Store(n)
	return n, nil
}

// Name returns the name by which people know this node.
func (m *Member) Name() string { return cmp.Or(m.name, NameOf(m.Env)) }

// NameOf returns the default name of a process among nodes.
func NameOf(env func(string) string) string {
	return cmp.Or(env("CHORUS_NODE"), HostName(), "node")
}

// HostName returns this machine's name, or "" if it is not known.
func HostName() string {
	name, _ := os.Hostname() // for people only
	return name
}

// ID returns this process's current id among the nodes, or "" if it is not a node.
func (m *Member) ID() string {
	if n := m.node.Load(); n != nil {
		return n.ID()
	}
	return ""
}

// Join makes this process a node of the given kind. It does nothing if no database is shared.
func (m *Member) Join(kind, name, address string) error {
	if m == nil {
		return nil
	}
	m.mu.Lock()
	m.kind, m.name, m.address = kind, name, address
	m.mu.Unlock()
	_, err := m.joined()
	return err
}

// changed looks for what has become free, and hands over what this process has when its node is being drained.
func (m *Member) changed() {
	n, e := m.node.Load(), m.Running()
	if n == nil || e == nil {
		return
	}
	drain := n.Draining()
	switch was := m.drained.Swap(drain); {
	case drain && !was:
		m.Log.Info("this node hands over what it has", "component", "nodes", "event", "node_drains", "node", n.Name())
		m.Tasks.Drain()
		e.Drain(m.ToolTime())
	case was && !drain:
		m.Tasks.Resume()
		e.Resume()
	case !drain:
		e.LookAgain()
	}
}

// HandOver drains the node of a process that is about to stop, so that others need not
// wait for its end. It does nothing if no database is shared.
func (m *Member) HandOver() {
	if m == nil {
		return
	}
	n := m.node.Load()
	if n == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), joinTime)
	defer cancel()
	if err := n.Drain(ctx); err != nil {
		m.Log.Warn("other nodes are not told that this one stops: "+err.Error(), "component", "nodes", "event", "drain_not_told")
	}
}

// Take implements owner.Owner.
func (m *Member) Take(ctx context.Context, name owner.Name) (owner.Held, error) {
	n, err := m.joined()
	if err != nil {
		return nil, fmt.Errorf("take %s: %w", name, err)
	}
	return n.Take(ctx, name)
}

// Sweep implements owner.Shared.
func (m *Member) Sweep(ctx context.Context) (func(owner.Name) bool, error) {
	n, err := m.joined()
	if err != nil {
		return nil, err
	}
	return n.Sweep(ctx)
}

// Changed implements owner.Shared.
func (m *Member) Changed() <-chan struct{} {
	if n := m.node.Load(); n != nil {
		return n.Changed()
	}
	return nil
}

// Owns is called by the store inside transactions that only an owner may make.
func (m *Member) Owns(tx database.Tx, name owner.Name) error {
	n := m.node.Load()
	if n == nil {
		return fmt.Errorf("%s: %w", name, owner.ErrLost)
	}
	return n.Owns(tx, name)
}

// Leave gives everything back and removes the node.
func (m *Member) Leave() error {
	if m == nil {
		return nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.closed = true
	n := m.node.Load()
	if n == nil {
		return nil
	}
	m.stop()
	ctx, cancel := context.WithTimeout(context.Background(), joinTime)
	defer cancel()
	return n.Leave(ctx)
}
