package nodes_test

import (
	"context"
	"database/sql"
	"errors"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"chorus/internal/chat"
	"chorus/internal/database"
	"chorus/internal/journal"
	"chorus/internal/owner"
	"chorus/internal/owner/ownertest"
	"chorus/internal/store"
	"chorus/internal/store/nodes"
	"chorus/internal/store/pgtest"
	"chorus/internal/store/storetest"
)

// cluster is a database with the nodes that share it, and a clock that moves by hand.
type cluster struct {
	t   *testing.T
	dir string
	url string // of PostgreSQL; empty: a file in dir
	now atomic.Int64
}

// node is one of them, with its own connections, as another process has them.
type node struct {
	*nodes.Node
	db      *store.DB
	away    atomic.Bool // the database cannot be reached
	looked  func()      // is called after each look at the others
	changed atomic.Int32
}

var errAway = errors.New("the database is away")

func (n *node) Write(ctx context.Context, work func(database.Tx) error) error {
	if n.away.Load() {
		return errAway
	}
	return n.db.Write(ctx, work)
}

func (n *node) WriteWithin(ctx context.Context, work func(database.Tx) error) error {
	if n.away.Load() {
		return errAway
	}
	return n.db.WriteWithin(ctx, work)
}

func (n *node) Query(ctx context.Context, query string, args []any, scan func(*sql.Rows) error) error {
	if n.away.Load() {
		return errAway
	}
	return n.db.Query(ctx, query, args, scan)
}

func (n *node) QueryWithin(ctx context.Context, query string, args []any, scan func(*sql.Rows) error) error {
	if n.away.Load() {
		return errAway
	}
	err := n.db.QueryWithin(ctx, query, args, scan)
	if n.looked != nil {
		n.looked()
	}
	return err
}

// onBoth runs a test on a file and on a server.
func onBoth(t *testing.T, test func(t *testing.T, c *cluster)) {
	t.Parallel()
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel()
		test(t, &cluster{t: t, dir: storetest.FreshHome(t)})
	})
	t.Run("postgres", func(t *testing.T) {
		t.Parallel()
		test(t, &cluster{t: t, url: pgtest.Database(t)})
	})
}

// another is one of the same kind for a part of a test.
func (c *cluster) another(t *testing.T) *cluster {
	if c.url != "" {
		return &cluster{t: t, url: pgtest.Database(t)}
	}
	return &cluster{t: t, dir: storetest.FreshHome(t)}
}

func (c *cluster) join(name string, labels ...string) *node {
	c.t.Helper()
	n := &node{}
	o := store.Options{URL: c.url, Owns: func(tx database.Tx, name owner.Name) error { return n.Owns(tx, name) }}
	if c.url == "" {
		o.Path = filepath.Join(c.dir, "chorus.db")
	}
	db, err := store.Open(c.t.Context(), o)
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() { _ = db.Close() })
	n.db = db
	n.Node, err = nodes.Join(c.t.Context(), nodes.Options{DB: n, Name: name, Labels: labels, Changed: func() { n.changed.Add(1) },
		Now: func() time.Time { return time.UnixMicro(c.now.Load()) }})
	if err != nil {
		c.t.Fatal(err)
	}
	return n
}

// pass lets time pass in tenths of a second; those that live beat twice a second, and each looks at its own clock all the time.
func (c *cluster) pass(d time.Duration, alive ...*node) {
	for range d / (100 * time.Millisecond) {
		now := c.now.Add((100 * time.Millisecond).Microseconds())
		for _, n := range alive {
			n.Fence()
			if now%(500*time.Millisecond).Microseconds() == 0 {
				n.Step(c.t.Context())
			}
		}
	}
}

func (c *cluster) take(n *node, name owner.Name) owner.Held {
	c.t.Helper()
	held, err := n.Take(c.t.Context(), name)
	if err != nil {
		c.t.Fatal(err)
	}
	return held
}

// takenAfter is how long it takes until a node can take a thing that another one had.
func (c *cluster) takenAfter(n *node, name owner.Name, alive ...*node) time.Duration {
	c.t.Helper()
	began := c.now.Load()
	for range 100 {
		if _, err := n.Take(c.t.Context(), name); err == nil {
			return time.Duration(c.now.Load()-began) * time.Microsecond
		} else if !errors.Is(err, owner.ErrHeld) {
			c.t.Fatal(err)
		}
		c.pass(100*time.Millisecond, alive...)
	}
	c.t.Fatalf("%s was never free", name)
	return 0
}

