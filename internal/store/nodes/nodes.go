// Package nodes distributes ownership of things among the nodes that share a
// database. A node is a process, on one machine or on many.
//
// A node is alive as long as its counter moves: it increments the counter twice a second. Another
// node that sees the same number six more times marks it as dead, but only if the number is still
// the same. No clock is compared with another, so clocks may differ. What a dead node owned may be
// taken. A node that finds itself dead drops everything and joins again as a new node.
//
// A node that is cut off from the database stops using its things before anybody may take them:
// after five failed beats it tells all holders that they lost theirs, and others wait for six. A
// node that was frozen cannot be told, but what it still writes is refused. Taking a thread and
// sending for a bot check in their own transaction whether the node still owns it (Owns), and
// whoever took the thread has increased its epoch.
package nodes

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"chorus/internal/await"
	"chorus/internal/database"
	"chorus/internal/id"
	"chorus/internal/owner"
)

// The timing, in beats.
const (
	DefaultEvery = 500 * time.Millisecond
	looksToDeath = 6 // how often others must see the same number before the node is dead
	fencedAfter  = 5 // missed beats after which a node gives up its things
)

// statementTime limits writes outside of the rhythm, such as giving a thing back.
// takeTime limits taking one, after which the caller tries again. Others must not
// have to wait for a connection that the network has cut.
const (
	statementTime = 5 * time.Second
	takeTime      = 3 * time.Second
)

// DB is the part of the store that nodes need.
type DB interface {
	Write(ctx context.Context, work func(database.Tx) error) error
	WriteWithin(ctx context.Context, work func(database.Tx) error) error
	Query(ctx context.Context, query string, args []any, scan func(*sql.Rows) error) error
	QueryWithin(ctx context.Context, query string, args []any, scan func(*sql.Rows) error) error
}

// Options configure a node.
type Options struct {
	DB      DB
	Name    string // what people call it: the machine's name
	Kind    string // what the process was started for; shown to people
	Address string // where others reach its HTTP server; "" if nowhere
	Labels  []string
	Version string
	Every   time.Duration // time between two beats; 0: DefaultEvery
	Now     func() time.Time
	Log     *slog.Logger
	// Changed is called when this or another node came, left or is being
	// drained. It must not block. It may be nil.
	Changed func()
}

// Node is this process among the others. It implements owner.Owner.
type Node struct {
	o Options

	mu       sync.Mutex
	id       string
	begun    time.Time // start of the last successful beat; after five missed ones the node is fenced
	fenced   bool      // it could not beat for too long, and has not recovered yet
	left     bool
	drain    bool
	labels   []string
	held     map[owner.Name]*held
	epoch    int64                // the highest that this process has had
	unfreed  map[owner.Name]int64 // epochs of things that could not be given back yet
	seen     map[string]sighting  // of other nodes
	looked   time.Time
	deferred map[owner.Name]bool // free things that were left to others in the last sweep
	changed  chan struct{}       // closed when something may have become free
}

// sighting counts how often another node was seen with the same beat.
type sighting struct {
	beat   int64
	looks  int
	name   string
	labels []string
	drain  bool
}

// ErrFenced means that things are lost because the database cannot be reached.
var ErrFenced = fmt.Errorf("this node could not reach the database, and others may take over: %w", owner.ErrLost)

// ErrDead means that things are lost because other nodes declared this one dead.
var ErrDead = fmt.Errorf("other nodes declared this one dead: %w", owner.ErrLost)

// errHandOver means that things are lost because the node is being drained.
var errHandOver = fmt.Errorf("this node hands over what it has: %w", owner.ErrLost)

// errDead is returned from a transaction if the node's row is gone or marked dead.
var errDead = errors.New("dead")

// Join makes this process a node until Leave. Run keeps it alive.
func Join(ctx context.Context, o Options) (*Node, error) {
	if o.Name == "" {
		return nil, errors.New("join the nodes: a node needs a name")
	}
	o.Every = cmp.Or(o.Every, DefaultEvery)
	if o.Now == nil {
		o.Now = time.Now
	}
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	if o.Changed == nil {
		o.Changed = func() {}
	}
	n := &Node{o: o, held: map[owner.Name]*held{}, changed: make(chan struct{})}
	if err := n.join(ctx); err != nil {
		return nil, fmt.Errorf("join the nodes: %w", err)
	}
	return n, nil
}

// keepDead is how long people can see that a node died.
const keepDead = time.Hour

