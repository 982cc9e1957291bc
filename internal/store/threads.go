package store

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"chorus/internal/chat"
	"chorus/internal/database"
	"chorus/internal/journal"
	"chorus/internal/owner"
)

const threadColumns = `id, agent, place, owner, title, dir, status, epoch, next_seq, waiting, wake, created, last_active, parent, parent_run, parent_call, root_run, placement, listing`

// CreateThread creates a thread unless it exists.
func CreateThread(tx database.Tx, id chat.ThreadID, t journal.Thread) error {
	return createThread(tx, id, t, database.Micros(tx.Now()))
}

// SetDir sets the folder in which a thread's next run works.
func SetDir(tx database.Tx, id chat.ThreadID, dir string) error {
	return tx.Exec(`UPDATE threads SET dir = ? WHERE id = ?`, dir, string(id))
}

// createThread creates the row unless it exists. What the draft leaves empty comes from the id.
func createThread(tx database.Tx, id chat.ThreadID, t journal.Thread, now int64) error {
	if t.ID != "" && t.ID != id {
		return fmt.Errorf("create thread %s inside a commit to %s", t.ID, id)
	}
	transport, place, _, agent := id.Parts()
	t.Agent = cmp.Or(t.Agent, agent)
	t.Place = cmp.Or(t.Place, place)
	owner, err := database.AsJSON(t.Owner)
	if err != nil {
		return err
	}
	return tx.Exec(`INSERT INTO threads (id, transport, place, agent, owner, title, dir, status, created, last_active, parent, parent_run, parent_call, root_run, placement)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING`,
		string(id), transport, t.Place, t.Agent, owner, t.Title, t.Dir, string(chat.Idle), now, now,
		string(t.Parent.Thread), t.Parent.Run, t.Parent.Call, t.Parent.Root, t.Placement)
}

// MoveThread changes the placement and the folder of a thread whose placement is still from,
// and stores a memo about that. It returns false if it was moved already.
func (db *DB) MoveThread(ctx context.Context, id chat.ThreadID, from, to, dir, memo, text string) (moved bool, err error) {
	err = db.Write(ctx, func(tx database.Tx) error {
		n, err := tx.Change(`UPDATE threads SET placement = ?, dir = ? WHERE id = ? AND placement = ?`, to, dir, string(id), from)
		if moved = n > 0; err != nil || !moved {
			return err
		}
		return tx.Exec(`INSERT INTO memos (kind, key, value, at) VALUES (?, ?, ?, ?) ON CONFLICT (kind, key) DO UPDATE SET value = excluded.value, at = excluded.at`,
			memo, string(id), text, database.Micros(db.Now()))
	})
	if err != nil {
		return false, fmt.Errorf("move thread %s: %w", id, err)
	}
	return moved, nil
}

// WaitingByPlacement counts the threads that have something to do, by
// the label of the machines that have their files.
func (db *DB) WaitingByPlacement(ctx context.Context) (map[string]int, error) {
	out := map[string]int{}
	err := db.Query(ctx, `SELECT placement, count(*) FROM threads WHERE placement <> '' AND (wake = 1 OR status = 'running') GROUP BY placement`, nil, database.Pairs(out))
	if err != nil {
		return nil, fmt.Errorf("count the threads that wait for a node: %w", err)
	}
	return out, nil
}

// Take makes the caller the thread's owner and fences off the previous owner. The caller must hold
// the thread's lock. It fails with ErrUnknown if there is no such thread.
func (db *DB) Take(ctx context.Context, id chat.ThreadID) (journal.Thread, error) {
	var out journal.Thread
	err := db.Write(ctx, func(tx database.Tx) error {
		err := db.owned(tx, owner.Thread(id))
		if err != nil {
			return err
		}
		out, err = scanThread(tx.One(`UPDATE threads SET epoch = epoch + 1 WHERE id = ? RETURNING `+threadColumns, string(id)))
		return err
	})
	if err != nil {
		return journal.Thread{}, fmt.Errorf("take thread %s: %w", id, err)
	}
	return out, nil
}