func TestNodes(t *testing.T) {
	onBoth(t, func(t *testing.T, c *cluster) {
		ownertest.Run(t, func(t *testing.T) (first, second owner.Owner, who string) {
			c := c.another(t)
			return c.join("berlin"), c.join("oslo"), "node berlin"
		})
	})
}

// A node that was killed is taken over in about three seconds, and not sooner; the others are told.
func TestKilledNodeIsTakenOver(t *testing.T) {
	onBoth(t, func(t *testing.T, c *cluster) {
		a, b := c.join("a"), c.join("b")
		c.pass(2*time.Second, a, b)
		c.take(a, "thing")
		told := b.changed.Load()
		if after := c.takenAfter(b, "thing", b); after < 3*time.Second || after > 4*time.Second {
			t.Errorf("taken over after %s", after)
		}
		if b.changed.Load() == told {
			t.Error("nobody was told")
		}
		list, err := nodes.List(t.Context(), b)
		if err != nil || len(list) != 2 || !list[0].Dead || list[1].Dead || !slices.Equal(list[1].Owns, []owner.Name{"thing"}) {
			t.Errorf("%+v, %v", list, err)
		}
	})
}

// A node that was frozen for eight seconds: what it still writes is refused, it cannot take its thread back from the new owner,
// and it goes on as another node.
func TestFrozenNodeIsFenced(t *testing.T) {
	onBoth(t, func(t *testing.T, c *cluster) {
		a, b := c.join("a"), c.join("b")
		ctx := t.Context()
		thread := chat.ThreadID("cli:local:main:default")
		if _, err := a.db.Commit(ctx, journal.Commit{Thread: thread, Create: &journal.Thread{}, Events: []chat.Event{said(thread)}}); err != nil {
			t.Fatal(err)
		}
		held, bot := c.take(a, owner.Thread(thread)), c.take(a, owner.Bot("discord", "bob"))
		mine, err := a.db.Take(ctx, thread)
		if err != nil {
			t.Fatal(err)
		}
		c.pass(8*time.Second, b)
		c.take(b, owner.Thread(thread))
		c.take(b, owner.Bot("discord", "bob"))
		theirs, err := b.db.Take(ctx, thread)
		if err != nil {
			t.Fatal(err)
		}
		note := chat.Event{Thread: thread, Body: chat.Noted{Text: "from the dead"}}
		if _, err := a.db.Commit(ctx, journal.Commit{Thread: thread, Epoch: mine.Epoch, Events: []chat.Event{note}}); !errors.Is(err, journal.ErrFenced) {
			t.Errorf("a dead node wrote: %v", err)
		}
		if _, err := a.db.Take(ctx, thread); !errors.Is(err, journal.ErrFenced) {
			t.Errorf("a dead node took the thread from a healthy one: %v", err)
		}
		if _, err := a.db.BeginSend(ctx, journal.Outgoing{Desired: journal.Desired{Lane: journal.Lane{Platform: "discord", Bot: "bob", Channel: "1"}, Key: "k"}}); !errors.Is(err, journal.ErrFenced) {
			t.Errorf("a dead node sends: %v", err)
		}
		if row, err := b.db.Thread(ctx, thread); err != nil || row.Epoch != theirs.Epoch {
			t.Errorf("epoch %d, not %d: %v", row.Epoch, theirs.Epoch, err)
		}
		was := a.ID()
		c.pass(500*time.Millisecond, a, b)
		for _, h := range []owner.Held{held, bot} {
			if !errors.Is(context.Cause(h.Context()), owner.ErrLost) {
				t.Errorf("its holders were not told: %v", context.Cause(h.Context()))
			}
			h.Release()
		}
		if a.ID() == was || a.Alive() != nil {
			t.Errorf("it did not join again: %v", a.Alive())
		}
		if _, err := a.Take(ctx, owner.Thread(thread)); !errors.Is(err, owner.ErrHeld) {
			t.Errorf("it took what is another's: %v", err)
		}
		c.take(a, "another thing")
	})
}

func said(thread chat.ThreadID) chat.Event {
	return chat.Event{Thread: thread, Body: chat.Received{Blocks: chat.TextBlocks("hello"), Prompt: true}, Platform: "local", PlatformID: "1"}
}