// join writes a row under a new id.
func (n *Node) join(ctx context.Context) error {
	begun, as := n.o.Now(), id.New()
	var labels []string
	err := n.o.DB.WriteWithin(ctx, func(tx database.Tx) error {
		if err := tidy(tx, n.o.Name); err != nil {
			return err
		}
		given, err := givenLabels(tx, n.o.Name)
		if err != nil {
			return err
		}
		labels = merged(n.o.Name, n.o.Labels, given)
		text, err := json.Marshal(labels)
		if err != nil {
			return err
		}
		return tx.Exec(`INSERT INTO nodes (id, name, kind, address, labels, version, started) VALUES (?, ?, ?, ?, ?, ?, ?)`,
			as, n.o.Name, n.o.Kind, n.o.Address, string(text), n.o.Version, tx.Now().UnixMicro())
	})
	if err != nil {
		return err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.id, n.begun, n.fenced, n.drain, n.labels = as, begun, false, false, labels
	n.unfreed, n.seen, n.deferred, n.looked = map[owner.Name]int64{}, map[string]sighting{}, nil, time.Time{}
	return nil
}

// tidy removes nodes that have been dead for long, and dead nodes with this name, together
// with the rows of what they owned. It only removes rows of nodes that are permanently
// dead, and free rows left by earlier versions. A node that takes one of those at this
// moment has put its own id there and keeps it.
func tidy(tx database.Tx, name string) error {
	const which = `dead = 1 AND (name = ? OR died < ?)`
	args := []any{name, tx.Now().Add(-keepDead).UnixMicro()}
	if err := tx.Exec(`DELETE FROM owned WHERE node = '' OR node IN (SELECT id FROM nodes WHERE `+which+`)`, args...); err != nil {
		return err
	}
	return tx.Exec(`DELETE FROM nodes WHERE `+which, args...)
}

// Tidy removes what is left of nodes that have been dead for an hour.
func Tidy(ctx context.Context, db DB) error {
	if err := db.Write(ctx, func(tx database.Tx) error { return tidy(tx, "") }); err != nil {
		return fmt.Errorf("remove what is left of dead nodes: %w", err)
	}
	return nil
}

// merged returns a node's labels: its name, those it was started with, and those it was given.
func merged(name string, groups ...[]string) []string {
	all := append([]string{name}, slices.Concat(groups...)...)
	slices.Sort(all)
	return slices.Compact(all)
}

// ID returns the node's current id in the database.
func (n *Node) ID() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.id
}

// Name returns what people call it.
func (n *Node) Name() string { return n.o.Name }

// Labels returns the labels by which it can be chosen.
func (n *Node) Labels() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(n.labels)
}

// Alive returns nil if the node has reached the database recently, and otherwise why not.
func (n *Node) Alive() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.fenced {
		return ErrFenced
	}
	return nil
}

// Draining reports whether the node is handing over what it owns.
func (n *Node) Draining() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.drain
}

// Run beats and watches the others until ctx ends.
func (n *Node) Run(ctx context.Context) {
	var guard sync.WaitGroup
	guard.Go(func() { n.keepFence(ctx) })
	defer guard.Wait()
	tick := time.NewTicker(n.o.Every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		n.Step(ctx)
	}
}

// keepFence checks whether the last beat was too long ago. It runs separately, because beats may hang.
func (n *Node) keepFence(ctx context.Context) {
	for await.For(ctx, n.Fence()) {
	}
}

// Fence gives everything up if there was no successful beat for too
// long, and returns how long until that can happen.
func (n *Node) Fence() time.Duration {
	n.mu.Lock()
	defer n.mu.Unlock()
	since, most := n.o.Now().Sub(n.begun), fencedAfter*n.o.Every
	switch {
	case n.fenced || n.left:
		return n.o.Every
	case since < most:
		return most - since
	}
	n.fenced = true
	n.o.Log.Error("the database could not be reached; what this node has is given up", "component", "nodes", "event", "node_fenced", "node", n.o.Name, "holds", len(n.held), "since", since)
	n.loseAll(ErrFenced)
	return n.o.Every
}

// loseAll tells all holders. They remain holders until they release: nobody else
// in this process may take what one of them still uses.
func (n *Node) loseAll(why error) {
	for _, h := range n.held {
		h.cancel(why)
	}
}

// Step makes one beat and checks the others once.
func (n *Node) Step(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, 2*n.o.Every)
	defer cancel()
	err := n.beat(ctx)
	if errors.Is(err, errDead) {
		n.mu.Lock()
		n.o.Log.Error("other nodes took this one for dead; it gives up what it has and joins again", "component", "nodes", "event", "node_found_dead", "node", n.o.Name, "holds", len(n.held))
		n.fenced = true
		n.loseAll(ErrDead)
		n.mu.Unlock()
		err = n.join(ctx)
	}
	if err == nil {
		err = n.look(ctx)
	}
	if err != nil {
		n.mu.Lock()
		clear(n.seen) // others may not have reached the database either, so they get their full time again
		n.mu.Unlock()
		if ctx.Err() == nil {
			n.o.Log.Warn("the nodes could not be looked at: "+err.Error(), "component", "nodes", "event", "beat_failed", "node", n.o.Name)
		}
	}
}

