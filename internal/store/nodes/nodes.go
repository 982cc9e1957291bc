// Package nodes owns things among the nodes that share a database: processes, on one machine or on many.
//
// A node lives as long as its counter moves: it adds one twice a second, and whoever has looked six further times and seen the same
// number marks it as dead, only if the number is still that one. No clock is compared with another, so clocks may differ. What a dead
// node had may be taken; a node that finds itself dead drops everything and joins again as another one.
//
// It promises that a node which is cut off from the database ends what it does with its things before anybody may take them: after
// five beats that could not be written it tells all holders that they lost theirs, and others wait for six. A node that was frozen
// cannot be told; what it still writes is refused, because taking a thread and sending for a bot ask in their own transaction whether
// the node still has it (Owns), and whoever took the thread has raised its epoch.
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

	"chorus/internal/database"
	"chorus/internal/id"
	"chorus/internal/owner"
)

// The rhythm, in beats.
const (
	DefaultEvery = 500 * time.Millisecond
	looksToDeath = 6 // looks at the same number until its node is dead
	fencedAfter  = 5 // beats that a node misses before it gives its things up
)

// statementTime limits what is written outside of the rhythm, such as giving a thing back; takeTime taking one, after which whoever
// wants it asks again: a connection that the network has cut must not be waited for while others work.
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

// Options are those of a node.
type Options struct {
	DB      DB
	Name    string // what people call it: the machine's name
	Kind    string // what the process was started for, for people
	Address string // where others reach its HTTP server; empty: nowhere
	Labels  []string
	Version string
	Every   time.Duration // between two beats; 0: DefaultEvery
	Now     func() time.Time
	Log     *slog.Logger
	// Changed is told that another node came, went or is being drained, or this one; it must not wait. nil: nobody is.
	Changed func()
}

// Node is this process among the others. It is an owner.Owner.
type Node struct {
	o Options

	mu       sync.Mutex
	id       string
	begun    time.Time // of the last beat that was written, taken before it was; after five missed ones the node is fenced
	fenced   bool      // it could not beat for too long, and has not since
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

// sighting is how often another node was seen with the same beat.
type sighting struct {
	beat   int64
	looks  int
	name   string
	labels []string
	drain  bool
}

// ErrFenced is why things are lost when the database cannot be reached.
var ErrFenced = fmt.Errorf("this node could not reach the database, and others may take over: %w", owner.ErrLost)

// ErrDead is why things are lost when others have given this node up.
var ErrDead = fmt.Errorf("other nodes took this one for dead: %w", owner.ErrLost)

// errHandOver is why things are lost when the node is drained.
var errHandOver = fmt.Errorf("this node hands over what it has: %w", owner.ErrLost)

// errDead is found in a transaction: the node's row is gone, or says so.
var errDead = errors.New("dead")

// Join makes this process a node, until Leave. Run keeps it alive.
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

// tidy removes nodes that have been dead for long, and those of one name, with the rows of what they had. Only rows of nodes that are dead for good go, and
// free ones, which earlier versions left behind: a node that takes one of them at this moment has put its own id there, and keeps it.
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

// merged are a node's labels: its name, those it was started with, and those it was given.
func merged(name string, groups ...[]string) []string {
	all := append([]string{name}, slices.Concat(groups...)...)
	slices.Sort(all)
	return slices.Compact(all)
}

// ID is what the node is called in the database now.
func (n *Node) ID() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.id
}

// Name is what people call it.
func (n *Node) Name() string { return n.o.Name }

// Labels are what it can be chosen by.
func (n *Node) Labels() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(n.labels)
}

// Alive reports whether the node has reached the database lately; why not, else.
func (n *Node) Alive() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.fenced {
		return ErrFenced
	}
	return nil
}

// Draining reports whether the node hands over what it has.
func (n *Node) Draining() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.drain
}

// Run beats and looks at the others until ctx ends.
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

// keepFence looks, beside beats that may hang, whether the last one was too long ago.
func (n *Node) keepFence(ctx context.Context) {
	for {
		timer := time.NewTimer(n.Fence())
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-timer.C:
		}
	}
}

// Fence gives everything up if no beat was written for too long, and says how long it can be until that is so.
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

// loseAll tells all holders. They stay holders until they release: nobody else in this process may take what one of them still uses.
func (n *Node) loseAll(why error) {
	for _, h := range n.held {
		h.cancel(why)
	}
}

// Step is one beat, and one look at the others.
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
		clear(n.seen) // others may not have reached the database either: they get their time anew
		n.mu.Unlock()
		if ctx.Err() == nil {
			n.o.Log.Warn("the nodes could not be looked at: "+err.Error(), "component", "nodes", "event", "beat_failed", "node", n.o.Name)
		}
	}
}

// beat says that the node lives, and gives back what could not be given back before.
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

// handOver ends what is done for all nodes, so that others can do it. Threads are handed over by those who run them, each at its next
// step. The node's lock is held.
func (n *Node) handOver() {
	for name, h := range n.held {
		if !name.IsThread() {
			h.cancel(errHandOver)
		}
	}
}

// Drain hands over what the node has, and tells the others that things become free.
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

// look counts how often others were seen with the same beat, and marks those as dead that were seen with it for too long.
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

// tell says that things may have become free, or that this node is to be drained.
func (n *Node) tell() {
	n.mu.Lock()
	close(n.changed)
	n.changed = make(chan struct{})
	n.mu.Unlock()
	n.o.Changed()
}

// Changed is closed when things may have become free.
func (n *Node) Changed() <-chan struct{} {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.changed
}

// count adds a look; suspects are those that were seen with the same beat for too long. Looks that come too soon after the last one, as
// after this process was frozen, do not count.
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
		changed = changed || !known || before.drain || s.drain // one that is drained gives things back one after the other
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

// Leave gives everything back and says that the node is gone. What is still held is lost.
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