// A node that is cut off gives its things up before others may have them.
func TestCutOffNodeEndsItsWorkFirst(t *testing.T) {
	onBoth(t, func(t *testing.T, c *cluster) {
		a, b := c.join("a"), c.join("b")
		c.pass(2*time.Second, a, b)
		held := c.take(a, "thing")
		a.away.Store(true)
		var lost int64
		for range 60 {
			c.pass(100*time.Millisecond, a, b)
			if lost == 0 && held.Context().Err() != nil {
				lost = c.now.Load()
			}
			if _, err := b.Take(t.Context(), "thing"); err == nil {
				break
			}
		}
		spare := time.Duration(c.now.Load()-lost) * time.Microsecond
		if lost == 0 || spare < 500*time.Millisecond {
			t.Fatalf("the cut-off node had %s to end what it did", spare)
		}
		if _, err := a.Take(t.Context(), "other"); !errors.Is(err, nodes.ErrFenced) || !errors.Is(a.Alive(), nodes.ErrFenced) {
			t.Errorf("a node without a database took something: %v", err)
		}
		a.away.Store(false)
		held.Release()
		c.pass(time.Second, a, b)
		if _, err := a.Take(t.Context(), "thing"); !errors.Is(err, owner.ErrHeld) {
			t.Errorf("it released what is another's: %v", err)
		}
		c.take(a, "other")
	})
}

// The database is away for all: nobody is taken over, and all go on with what they had.
func TestDatabaseAway(t *testing.T) {
	onBoth(t, func(t *testing.T, c *cluster) {
		for _, away := range []time.Duration{400 * time.Millisecond, 2 * time.Second, 10 * time.Second} {
			t.Run(away.String(), func(t *testing.T) {
				t.Parallel()
				c := c.another(t)
				a, b := c.join("a"), c.join("b")
				c.pass(2*time.Second, a, b)
				x, y := c.take(a, "x"), c.take(b, "y")
				as, bs := a.ID(), b.ID()
				for _, n := range []*node{a, b} {
					n.away.Store(true)
				}
				c.pass(away, a, b)
				for _, n := range []*node{a, b} {
					n.away.Store(false)
				}
				if long := away > 2500*time.Millisecond; (x.Context().Err() != nil) != long || (y.Context().Err() != nil) != long {
					t.Errorf("after %s: %v, %v", away, x.Context().Err(), y.Context().Err())
				}
				c.pass(4*time.Second, a, b)
				if a.ID() != as || b.ID() != bs {
					t.Error("somebody was taken for dead")
				}
				if _, err := b.Take(t.Context(), "x"); !errors.Is(err, owner.ErrHeld) {
					t.Errorf("taken over: %v", err)
				}
				x.Release()
				c.take(a, "x")
			})
		}
	})
}

// Nodes that are slow, or that look often after they were frozen, are no reason to take anything over.
func TestNoNeedlessTakeOver(t *testing.T) {
	onBoth(t, func(t *testing.T, c *cluster) {
		t.Run("a slow node", func(t *testing.T) {
			t.Parallel()
			c := c.another(t)
			a, b := c.join("a"), c.join("b")
			was := a.ID()
			for range 10 {
				c.pass(2*time.Second, b)
				a.Step(t.Context())
			}
			if a.ID() != was {
				t.Error("a node that beats every two seconds was taken for dead")
			}
		})
		t.Run("a node that comes back looks often", func(t *testing.T) {
			t.Parallel()
			c := c.another(t)
			a, b := c.join("a"), c.join("b")
			c.pass(time.Second, a, b)
			for range 20 {
				b.Step(t.Context())
			}
			was := a.ID()
			if c.pass(500*time.Millisecond, a, b); a.ID() != was {
				t.Error("looks within one moment counted")
			}
		})
		t.Run("a beat in the last moment", func(t *testing.T) {
			t.Parallel()
			c := c.another(t)
			a, b := c.join("a"), c.join("b")
			was, looks := a.ID(), 0
			b.looked = func() { // the first look finds the number, six further ones the same
				if looks++; looks == 7 {
					a.Step(t.Context())
				}
			}
			c.pass(3500*time.Millisecond, b)
			if a.Step(t.Context()); a.ID() != was {
				t.Error("a node that had just beaten was taken for dead")
			}
		})
	})
}

// What cannot be given back because the database is away is given back when it can be.
func TestReleaseWithoutDatabase(t *testing.T) {
	onBoth(t, func(t *testing.T, c *cluster) {
		a, b := c.join("a"), c.join("b")
		held := c.take(a, "thing")
		a.away.Store(true)
		held.Release()
		if _, err := b.Take(t.Context(), "thing"); !errors.Is(err, owner.ErrHeld) {
			t.Fatal(err)
		}
		a.away.Store(false)
		again := c.take(a, "thing") // it is still its own
		c.pass(500*time.Millisecond, a, b)
		if _, err := b.Take(t.Context(), "thing"); !errors.Is(err, owner.ErrHeld) {
			t.Fatalf("the earlier release gave the later one away: %v", err)
		}
		a.away.Store(true)
		again.Release()
		a.away.Store(false)
		c.pass(500*time.Millisecond, a, b)
		c.take(b, "thing")
	})
}

