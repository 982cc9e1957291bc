package store

import (
	"context"
	"database/sql"
	"fmt"
	"iter"

	"chorus/internal/chat"
	"chorus/internal/database"
	"chorus/internal/journal"
)

// maxPage is how many events one read returns at most. No statement stays open longer than
// one page; otherwise the write-ahead log could grow without limit.
const maxPage = 500

// pageBytes ends a page of AllEvents early, so that a thread full of long
// results never has five hundred of them in memory at a time.
const pageBytes = 1 << 20

const eventColumns = `seq, at, kind, run_id, who, body, platform, platform_id, version`

// Events reads the events after number after, in order, at most limit and never
// more than 500. Fewer than that means that there are no more.
func (db *DB) Events(ctx context.Context, thread chat.ThreadID, after int64, limit int) ([]chat.Event, error) {
	if limit <= 0 || limit > maxPage {
		limit = maxPage
	}
	out, _, err := db.page(ctx, thread, after, limit, 0)
	return out, err
}

// AllEvents reads everything after number after, page by page. Nothing is
// open while it yields. It ends after the first error.
func (db *DB) AllEvents(ctx context.Context, thread chat.ThreadID, after int64) iter.Seq2[chat.Event, error] {
	return func(yield func(chat.Event, error) bool) {
		for more := true; more; {
			var page []chat.Event
			var err error
			page, more, err = db.page(ctx, thread, after, maxPage, pageBytes)
			if err != nil {
				yield(chat.Event{}, err)
				return
			}
			for _, e := range page {
				after = e.Seq
				if !yield(e, nil) {
					return
				}
			}
		}
	}
}

// page reads up to limit events or, with bytes > 0, until their bodies have reached that
// size. more tells whether it stopped for one of these reasons.
func (db *DB) page(ctx context.Context, thread chat.ThreadID, after int64, limit, bytes int) (out []chat.Event, more bool, err error) {
	size := 0
	err = db.Query(ctx, `SELECT `+eventColumns+` FROM events WHERE thread_id = ? AND seq > ? ORDER BY seq LIMIT ?+0`,
		[]any{string(thread), after, limit}, func(rows *sql.Rows) error {
			e, n, err := scanEvent(rows, thread)
			if err != nil {
				return err
			}
			out = append(out, e)
			if size += n; bytes > 0 && size >= bytes {
				return errPageFull
			}
			return nil
		})
	switch {
	case err == errPageFull:
		return out, true, nil
	case err != nil:
		return nil, false, fmt.Errorf("read events of thread %s: %w", thread, err)
	}
	return out, len(out) == limit, nil
}

type pageFull struct{}

func (pageFull) Error() string { return "page full" }

var errPageFull error = pageFull{}

func scanEvent(row database.Scanner, thread chat.ThreadID) (chat.Event, int, error) {
	e := chat.Event{Thread: thread}
	var at int64
	var kind chat.Kind
	var body string
	err := row.Scan(&e.Seq, &at, &kind, &e.Run, &e.Who, &body, &e.Platform, &e.PlatformID, &e.Version)
	if err != nil {
		return e, 0, err
	}
	e.At = database.Time(at)
	e.Body, err = chat.DecodeBody(kind, []byte(body))
	if err != nil {
		return e, 0, fmt.Errorf("event %d: %w", e.Seq, err)
	}
	return e, len(body), nil
}

// Find reads the event that mirrors something on a platform, or fails with ErrUnknown.
// Guests use it when they do not know what became of a commit.
func (db *DB) Find(ctx context.Context, thread chat.ThreadID, platform, platformID string, kind chat.Kind, version int) (chat.Event, error) {
	var out chat.Event
	found := false
	err := db.Query(ctx, `SELECT `+eventColumns+` FROM events WHERE thread_id = ? AND platform = ? AND platform_id = ?
		AND `+db.says.noIndex+`kind = ? AND version = ? AND platform_id <> ''`,
		[]any{string(thread), platform, platformID, string(kind), version}, func(rows *sql.Rows) (err error) {
			out, _, err = scanEvent(rows, thread)
			found = true
			return err
		})
	if err == nil && !found {
		err = journal.ErrUnknown
	}
	if err != nil {
		return chat.Event{}, fmt.Errorf("find %s %s in thread %s: %w", kind, platformID, thread, err)
	}
	return out, nil
}
