package nodes

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"hash/fnv"
	"slices"

	"chorus/internal/database"
	"chorus/internal/journal"
	"chorus/internal/owner"
)

// held is a thing that this node owns or is taking.
type held struct {
	node   *Node
	name   owner.Name
	as     string // the node's id when it took it
	epoch  int64  // 0 while it is being taken
	ctx    context.Context
	cancel context.CancelCauseFunc
}

var _ owner.Shared = (*Node)(nil)

// Take takes a thing that is free, whose node is dead, or that this node owned and forgot.
func (n *Node) Take(ctx context.Context, name owner.Name) (owner.Held, error) {
	h := &held{node: n, name: name}
	h.ctx, h.cancel = context.WithCancelCause(context.Background())
	if err := n.reserve(h); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, takeTime)
	defer cancel()
	next, epoch := n.nextEpoch(), int64(0)
	err := n.o.DB.WriteWithin(ctx, func(tx database.Tx) error {
		err := tx.Row(`INSERT INTO owned (name, node, epoch) SELECT CAST(? AS TEXT), id, CAST(? AS BIGINT) FROM nodes WHERE id = ? AND dead = 0
			ON CONFLICT (name) DO UPDATE SET node = excluded.node, epoch = CASE WHEN owned.epoch < excluded.epoch THEN excluded.epoch ELSE owned.epoch + 1 END
			WHERE owned.node = '' OR owned.node = excluded.node OR NOT EXISTS (SELECT 1 FROM nodes n WHERE n.id = owned.node AND n.dead = 0)
			RETURNING epoch`, []any{string(name), next, h.as}, &epoch)
		if errors.Is(err, sql.ErrNoRows) {
			return refusal(tx, name, h.as)
		}
		return err
	})
	n.mu.Lock()
	defer n.mu.Unlock()
	h.epoch, n.epoch = epoch, max(n.epoch, epoch)
	var taken *owner.HeldError
	switch {
	case errors.As(err, &taken):
		delete(n.held, name)
		return nil, taken
	case errors.Is(err, errDead):
		delete(n.held, name)
		return nil, fmt.Errorf("take %s: %w", name, ErrDead)
	case err != nil:
		// We do not know whether it was taken. If it was, the row says
		// that it is ours, and taking it again works.
		delete(n.held, name)
		return nil, fmt.Errorf("take %s: %w", name, err)
	case h.ctx.Err() != nil: // in the meantime
		delete(n.held, name)
		n.freeLater(h)
		return nil, fmt.Errorf("take %s: %w", name, context.Cause(h.ctx))
	}
	delete(n.unfreed, name)
	return h, nil
}

// nextEpoch returns a number higher than every epoch that this process has had. When a thing
// becomes free, its row is removed together with the epoch. What distinguishes two takings is then
// the node's id, which is unique, and this number, which is never repeated.
func (n *Node) nextEpoch() int64 {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.epoch++
	return n.epoch
}

// reserve keeps the name from others in this process.
func (n *Node) reserve(h *held) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	switch {
	case n.held[h.name] != nil:
		return &owner.HeldError{Name: h.name, By: "node " + n.o.Name}
	case n.left:
		return fmt.Errorf("take %s: the node has left", h.name)
	case n.fenced:
		return fmt.Errorf("take %s: %w", h.name, ErrFenced)
	case n.drain:
		return fmt.Errorf("take %s: %w", h.name, owner.ErrDraining)
	}
	h.as = n.id
	n.held[h.name] = h
	return nil
}

// refusal says why a thing could not be taken.
func refusal(tx database.Tx, name owner.Name, as string) error {
	var lives bool
	var called string
	err := tx.Row(`SELECT EXISTS (SELECT 1 FROM nodes WHERE id = ? AND dead = 0),
		coalesce((SELECT nodes.name FROM owned JOIN nodes ON nodes.id = owned.node WHERE owned.name = ?), '')`, []any{as, string(name)}, &lives, &called)
	switch {
	case err != nil:
		return err
	case !lives:
		return errDead
	case called == "":
		return &owner.HeldError{Name: name} // it was released at this moment
	}
	return &owner.HeldError{Name: name, By: "node " + called}
}