// A node that leaves gives back everything at once.
func TestLeave(t *testing.T) {
	onBoth(t, func(t *testing.T, c *cluster) {
		a, b := c.join("a"), c.join("b")
		held := c.take(a, "thing")
		if err := a.Leave(t.Context()); err != nil {
			t.Fatal(err)
		}
		c.take(b, "thing")
		if held.Release(); held.Context().Err() == nil {
			t.Error("its holders were not told")
		}
		if _, err := a.Take(t.Context(), "more"); err == nil {
			t.Error("it took something after it had left")
		}
		if list, err := nodes.List(t.Context(), b); err != nil || len(list) != 1 {
			t.Errorf("%+v, %v", list, err)
		}
	})
}

// What nobody has is spread over the nodes, each thing falls to one of them at first, and what that one does not take is taken by
// another in its next sweep.
func TestSweepSpreads(t *testing.T) {
	onBoth(t, func(t *testing.T, c *cluster) {
		all := []*node{c.join("a"), c.join("b"), c.join("c")}
		c.pass(time.Second, all...)
		names := make([]owner.Name, 90)
		for i := range names {
			names[i] = owner.Name("thing " + string(rune('A'+i)))
		}
		c.take(all[0], names[0])
		tries := map[owner.Name]int{}
		for _, n := range all {
			try, err := n.Sweep(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			falls := 0
			for _, name := range names {
				if try(name) {
					falls++
					tries[name]++
				}
			}
			if falls < 10 || falls > 60 {
				t.Errorf("%d of %d fall to %s", falls, len(names), n.Name())
			}
		}
		for _, name := range names {
			if tries[name] != 1 {
				t.Errorf("%d try for %s at once", tries[name], name)
			}
		}
		try, err := all[1].Sweep(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names[1:] {
			if !try(name) {
				t.Errorf("%s is nobody's, and is not tried for", name)
			}
		}
		if try(names[0]) {
			t.Error("what another node has is tried for")
		}
	})
}

// Labels are kept over restarts; a node that is drained takes nothing new and keeps what it has until it gives it back.
func TestLabelsAndDrain(t *testing.T) {
	onBoth(t, func(t *testing.T, c *cluster) {
		a := c.join("a", "gpu")
		ctx := t.Context()
		if _, err := nodes.Label(ctx, a, "a", []string{"disk1"}, []string{"gpu"}); err != nil {
			t.Fatal(err)
		}
		if _, err := nodes.Label(ctx, a, "a", []string{"two words"}, nil); err == nil {
			t.Error("a label with a space")
		}
		if _, err := nodes.Label(ctx, a, "nobody", []string{"x"}, nil); !errors.Is(err, nodes.ErrUnknown) {
			t.Error(err)
		}
		c.pass(500*time.Millisecond, a)
		if got := a.Labels(); !slices.Equal(got, []string{"a", "disk1"}) {
			t.Errorf("labels %v", got)
		}
		if got := c.join("a").Labels(); !slices.Equal(got, []string{"a", "disk1"}) {
			t.Errorf("after a restart: labels %v", got)
		}
		held, clock := c.take(a, owner.Thread("cli:local:main:default")), c.take(a, owner.Schedules)
		if err := nodes.Drain(ctx, a, "a", true); err != nil {
			t.Fatal(err)
		}
		told := a.changed.Load()
		c.pass(500*time.Millisecond, a)
		if !a.Draining() || a.changed.Load() == told {
			t.Error("it was not told that it is drained")
		}
		if _, err := a.Take(ctx, "more"); !errors.Is(err, owner.ErrDraining) {
			t.Errorf("a drained node took something: %v", err)
		}
		if err := held.Context().Err(); err != nil {
			t.Errorf("a thread was taken away before its step was over: %v", err)
		}
		if !errors.Is(context.Cause(clock.Context()), owner.ErrLost) {
			t.Error("the clock was not handed over")
		}
		held.Release()
		if err := nodes.Drain(ctx, a, "b", true); !errors.Is(err, nodes.ErrUnknown) {
			t.Error(err)
		}
		if err := nodes.Drain(ctx, a, "a", false); err != nil {
			t.Fatal(err)
		}
		c.pass(500*time.Millisecond, a)
		c.take(a, "more")
	})
}
