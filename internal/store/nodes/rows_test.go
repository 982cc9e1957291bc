package nodes_test

import (
	"database/sql"
	"errors"
	"testing"
	"time"

	"chorus/internal/database"
	"chorus/internal/journal"
	"chorus/internal/owner"
	"chorus/internal/store/nodes"
)

// rows are the epochs of everything that is in the table, by name.
func (n *node) rows(t *testing.T) map[string]int64 {
	t.Helper()
	out := map[string]int64{}
	err := n.db.Query(t.Context(), `SELECT name, epoch FROM owned`, nil, func(r *sql.Rows) error {
		var name string
		var epoch int64
		err := r.Scan(&name, &epoch)
		out[name] = epoch
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// owns is what a transaction asks that only the owner may make.
func (n *node) owns(t *testing.T, name owner.Name) error {
	t.Helper()
	return n.db.Write(t.Context(), func(tx database.Tx) error { return n.Owns(tx, name) })
}

// Only what somebody has is in the table, and no taking looks like an earlier one of the same node.
func TestRowsOfFreeThingsAreRemoved(t *testing.T) {
	onBoth(t, func(t *testing.T, c *cluster) {
		a, b := c.join("a"), c.join("b")
		seen := map[int64]bool{}
		for range 3 {
			held := c.take(a, "thing")
			epoch := a.rows(t)["thing"]
			if seen[epoch] {
				t.Errorf("epoch %d came twice", epoch)
			}
			seen[epoch] = true
			held.Release()
			if left := a.rows(t); len(left) > 0 {
				t.Fatalf("left: %v", left)
			}
		}
		// A high number of another node, which is removed with its row, is no reason for a low one to come again.
		for range 5 {
			c.take(b, "thing").Release()
			c.take(b, "other").Release()
		}
		theirs := c.take(b, "thing")
		high := b.rows(t)["thing"]
		theirs.Release()
		held := c.take(a, "thing")
		if epoch := a.rows(t)["thing"]; seen[epoch] {
			t.Errorf("epoch %d came twice; the other node's was %d", epoch, high)
		}
		c.take(b, "other")
		if err := b.Leave(t.Context()); err != nil {
			t.Fatal(err)
		}
		if left := a.rows(t); len(left) != 1 {
			t.Errorf("a node that left has %v", left)
		}
		if err := a.owns(t, "thing"); err != nil {
			t.Error(err)
		}
		held.Release()
	})
}

// A node that was given up, and whose thing was taken, given back and removed meanwhile, neither has it when it wakes nor gives away what others have.
func TestZombieFindsNoRow(t *testing.T) {
	onBoth(t, func(t *testing.T, c *cluster) {
		zombie, b := c.join("zombie"), c.join("b")
		was := c.take(zombie, "thing")
		c.pass(5*time.Second, b)
		c.take(b, "thing").Release()
		if err := zombie.owns(t, "thing"); !errors.Is(err, journal.ErrFenced) {
			t.Errorf("it has what nobody has: %v", err)
		}
		held := c.take(b, "thing")
		if err := zombie.owns(t, "thing"); !errors.Is(err, journal.ErrFenced) {
			t.Errorf("it has what another has: %v", err)
		}
		was.Release()
		if err := b.owns(t, "thing"); err != nil {
			t.Errorf("the zombie gave it away: %v", err)
		}
		held.Release()
	})
}

// What a node had that died and that nobody wants is removed with the node's own row, and only that.
func TestTidy(t *testing.T) {
	onBoth(t, func(t *testing.T, c *cluster) {
		dead, lives := c.join("dead"), c.join("lives")
		c.take(dead, "old")
		kept := c.take(lives, "thing")
		err := lives.db.Write(t.Context(), func(tx database.Tx) error { // as versions before this one left it
			return tx.Exec(`INSERT INTO owned (name, node, epoch) VALUES ('free', '', 7)`)
		})
		if err != nil {
			t.Fatal(err)
		}
		c.pass(5*time.Second, lives)
		if err := nodes.Tidy(t.Context(), lives); err != nil {
			t.Fatal(err)
		}
		if got := lives.rows(t); len(got) != 2 || got["old"] == 0 || got["thing"] == 0 {
			t.Errorf("people see for an hour what a node had that died: %v", got)
		}
		err = lives.db.Write(t.Context(), func(tx database.Tx) error { return tx.Exec(`UPDATE nodes SET died = 1 WHERE dead = 1`) })
		if err != nil {
			t.Fatal(err)
		}
		if err := nodes.Tidy(t.Context(), lives); err != nil {
			t.Fatal(err)
		}
		if got := lives.rows(t); len(got) != 1 || got["thing"] == 0 {
			t.Errorf("left: %v", got)
		}
		if list, err := nodes.List(t.Context(), lives); err != nil || len(list) != 1 {
			t.Errorf("%+v, %v", list, err)
		}
		if err := lives.owns(t, "thing"); err != nil {
			t.Error(err)
		}
		kept.Release()
	})
}
