package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"chorus/internal/chat"
	"chorus/internal/database"
	"chorus/internal/ledger"
)

// SavedContext describes a conversation that was saved to be continued later. The file has all of it.
type SavedContext struct {
	ID          string
	Agent       string
	Transport   string
	Place       string
	Description string
	Summary     string
	By          string // who had it saved
	At          time.Time
	Messages    int
	From, Until time.Time // of the first and the last message
	File        string
	Quiet       time.Time // since when nobody had spoken; zero if somebody asked to save it
}

const contextColumns = `id, agent, transport, place, description, summary, saved_by, saved_at, message_count, window_start, window_end, file_path, quiet`

// beginning is the kind of the memos of contexts that are being saved, by id: each names the file, and says when that began.
// In one whose time is 0 whoever saves it has to give up, because it is being removed.
const beginning = "context_begun"

// ErrContextLeft means that a context is being removed because saving it was interrupted, or seemed to be.
var ErrContextLeft = errors.New("it is being removed because saving it took too long")

// BeginContext records that a context is about to be saved, before anything of it is written: if whoever saves it is
// killed, LeftContexts finds it. KeepContext ends this, or EndContext if it is not kept. A second attempt at the same id begins again.
func (db *DB) BeginContext(ctx context.Context, id, file string) error {
	err := db.Write(ctx, func(tx database.Tx) error {
		n, err := tx.Change(`INSERT INTO memos (kind, key, value, at) VALUES (?, ?, ?, ?)
			ON CONFLICT (kind, key) DO UPDATE SET value = excluded.value, at = excluded.at WHERE memos.at > 0`, beginning, id, file, database.Micros(db.Now()))
		if err == nil && n == 0 {
			err = ErrContextLeft
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("begin to save context %s: %w", id, err)
	}
	return nil
}

// KeepContext writes the row of a saved context, and ends what BeginContext began. A context of a quiet time is kept only once:
// false means that there is already one for that time or with that id, and nothing was written.
func (db *DB) KeepContext(ctx context.Context, c SavedContext) (bool, error) {
	var kept int64
	err := db.Write(ctx, func(tx database.Tx) (err error) {
		var quiet any
		if !c.Quiet.IsZero() {
			quiet = database.Micros(c.Quiet)
		}
		kept, err = tx.Change(`INSERT INTO saved_contexts (`+contextColumns+`) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING`,
			c.ID, c.Agent, c.Transport, c.Place, c.Description, c.Summary, c.By, database.Micros(c.At), c.Messages, database.Micros(c.From), database.Micros(c.Until), c.File, quiet)
		if err != nil || kept == 0 {
			return err
		}
		// Both change one row, so either this or LeftContexts comes first, in whatever processes they run.
		n, err := tx.Change(`DELETE FROM memos WHERE kind = ? AND key = ? AND at > 0`, beginning, c.ID)
		if err == nil && n == 0 {
			err = ErrContextLeft
		}
		return err
	})
	if err != nil {
		return false, fmt.Errorf("keep context %s: %w", c.ID, err)
	}
	return kept == 1, nil
}

// EndContext records that nothing is left of a context that was not kept.
func (db *DB) EndContext(ctx context.Context, id string) error { return db.Forget(ctx, beginning, id) }

// LeftContexts returns contexts, with their id and file only, that somebody began to save before a time and did not keep.
// Whoever still saves one of them can no longer keep it. They are returned again until EndContext is called.
func (db *DB) LeftContexts(ctx context.Context, before time.Time) (left []SavedContext, err error) {
	err = db.Write(ctx, func(tx database.Tx) error {
		left = nil
		// Somebody else kept it under the same id.
		if err := tx.Exec(`DELETE FROM memos WHERE kind = ? AND at < ? AND key IN (SELECT id FROM saved_contexts)`, beginning, database.Micros(before)); err != nil {
			return err
		}
		if err := tx.Exec(`UPDATE memos SET at = 0 WHERE kind = ? AND at < ?`, beginning, database.Micros(before)); err != nil {
			return err
		}
		return tx.Rows(`SELECT key, value FROM memos WHERE kind = ? AND at = 0 ORDER BY key`, []any{beginning}, database.Fill(&left, func(rows *sql.Rows, c *SavedContext) error {
			return rows.Scan(&c.ID, &c.File)
		}))
	})
	if err != nil {
		return nil, fmt.Errorf("list contexts that were not saved: %w", err)
	}
	return left, nil
}

// CountLeftContexts counts what LeftContexts would return.
func (db *DB) CountLeftContexts(ctx context.Context, before time.Time) (int64, error) {
	n, err := db.Count(ctx, `SELECT count(*) FROM memos WHERE kind = ? AND at < ? AND key NOT IN (SELECT id FROM saved_contexts)`, beginning, database.Micros(before))
	if err != nil {
		return 0, fmt.Errorf("count contexts that were not saved: %w", err)
	}
	return n, nil
}

// DropContext removes the row of a saved context.
func (db *DB) DropContext(ctx context.Context, id string) error {
	err := db.Write(ctx, func(tx database.Tx) error { return tx.Exec(`DELETE FROM saved_contexts WHERE id = ?`, id) })
	if err != nil {
		return fmt.Errorf("drop context %s: %w", id, err)
	}
	return nil
}

// ContextFilter narrows a list of saved contexts. Zero fields match everything.
type ContextFilter struct {
	Agent     string
	Transport string
	Place     string
	By        string // who had it saved
	Prefix    string // prefix of the id
	Quiet     time.Time
	Limit     int // 0: 50
}

// SavedContexts lists saved contexts, newest first.
func (db *DB) SavedContexts(ctx context.Context, f ContextFilter) ([]SavedContext, error) {
	var where database.Where
	where.Equal("agent", f.Agent)
	where.Equal("transport", f.Transport)
	where.Equal("place", f.Place)
	where.Equal("saved_by", f.By)
	where.Begins("id", f.Prefix)
	if !f.Quiet.IsZero() {
		where.Add("quiet = ?", database.Micros(f.Quiet))
	}
	query, args := where.On(`SELECT ` + contextColumns + ` FROM saved_contexts`)
	var out []SavedContext
	err := db.Query(ctx, query+` ORDER BY saved_at DESC, id LIMIT ?+0`, append(args, database.Limit(f.Limit, 50)), database.Fill(&out, func(rows *sql.Rows, c *SavedContext) error {
		var at, from, until int64
		var quiet sql.NullInt64
		err := rows.Scan(&c.ID, &c.Agent, &c.Transport, &c.Place, &c.Description, &c.Summary, &c.By, &at, &c.Messages, &from, &until, &c.File, &quiet)
		c.At, c.From, c.Until = database.Time(at), database.Time(from), database.Time(until)
		if quiet.Valid {
			c.Quiet = database.Time(quiet.Int64)
		}
		return err
	}))
	if err != nil {
		return nil, fmt.Errorf("list saved contexts: %w", err)
	}
	return out, nil
}

// PlaceActivity says when anything last happened in the conversations of a place.
type PlaceActivity struct {
	Agent  string
	Place  string
	Last   time.Time
	Active int // conversations with a run or with waiting prompts
}

// LastActivity returns the last activity of every place of a transport, for each agent in it.
func (db *DB) LastActivity(ctx context.Context, transport string) ([]PlaceActivity, error) {
	var out []PlaceActivity
	err := db.Query(ctx, `SELECT agent, place, max(last_active),
			sum(CASE WHEN status IN ('running', 'waiting_for_permission', 'waiting_for_agents') OR waiting > 0 THEN 1 ELSE 0 END)
		FROM threads WHERE transport = ? GROUP BY agent, place ORDER BY agent, place`, []any{transport}, database.Fill(&out, func(rows *sql.Rows, p *PlaceActivity) error {
		var last int64
		err := rows.Scan(&p.Agent, &p.Place, &last, &p.Active)
		p.Last = database.Time(last)
		return err
	}))
	if err != nil {
		return nil, fmt.Errorf("when the places of %s last moved: %w", transport, err)
	}
	return out, nil
}

// Charge writes the cost of a model call that belongs to no run: first the most it may cost,
// under its ceilings, then what it did cost. It does not change the thread.
func (db *DB) Charge(ctx context.Context, thread chat.ThreadID, e ledger.Entry, under *ledger.Ceilings) error {
	err := db.Write(ctx, func(tx database.Tx) error { return writeMoney(tx, thread, e, under, database.Micros(db.Now())) })
	if err != nil {
		return fmt.Errorf("charge a call of thread %s: %w", thread, err)
	}
	return nil
}