// release removes the row of a thing if it still belongs to that taking.
func release(tx database.Tx, name owner.Name, as string, epoch int64) error {
	return tx.Exec(`DELETE FROM owned WHERE name = ? AND node = ? AND epoch = ?`, string(name), as, epoch)
}

// freeLater gives a thing back with the next beat. The caller holds the node's lock.
func (n *Node) freeLater(h *held) {
	if h.as == n.id && h.epoch > 0 {
		n.unfreed[h.name] = h.epoch
	}
}

// Context ends when the thing is lost.
func (h *held) Context() context.Context { return h.ctx }

// Release gives the thing back. If the database cannot be reached, this happens with the next
// successful beat; until then, others have to wait as if it were held.
func (h *held) Release() {
	n := h.node
	n.mu.Lock()
	if n.held[h.name] != h {
		n.mu.Unlock()
		return
	}
	if h.as != n.id || n.fenced || n.left { // dead nodes own nothing, and Leave gives everything back
		n.freeLater(h)
		delete(n.held, h.name)
		n.mu.Unlock()
		return
	}
	n.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), statementTime)
	defer cancel()
	err := n.o.DB.WriteWithin(ctx, func(tx database.Tx) error {
		return release(tx, h.name, h.as, h.epoch)
	})
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.held[h.name] != h {
		return // concurrent second release
	}
	delete(n.held, h.name)
	if err != nil {
		n.freeLater(h)
	}
}

// Owns is called inside a transaction that only the owner of a thing may make. It fails,
// and with it the transaction, if this node no longer owns the thing. The row stays locked
// until the end, so nobody can take the thing in between.
func (n *Node) Owns(tx database.Tx, name owner.Name) error {
	n.mu.Lock()
	var as string
	var epoch int64
	if h := n.held[name]; h != nil {
		as, epoch = h.as, h.epoch
	}
	n.mu.Unlock()
	if epoch == 0 {
		return fmt.Errorf("%s: %w: %w", name, owner.ErrLost, journal.ErrFenced)
	}
	rows, err := tx.Change(`UPDATE owned SET epoch = epoch WHERE name = ? AND node = ? AND epoch = ?`, string(name), as, epoch)
	if err != nil {
		return err
	}
	if rows == 0 {
		return fmt.Errorf("%s: %w: %w", name, owner.ErrLost, journal.ErrFenced)
	}
	return nil
}

// Sweep says which of the things that have work this node should try to take: none that
// another node owns, and of the free ones those that are assigned to it. Those assigned to
// others are tried in the next sweep, if they are still free then.
func (n *Node) Sweep(ctx context.Context) (try func(owner.Name) bool, err error) {
	others := map[owner.Name]bool{}
	as := n.ID()
	err = n.o.DB.QueryWithin(ctx, `SELECT owned.name FROM owned JOIN nodes ON nodes.id = owned.node WHERE owned.node <> '' AND owned.node <> ? AND nodes.dead = 0`, []any{as}, func(rows *sql.Rows) error {
		var name string
		err := rows.Scan(&name)
		others[owner.Name(name)] = true
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("look what other nodes have: %w", err)
	}
	n.mu.Lock()
	before, live := n.deferred, []string{as}
	n.deferred = map[owner.Name]bool{}
	for id, s := range n.seen {
		if !s.drain {
			live = append(live, id)
		}
	}
	n.mu.Unlock()
	return func(name owner.Name) bool {
		if others[name] {
			return false
		}
		n.mu.Lock()
		defer n.mu.Unlock()
		if n.held[name] != nil || before[name] || preferred(live, name) == as {
			return true
		}
		n.deferred[name] = true
		return false
	}, nil
}

// preferred returns the node that a free thing is assigned to. All nodes that see
// the same other nodes agree, and things are spread over them.
func preferred(nodes []string, name owner.Name) string {
	return slices.MaxFunc(nodes, func(a, b string) int {
		x, y := weight(a, name), weight(b, name)
		switch {
		case x < y:
			return -1
		case x > y:
			return 1
		}
		return 0
	})
}

func weight(node string, name owner.Name) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(name))
	_, _ = h.Write([]byte(node))
	return h.Sum64()
}

// Carried reports whether another living node carries a label.
func (n *Node) Carried(label string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, s := range n.seen {
		if slices.Contains(s.labels, label) {
			return true
		}
	}
	return false
}