// owned fails if ownership must be checked and the thing does not belong to this process.
func (db *DB) owned(tx database.Tx, name owner.Name) error {
	if db.owns == nil {
		return nil
	}
	return db.owns(tx, name)
}

// Thread reads one row, or fails with ErrUnknown.
func (db *DB) Thread(ctx context.Context, id chat.ThreadID) (journal.Thread, error) {
	found, err := db.threads(ctx, `SELECT `+threadColumns+` FROM threads WHERE id = ?`, string(id))
	if err == nil && len(found) == 0 {
		err = journal.ErrUnknown
	}
	if err != nil {
		return journal.Thread{}, fmt.Errorf("thread %s: %w", id, err)
	}
	return found[0], nil
}

// ThreadFilter narrows a list of threads. Zero fields match everything. Threads
// that agents started are listed only with Parent or Children.
type ThreadFilter struct {
	Parent    chat.ThreadID // those that this thread's agent started
	Children  bool          // all threads that agents started
	Agent     string
	Transport string
	Not       string // any transport but this one
	Place     string
	Status    chat.Status
	Title     string  // part of the title, ignoring case
	Listing   string  // pinned, archived, Deleted, or Unarchived; "": all but deleted and erased ones
	Limit     int     // 0: 100
	Before    *Cursor // only threads after this one in the list
}

// Unarchived lists every thread that was not put away. Deleted lists those that were deleted and
// can be restored. What was said in Erased threads is gone; only their rows are left.
const (
	Unarchived = "unarchived"
	Deleted    = journal.Deleted
	Erased     = journal.Erased
)

// Cursor is a position in a list of threads, newest first.
type Cursor struct {
	LastActive time.Time
	ID         chat.ThreadID
}

