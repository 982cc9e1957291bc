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

// held is a thing that this node has, or takes.
type held struct {
	node   *Node
	name   owner.Name
	as     string // the node's id when it took it
	epoch  int64  // 0: it is being taken
	ctx    context.Context
	cancel context.CancelCauseFunc
}

var _ owner.Shared = (*Node)(nil)

// Take takes a thing that nobody has, or whose node is dead, or which this node has and forgot.
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
		// Whether it was taken is not known; if it was, the row says that it is ours, and taking it again works.
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

// nextEpoch is higher than every epoch that this process has had. The row of a thing that nobody has is removed, and with it the epoch; what tells two
// takings apart then is the node's id, which is nobody else's, and this number, which does not come twice.
func (n *Node) nextEpoch() int64 {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.epoch++
	return n.epoch
}

// reserve keeps others in this process from the name.
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
		return &owner.HeldError{Name: name} // it was given back in this moment
	}
	return &owner.HeldError{Name: name, By: "node " + called}
}

// release removes the row of a thing, if it is still of that taking.
func release(tx database.Tx, name owner.Name, as string, epoch int64) error {
	return tx.Exec(`DELETE FROM owned WHERE name = ? AND node = ? AND epoch = ?`, string(name), as, epoch)
}

// freeLater gives a thing back with the next beat. The node's lock is held.
func (n *Node) freeLater(h *held) {
	if h.as == n.id && h.epoch > 0 {
		n.unfreed[h.name] = h.epoch
	}
}

// Context ends when the thing was lost.
func (h *held) Context() context.Context { return h.ctx }

// Release gives the thing back. If the database cannot be reached that happens with the next beat that is written; until then others
// wait for it as for one that is held.
func (h *held) Release() {
	n := h.node
	n.mu.Lock()
	if n.held[h.name] != h {
		n.mu.Unlock()
		return
	}
	if h.as != n.id || n.fenced || n.left { // dead nodes have nothing, and Leave gives everything back
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
		return // released twice at once
	}
	delete(n.held, h.name)
	if err != nil {
		n.freeLater(h)
	}
}

// Owns is asked inside a transaction that only the owner of a thing may make: it fails, and the transaction with it, if this node has
// it no more. The row stays locked until the end, so nobody can take the thing in between.
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

// Sweep says which of the things that have work this node should try for: none that another node has, and of those that are free
// the ones that fall to it. What falls to others is tried for in the next sweep, if it is still free then.
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

// preferred is the node that a free thing falls to: all nodes that see the same others say the same, and things are spread over them.
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

// Carried reports whether another node that lives carries a label.
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
