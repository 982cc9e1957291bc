package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"

	"chorus/internal/chat"
	"chorus/internal/database"
	"chorus/internal/store/blobs"
)

// erasePage is how many events one transaction of an erasure handles.
const erasePage = 200

// erasedRows removes the rows of a thread, other than its events, that hold what was said
// or done in it. What remains has numbers, prices, names of people and programs, and
// hashes. The ledger, the audit log and their sums are kept forever, and so is the
// thread's own row, so that nobody gets its name again.
var erasedRows = []string{
	`DELETE FROM snapshots WHERE thread_id = ?`,
	`DELETE FROM answers WHERE approval_id IN (SELECT id FROM approvals WHERE thread_id = ?)`,
	`DELETE FROM approvals WHERE thread_id = ?`,
	`DELETE FROM schedule_runs WHERE schedule_id IN (SELECT id FROM schedules WHERE thread_id = ?)`,
	`DELETE FROM schedules WHERE thread_id = ?`,
	`DELETE FROM process_fires WHERE process_id IN (SELECT id FROM processes WHERE thread_id = ? AND ended_at IS NOT NULL)`,
	`UPDATE processes SET command = '', dir = '', why = '', hooks = '[]' WHERE thread_id = ? AND ended_at IS NOT NULL`, // the row says when its output can be removed
	`DELETE FROM settings WHERE scope = 'thread' AND key = ?`,
	`DELETE FROM outbox WHERE thread_id = ? AND state IN ('sent', 'superseded', 'failed')`, // what is still to be sent is removed once it is sent
	`UPDATE threads SET title = '', dir = '' WHERE id = ?`,
}

// Unsent counts what of a thread still has to be shown on a platform.
func (db *DB) Unsent(ctx context.Context, id chat.ThreadID) (int64, error) {
	return db.Count(ctx, `SELECT count(*) FROM outbox WHERE thread_id = ? AND state NOT IN ('sent', 'superseded', 'failed')`, string(id))
}

// BringBack restores a deleted thread with the given listing. It returns
// false if the thread is not deleted, or was erased.
func (db *DB) BringBack(ctx context.Context, id chat.ThreadID, listing string) (back bool, err error) {
	err = db.Write(ctx, func(tx database.Tx) error {
		n, err := tx.Change(`UPDATE threads SET listing = ? WHERE id = ? AND listing = '`+Deleted+`'`, listing, string(id))
		back = n > 0
		return err
	})
	if err != nil {
		return false, fmt.Errorf("bring thread %s back: %w", id, err)
	}
	return back, nil
}

