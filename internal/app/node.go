package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"chorus/internal/owner"
	"chorus/internal/store"
	"chorus/internal/store/nodes"
)

// membership is this process among the nodes that share a database. It joins when it takes its first thing, so that a command that
// only reads is no node.
type membership struct {
	app     *App
	node    atomic.Pointer[nodes.Node]
	drained atomic.Bool // what this process has was handed over

	mu      sync.Mutex
	kind    string
	name    string
	address string
	stop    func()
	closed  bool
}

var _ owner.Shared = (*membership)(nil)

// joinTime is how long joining may take.
const joinTime = 10 * time.Second

// joined is the node, which is made if there is none yet.
func (m *membership) joined() (*nodes.Node, error) {
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
	n, err := nodes.Join(ctx, nodes.Options{DB: m.app.DB, Name: m.nameOf(), Kind: cmp.Or(m.kind, "run"), Address: m.address, Version: m.app.Version, Log: m.app.Log, Changed: m.changed})
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

// nameOf is what people call this node.
func (m *membership) nameOf() string {
	return cmp.Or(m.name, m.app.Env("CHORUS_NODE"), hostName(), "node")
}

// join makes this process a node as what it was started for. Nothing happens where nothing is shared.
func (m *membership) join(kind, name, address string) error {
	if m == nil {
		return nil
	}
	m.mu.Lock()
	m.kind, m.name, m.address = kind, name, address
	m.mu.Unlock()
	_, err := m.joined()
	return err
}

// changed looks for what has become free, and hands over what this process has when its node is drained.
func (m *membership) changed() {
	n, e := m.node.Load(), m.app.Running()
	if n == nil || e == nil {
		return
	}
	drain := n.Draining()
	switch was := m.drained.Swap(drain); {
	case drain && !was:
		m.app.Log.Info("this node hands over what it has", "component", "nodes", "event", "node_drains", "node", n.Name())
		m.app.work.Drain()
		e.Drain(m.app.toolTime())
	case was && !drain:
		m.app.work.Resume()
		e.Resume()
	case !drain:
		e.LookAgain()
	}
}

// handOver drains the node of a process that is about to stop, so that others need not wait for its end. Nothing happens where
// nothing is shared.
func (m *membership) handOver() {
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
		m.app.Log.Warn("other nodes are not told that this one stops: "+err.Error(), "component", "nodes", "event", "drain_not_told")
	}
}

// Take implements owner.Owner.
func (m *membership) Take(ctx context.Context, name owner.Name) (owner.Held, error) {
	n, err := m.joined()
	if err != nil {
		return nil, fmt.Errorf("take %s: %w", name, err)
	}
	return n.Take(ctx, name)
}

// Sweep implements owner.Shared.
func (m *membership) Sweep(ctx context.Context) (func(owner.Name) bool, error) {
	n, err := m.joined()
	if err != nil {
		return nil, err
	}
	return n.Sweep(ctx)
}

// Changed implements owner.Shared.
func (m *membership) Changed() <-chan struct{} {
	if n := m.node.Load(); n != nil {
		return n.Changed()
	}
	return nil
}

// owns is asked by the store inside transactions that only an owner may make.
func (m *membership) owns(tx store.Tx, name owner.Name) error {
	n := m.node.Load()
	if n == nil {
		return fmt.Errorf("%s: %w", name, owner.ErrLost)
	}
	return n.Owns(tx, name)
}

// leave gives everything back and says that the node is gone.
func (m *membership) leave() error {
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