// beat signals that the node is alive, and gives back what could not be given back before.
func (n *Node) beat(ctx context.Context) error {
	n.mu.Lock()
	begun, as, free := n.o.Now(), n.id, make(map[owner.Name]int64, len(n.unfreed))
	maps.Copy(free, n.unfreed)
	n.mu.Unlock()
	var drain bool
	var labels []string
	err := n.o.DB.WriteWithin(ctx, func(tx database.Tx) error {
		var text string
		err := tx.Row(`UPDATE nodes SET beat = beat + 1 WHERE id = ? AND dead = 0 RETURNING drain, labels`, []any{as}, &drain, &text)
		if errors.Is(err, sql.ErrNoRows) {
			return errDead
		}
		if err != nil {
			return err
		}
		labels = nil
		if err := json.Unmarshal([]byte(text), &labels); err != nil {
			return fmt.Errorf("the labels of node %s: %w", n.o.Name, err)
		}
		for name, epoch := range free {
			if err := release(tx, name, as, epoch); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	n.mu.Lock()
	turned := drain != n.drain
	n.begun, n.fenced, n.drain, n.labels = begun, false, drain, labels
	for name, epoch := range free {
		if n.unfreed[name] == epoch {
			delete(n.unfreed, name)
		}
	}
	if drain {
		n.handOver()
	}
	n.mu.Unlock()
	if turned {
		n.tell()
	}
	return nil
}

// handOver ends what this node does for all nodes, so that others can do it. Threads are handed
// over by whoever runs them, each at its next step. The caller holds the node's lock.
func (n *Node) handOver() {
	for name, h := range n.held {
		if !name.IsThread() {
			h.cancel(errHandOver)
		}
	}
}

// Drain hands over what the node owns, and tells the others that things become free.
func (n *Node) Drain(ctx context.Context) error {
	err := n.o.DB.WriteWithin(ctx, func(tx database.Tx) error { return tx.Exec(`UPDATE nodes SET drain = 1 WHERE id = ?`, n.ID()) })
	n.mu.Lock()
	n.drain = true
	n.handOver()
	n.mu.Unlock()
	n.tell()
	if err != nil {
		return fmt.Errorf("drain node %s: %w", n.o.Name, err)
	}
	return nil
}

// look counts how often others were seen with the same beat, and marks those as dead that had it for too long.
func (n *Node) look(ctx context.Context) error {
	found := map[string]sighting{}
	err := n.o.DB.QueryWithin(ctx, `SELECT id, beat, name, labels, drain FROM nodes WHERE dead = 0`, nil, func(rows *sql.Rows) error {
		var as, labels string
		var s sighting
		if err := rows.Scan(&as, &s.beat, &s.name, &labels, &s.drain); err != nil {
			return err
		}
		err := json.Unmarshal([]byte(labels), &s.labels)
		found[as] = s
		return err
	})
	if err != nil {
		return err
	}
	suspects, changed := n.count(found)
	for as, s := range suspects {
		died := false
		err := n.o.DB.WriteWithin(ctx, func(tx database.Tx) error {
			rows, err := tx.Change(`UPDATE nodes SET dead = 1, died = ? WHERE id = ? AND beat = ? AND dead = 0`, tx.Now().UnixMicro(), as, s.beat)
			died = rows > 0
			return err
		})
		if err != nil {
			return err
		}
		if died {
			changed = true
			n.o.Log.Warn("node "+s.name+" is gone: its counter has stopped", "component", "nodes", "event", "node_dead", "node", s.name)
		}
	}
	if changed {
		n.tell()
	}
	return nil
}

// tell signals that things may have become free, or that this node is to be drained.
func (n *Node) tell() {
	n.mu.Lock()
	close(n.changed)
	n.changed = make(chan struct{})
	n.mu.Unlock()
	n.o.Changed()
}

// Changed returns a channel that is closed when things may have become free.
func (n *Node) Changed() <-chan struct{} {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.changed
}

// count adds a check. suspects are the nodes that had the same beat for too long. Checks that come
// too soon after the last one do not count, for example after this process was frozen.
func (n *Node) count(found map[string]sighting) (suspects map[string]sighting, changed bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	now := n.o.Now()
	soon := !n.looked.IsZero() && now.Sub(n.looked) < n.o.Every*4/5
	if !soon {
		n.looked = now
	}
	delete(found, n.id)
	for as, s := range found {
		before, known := n.seen[as]
		changed = changed || !known || before.drain || s.drain // a node that is being drained gives things back one after another
		if known && before.beat == s.beat {
			s.looks = before.looks
			if !soon {
				s.looks++
			}
		}
		found[as] = s
		if s.looks >= looksToDeath {
			if suspects == nil {
				suspects = map[string]sighting{}
			}
			suspects[as] = s
		}
	}
	changed = changed || len(found) < len(n.seen)
	n.seen = found
	return suspects, changed
}

// Leave gives everything back and removes the node. What is still held is lost.
func (n *Node) Leave(ctx context.Context) error {
	n.mu.Lock()
	n.left = true
	as := n.id
	n.loseAll(fmt.Errorf("the node leaves: %w", owner.ErrLost))
	n.mu.Unlock()
	err := n.o.DB.WriteWithin(ctx, func(tx database.Tx) error {
		if err := tx.Exec(`DELETE FROM owned WHERE node = ?`, as); err != nil {
			return err
		}
		return tx.Exec(`DELETE FROM nodes WHERE id = ?`, as)
	})
	if err != nil {
		return fmt.Errorf("leave the nodes: %w", err)
	}
	return nil
}