// BeginErasing makes sure that nobody can restore or write to a deleted thread and those that its
// agents started. Processes that run them are fenced off, and calls whose end nobody will write
// count as spent. It returns all of them, or none if the thread is not deleted.
func (db *DB) BeginErasing(ctx context.Context, id chat.ThreadID) (all []chat.ThreadID, err error) {
	err = db.Write(ctx, func(tx database.Tx) error {
		all = nil
		n, err := tx.Change(`UPDATE threads SET listing = '`+Erased+`' WHERE id = ? AND listing IN ('`+Deleted+`', '`+Erased+`')`, string(id))
		if err != nil || n == 0 {
			return err
		}
		all = append(all, id)
		err = tx.Rows(`WITH RECURSIVE below(id) AS (SELECT id FROM threads WHERE parent = ? AND parent <> ''
			UNION SELECT t.id FROM threads t JOIN below ON t.parent = below.id WHERE t.parent <> '') SELECT id FROM below`, []any{string(id)}, database.Column(&all))
		if err != nil {
			return err
		}
		for _, thread := range all {
			if err := tx.Exec(`UPDATE threads SET listing = '`+Erased+`', epoch = epoch + 1, waiting = 0, wake = 0, status = ? WHERE id = ?`, string(chat.Idle), string(thread)); err != nil {
				return err
			}
			if err := tx.Exec(assumeThread, database.Micros(db.Now()), string(thread)); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("begin to erase thread %s: %w", id, err)
	}
	return all, nil
}

// Erase removes from the database everything that was said and done in a thread, after BeginErasing
// was called for it. Its events remain as numbers with times, as if each had only cleared the
// window: readers rely on journals without gaps, and there is a guard on the number of the last
// event. It can be repeated and continues where it was interrupted. It returns false if a process
// that an agent left running is still running, and is therefore kept.
func (db *DB) Erase(ctx context.Context, id chat.ThreadID) (whole bool, err error) {
	if err = db.Overwriting(ctx, func() error { whole, err = db.erase(ctx, id); return err }); err != nil {
		return false, fmt.Errorf("erase thread %s: %w", id, err)
	}
	return whole, nil
}

func (db *DB) erase(ctx context.Context, id chat.ThreadID) (whole bool, err error) {
	row, err := db.Thread(ctx, id)
	if err != nil {
		return false, err
	}
	if row.Listing != Erased {
		return false, errors.New("it was not deleted")
	}
	for from := int64(1); from < row.Next; from += erasePage {
		var left []blobs.Leaving
		err := db.Write(ctx, func(tx database.Tx) (err error) {
			left, err = db.eraseEvents(tx, id, from, from+erasePage)
			return err
		})
		if err != nil {
			return false, err
		}
		db.RemoveBlobsSoon(ctx, left)
	}
	if err := db.EraseIndexed(ctx, id); err != nil {
		return false, err
	}
	var running int64
	err = db.Write(ctx, func(tx database.Tx) error {
		if err := tx.Row(`SELECT count(*) FROM processes WHERE thread_id = ? AND ended_at IS NULL`, []any{string(id)}, &running); err != nil {
			return err
		}
		for _, statement := range erasedRows {
			if err := tx.Exec(statement, string(id)); err != nil {
				return err
			}
		}
		// Answers that are repeated for the same request are kept for a day.
		return tx.Exec(`DELETE FROM kept_answers WHERE at <= ? OR body LIKE ? ESCAPE '\'`, database.Micros(db.Now().Add(-KeepAnswersFor)), "%"+likely(id.Thread())+"%")
	})
	return running == 0, err
}

// likely escapes a text so that LIKE matches exactly it.
func likely(s string) string { return strings.NewReplacer(`\`, `\\`, `%`, `\%`, `_`, `\_`).Replace(s) }

// eraseEvents empties the events with these numbers and removes the bytes that only they referred to.
func (db *DB) eraseEvents(tx database.Tx, id chat.ThreadID, from, to int64) ([]blobs.Leaving, error) {
	type event struct {
		seq  int64
		kind chat.Kind
		body string
	}
	var page []event
	err := tx.Rows(`SELECT seq, kind, body FROM events WHERE thread_id = ? AND seq >= ? AND seq < ?`, []any{string(id), from, to}, database.Fill(&page, func(rows *sql.Rows, e *event) error {
		return rows.Scan(&e.seq, &e.kind, &e.body)
	}))
	if err != nil {
		return nil, err
	}
	var hashes []string
	for _, e := range page {
		var refs []string
		body, err := chat.DecodeBody(e.kind, []byte(e.body))
		if err == nil {
			refs = blobRefs(body)
		} else if refs, err = refsOf(tx, id, e.seq); err != nil { // damaged, or from a newer version
			return nil, err
		}
		for _, hash := range refs {
			if err := tx.Exec(`DELETE FROM event_blobs WHERE hash = ? AND thread_id = ? AND seq = ?`, hash, string(id), e.seq); err != nil {
				return nil, err
			}
		}
		hashes = append(hashes, refs...)
	}
	err = tx.Exec(`UPDATE events SET kind = ?, body = '{}', run_id = '', who = '', platform = '', platform_id = '', version = 0, taken = NULL
		WHERE thread_id = ? AND seq >= ? AND seq < ?`, string(chat.KindCleared), string(id), from, to)
	if err != nil {
		return nil, err
	}
	return db.removeBlobs(tx, hashes)
}

// refsOf returns the hashes of the bytes that an event refers to, without reading the event.
func refsOf(tx database.Tx, id chat.ThreadID, seq int64) (out []string, err error) {
	err = tx.Rows(`SELECT hash FROM event_blobs WHERE thread_id = ? AND seq = ?`, []any{string(id), seq}, database.Column(&out))
	return out, err
}

// DropBlobs removes bytes that nothing refers to, however new they are.
func (db *DB) DropBlobs(ctx context.Context, hashes []string) error {
	var left []blobs.Leaving
	err := db.Write(ctx, func(tx database.Tx) (err error) {
		left, err = db.removeBlobs(tx, hashes)
		return err
	})
	if err != nil {
		return fmt.Errorf("remove bytes: %w", err)
	}
	db.RemoveBlobsSoon(ctx, left)
	return nil
}

// removeBlobs removes those that nothing refers to.
func (db *DB) removeBlobs(tx database.Tx, hashes []string) (out []blobs.Leaving, err error) {
	for _, hash := range hashes {
		left, err := db.RemoveBlob(tx, hash, database.Micros(tx.Now()))
		if err != nil {
			return nil, err
		}
		out = append(out, left...)
	}
	return out, nil
}

// WorkIn reports whether threads other than this one work in a folder or below it.
func (db *DB) WorkIn(ctx context.Context, dir string, but chat.ThreadID) (bool, error) {
	n, err := db.Count(ctx, `SELECT count(*) FROM threads WHERE id <> ? AND (dir = ? OR dir LIKE ? ESCAPE '\')`, string(but), dir, likely(dir)+"/%")
	if err != nil {
		return false, fmt.Errorf("who works in %s: %w", dir, err)
	}
	return n > 0, nil
}