// Threads lists threads, last active first.
func (db *DB) Threads(ctx context.Context, f ThreadFilter) ([]journal.Thread, error) {
	var where database.Where
	where.Equal("agent", f.Agent)
	where.Equal("transport", f.Transport)
	if f.Not != "" {
		where.Add("transport <> ?", f.Not)
	}
	where.Equal("place", f.Place)
	if f.Status == chat.Running {
		where.Add("status IN ('running', 'waiting_for_agents')")
	} else {
		where.Equal("status", string(f.Status))
	}
	switch {
	case f.Parent != "":
		where.Equal("parent", string(f.Parent))
	case !f.Children:
		where.Add("parent = ''")
	}
	switch f.Listing {
	case "":
		where.Add("listing NOT IN ('deleted', 'erased')")
	case Unarchived:
		where.Add("listing NOT IN ('archived', 'deleted', 'erased')")
	default:
		where.Equal("listing", f.Listing)
	}
	if f.Title != "" {
		escaped := strings.NewReplacer(`\`, `\\`, `%`, `\%`, `_`, `\_`).Replace(strings.ToLower(f.Title))
		where.Add(`lower(title) LIKE ? ESCAPE '\'`, "%"+escaped+"%")
	}
	if f.Before != nil {
		at := database.Micros(f.Before.LastActive)
		where.Add("(last_active < ? OR last_active = ? AND id > ?)", at, at, string(f.Before.ID))
	}
	query, args := where.On(`SELECT ` + threadColumns + ` FROM threads`)
	found, err := db.threads(ctx, query+` ORDER BY last_active DESC, id LIMIT ?+0`, append(args, database.Limit(f.Limit, 100))...)
	if err != nil {
		return nil, fmt.Errorf("list threads: %w", err)
	}
	return found, nil
}

// HeldIn lists the threads of a platform that are held in a channel, in a thread below it, or in
// the thread with that id. It leaves out threads that agents started and Erased ones.
func (db *DB) HeldIn(ctx context.Context, transport, channel string) ([]chat.ThreadID, error) {
	in := likely(channel)
	out, err := database.List[chat.ThreadID](ctx, db.DB, `SELECT id FROM threads WHERE transport = ? AND parent = '' AND listing <> '`+Erased+`'
		AND (place LIKE ? ESCAPE '\' OR place LIKE ? ESCAPE '\' OR id LIKE ? ESCAPE '\') ORDER BY id`, transport, "%/"+in, "%/"+in+"/%", "%:"+in+"@%")
	if err != nil {
		return nil, fmt.Errorf("list the threads in channel %s: %w", channel, err)
	}
	return out, nil
}

// ActiveThreads lists the threads that have something to do: woken by a guest, or
// with a run that has begun. It reads only the index on them.
func (db *DB) ActiveThreads(ctx context.Context) ([]journal.Thread, error) {
	found, err := db.threads(ctx, `SELECT `+threadColumns+` FROM threads WHERE wake = 1 OR status = 'running'`)
	if err != nil {
		return nil, fmt.Errorf("list active threads: %w", err)
	}
	return found, nil
}

// otherWork are an agent's threads, other than one, in which a run is active.
const otherWork = ` FROM threads WHERE id IN (SELECT id FROM threads WHERE wake = 1 OR status = 'running' UNION SELECT thread_id FROM approvals WHERE state = 'pending')
	AND agent = ? AND id <> ? AND status IN ('running', 'waiting_for_permission', 'waiting_for_agents')`

// OtherWork lists at most so many of an agent's other threads in which a run is active, and counts all of them. Those
// that work in the same folder come first, then those in the same place, then the latest.
func (db *DB) OtherWork(ctx context.Context, than journal.Thread, most int) (list []journal.Thread, all int, err error) {
	args := []any{than.Agent, string(than.ID)}
	list, err = db.threads(ctx, `SELECT `+threadColumns+otherWork+` ORDER BY dir = ? DESC, place = ? DESC, last_active DESC, id LIMIT ?+0`,
		append(args, than.Dir, than.Place, most)...)
	all = len(list)
	if err == nil && all == most {
		var n int64
		n, err = db.Count(ctx, `SELECT count(*)`+otherWork, args...)
		all = int(n)
	}
	if err != nil {
		return nil, 0, fmt.Errorf("list other work of agent %s: %w", than.Agent, err)
	}
	return list, all, nil
}

// ThreadChange is what may be changed about a thread from outside; nil fields stay.
type ThreadChange struct {
	Title   *string
	Dir     *string
	Listing *string // "", pinned, archived or Deleted
}

// SetThread changes what people call a thread, where its tools work, or how lists show it.
func (db *DB) SetThread(ctx context.Context, id chat.ThreadID, c ThreadChange) error {
	err := db.Write(ctx, func(tx database.Tx) error {
		n, err := tx.Change(`UPDATE threads SET title = coalesce(?, title), dir = coalesce(?, dir), listing = coalesce(?, listing) WHERE id = ?`,
			c.Title, c.Dir, c.Listing, string(id))
		if err == nil && n == 0 {
			err = journal.ErrUnknown
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("change thread %s: %w", id, err)
	}
	return nil
}

func (db *DB) threads(ctx context.Context, query string, args ...any) ([]journal.Thread, error) {
	var out []journal.Thread
	err := db.Query(ctx, query, args, database.Collect(&out, scanThread))
	return out, err
}

func scanThread(row database.Scanner) (journal.Thread, error) {
	var t journal.Thread
	var owner string
	var created, active int64
	err := row.Scan(&t.ID, &t.Agent, &t.Place, &owner, &t.Title, &t.Dir, &t.Status,
		&t.Epoch, &t.Next, &t.Waiting, &t.Wake, &created, &active,
		&t.Parent.Thread, &t.Parent.Run, &t.Parent.Call, &t.Parent.Root, &t.Placement, &t.Listing)
	if errors.Is(err, sql.ErrNoRows) {
		return t, journal.ErrUnknown
	}
	if err != nil {
		return t, err
	}
	t.Created, t.LastActive = database.Time(created), database.Time(active)
	return t, json.Unmarshal([]byte(owner), &t.Owner)
}
