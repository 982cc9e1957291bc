package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"

	"chorus/internal/chat"
	"chorus/internal/database"
	"chorus/internal/journal"
	"chorus/internal/owner"
)

const isOpen = `(state = 'planned' OR state = 'sending')`

// OpenLanes returns the lanes of a bot that have something to do.
func (db *DB) OpenLanes(ctx context.Context, platform, bot string) ([]journal.Lane, error) {
	var out []journal.Lane
	err := db.Query(ctx, `SELECT DISTINCT channel FROM outbox WHERE platform = ? AND bot = ? AND `+isOpen+` ORDER BY channel`,
		[]any{platform, bot}, func(rows *sql.Rows) error {
			l := journal.Lane{Platform: platform, Bot: bot}
			err := rows.Scan(&l.Channel)
			out = append(out, l)
			return err
		})
	if err != nil {
		return nil, fmt.Errorf("open lanes of %s:%s: %w", platform, bot, err)
	}
	return out, nil
}

// OpenRows returns what a lane has to do, in order.
func (db *DB) OpenRows(ctx context.Context, lane journal.Lane, limit int) ([]journal.Outgoing, error) {
	out, err := db.outgoing(ctx, ofLane+` AND `+isOpen+` ORDER BY seq LIMIT ?+0`, laneArgs(lane, database.Limit(limit, 100)))
	if err != nil {
		return nil, fmt.Errorf("open rows of lane %s: %w", lane, err)
	}
	return out, nil
}

// Outgoing reads one row, or fails with ErrUnknown.
func (db *DB) Outgoing(ctx context.Context, lane journal.Lane, key string) (journal.Outgoing, error) {
	out, err := db.outgoing(ctx, ofKey, laneArgs(lane, key))
	if err == nil && len(out) == 0 {
		err = journal.ErrUnknown
	}
	if err != nil {
		return journal.Outgoing{}, fmt.Errorf("%s in lane %s: %w", key, lane, err)
	}
	return out[0], nil
}

// OutFilter narrows a list of outgoing things. Zero fields match everything.
type OutFilter struct {
	Platform, Bot, Channel string
	Thread                 chat.ThreadID
	State                  journal.OutState
	Limit                  int
}

// OutgoingFor lists rows for people, and for callers that report what
// could not be posted. The last changed come first.
func (db *DB) OutgoingFor(ctx context.Context, f OutFilter) ([]journal.Outgoing, error) {
	var where database.Where
	where.Add("1 = 1") // so that there is always a condition
	where.Equal("platform", f.Platform)
	where.Equal("bot", f.Bot)
	where.Equal("channel", f.Channel)
	where.Equal("thread_id", string(f.Thread))
	if f.State != "" { // written out, so that the index on failures is used
		where.Add("state = '" + string(f.State) + "'")
	}
	rest, args := where.On("")
	out, err := db.outgoing(ctx, rest[len(" WHERE "):]+` ORDER BY changed DESC, seq DESC LIMIT ?+0`, append(args, database.Limit(f.Limit, 100)))
	if err != nil {
		return nil, fmt.Errorf("list the outbox: %w", err)
	}
	return out, nil
}

func (db *DB) outgoing(ctx context.Context, where string, args []any) ([]journal.Outgoing, error) {
	var out []journal.Outgoing
	err := db.Query(ctx, `SELECT `+outColumns+` FROM outbox WHERE `+where, args, database.Collect(&out, scanOutgoing))
	return out, err
}

func scanOutgoing(row database.Scanner) (o journal.Outgoing, err error) {
	var triedAt, notBefore, alone sql.NullInt64
	var body, tried string
	err = row.Scan(&o.Lane.Platform, &o.Lane.Bot, &o.Lane.Channel, &o.Order, &o.Key, &o.Thread, &o.Seq, &o.Part, &o.Group, &o.Thing,
		&o.Target, &o.TargetKey, &o.Nonce, &o.Final, &o.Gone, &o.Want, &o.Have, &o.ID, &o.Tried, &triedAt, &tried, &o.State,
		&o.Attempts, &notBefore, &alone, &o.Why, &o.Error, &body)
	if triedAt.Valid {
		o.TriedAt = database.Time(triedAt.Int64)
	}
	if notBefore.Valid {
		o.NotBefore = database.Time(notBefore.Int64)
	}
	if alone.Valid {
		o.Alone = database.Time(alone.Int64)
	}
	if body != "" {
		o.Body = json.RawMessage(body)
	}
	if tried != "" {
		o.TriedBody = json.RawMessage(tried)
	}
	return o, err
}

// BeginSend records that a call is about to be made, and returns the row as it is then. If the row
// differs from what the caller has seen (another attempt, another text), it fails with ErrMoved.
//
// Creating a message freezes its content: until the outcome is known, every further attempt
// creates the same, and what is wanted meanwhile becomes an edit.
func (db *DB) BeginSend(ctx context.Context, seen journal.Outgoing) (journal.Outgoing, error) {
	var out journal.Outgoing
	err := db.Write(ctx, func(tx database.Tx) error {
		err := db.owned(tx, owner.Bot(seen.Lane.Platform, seen.Lane.Bot))
		if err != nil {
			return err
		}
		now := database.Micros(db.Now())
		freeze := `tried = want, tried_body = body, tried_at = ?`
		if seen.State == journal.Sending && seen.Tried > 0 && seen.Thing == journal.Message && !seen.Made() {
			freeze = `tried_at = coalesce(tried_at, ?)` // the first attempt may have been the one that succeeded
		}
		out, err = scanOutgoing(tx.One(`UPDATE outbox SET state = 'sending', attempts = attempts + 1, changed = ?, `+freeze+`
			WHERE `+ofKey+` AND `+sayings(tx.OnServer()).noIndex+`state = ? AND attempts = ? AND want = ? AND `+isOpen+` RETURNING `+outColumns, append([]any{now, now},
			laneArgs(seen.Lane, seen.Key, string(seen.State), seen.Attempts, seen.Want)...)...))
		if errors.Is(err, sql.ErrNoRows) {
			return journal.ErrMoved
		}
		return err
	})
	if err != nil {
		return journal.Outgoing{}, fmt.Errorf("begin to send %s in lane %s: %w", seen.Key, seen.Lane, err)
	}
	return out, nil
}

// EndSend records the outcome of a call. Recording it twice changes nothing.
func (db *DB) EndSend(ctx context.Context, o journal.Outcome) error {
	err := db.Write(ctx, func(tx database.Tx) error {
		switch o.State {
		case journal.Sent:
			return db.sent(tx, o)
		case journal.Planned, journal.Sending, journal.Superseded:
			tried := `tried`
			if o.State != journal.Sending {
				tried = `0`
			}
			return tx.Exec(`UPDATE outbox SET state = ?, not_before = ?, alone = ?, why = ?, error = ?, changed = ?, tried = `+tried+
				` WHERE `+ofKey+` AND attempts = ? AND `+isOpen, append([]any{string(o.State), database.NullMicros(o.NotBefore), database.NullMicros(o.Alone), o.Why, o.Error,
				database.Micros(db.Now())}, laneArgs(o.Lane, o.Key, o.Attempt)...)...)
		case journal.Failed:
			return db.failed(tx, o)
		default:
			return fmt.Errorf("no outcome is %q", o.State)
		}
	})
	if err != nil {
		return fmt.Errorf("note what became of %s in lane %s: %w", o.Key, o.Lane, err)
	}
	return nil
}

// sent records a success and, for a new message, where it belongs.
func (db *DB) sent(tx database.Tx, o journal.Outcome) error {
	n, err := tx.Change(`UPDATE outbox SET have = ?, message_id = CASE WHEN message_id = '' THEN ? ELSE message_id END,
			state = CASE WHEN want > ? THEN 'planned' ELSE 'sent' END, attempts = 0, not_before = NULL, alone = NULL, tried = 0, tried_body = '',
			why = '', error = '', changed = ? WHERE `+ofKey+` AND have < ?`,
		append([]any{o.Rev, o.ID, o.Rev, database.Micros(db.Now())}, laneArgs(o.Lane, o.Key, o.Rev)...)...)
	if err != nil || n == 0 {
		return err
	}
	return place(tx, o.Lane, o.Key)
}

// place writes which thread a message of ours belongs to.
func place(tx database.Tx, lane journal.Lane, key string) error {
	// A message that first showed progress and then the answer counts as the answer.
	return tx.Exec(`INSERT INTO message_places (platform, message_id, thread_id, seq, part, bot, channel, key)
		SELECT platform, message_id, thread_id, event, part, bot, channel, key FROM outbox
		WHERE `+ofKey+` AND thread_id <> '' AND message_id <> '' AND gone = 0
		ON CONFLICT (platform, message_id, thread_id) DO UPDATE SET seq = excluded.seq WHERE excluded.seq > message_places.seq`, laneArgs(lane, key)...)
}

// PlaceMessage sets the thread of a message that was posted before the thread existed.
func (db *DB) PlaceMessage(ctx context.Context, lane journal.Lane, key string, thread chat.ThreadID, seq int64) error {
	err := db.Write(ctx, func(tx database.Tx) error {
		if err := tx.Exec(`UPDATE outbox SET thread_id = ?, event = ? WHERE `+ofKey, append([]any{string(thread), seq}, laneArgs(lane, key)...)...); err != nil {
			return err
		}
		return place(tx, lane, key)
	})
	if err != nil {
		return fmt.Errorf("place message %s of lane %s: %w", key, lane, err)
	}
	return nil
}

// failed gives up a row and everything of its group that has not been made yet.
func (db *DB) failed(tx database.Tx, o journal.Outcome) error {
	now := database.Micros(db.Now())
	n, err := tx.Change(`UPDATE outbox SET state = 'failed', not_before = NULL, tried = 0, tried_body = '', why = ?, error = ?, changed = ?
		WHERE `+ofKey+` AND attempts = ? AND `+isOpen, append([]any{o.Why, o.Error, now}, laneArgs(o.Lane, o.Key, o.Attempt)...)...)
	if err != nil || n == 0 {
		return err
	}
	return tx.Exec(`UPDATE outbox SET state = 'failed', not_before = NULL, why = ?, error = ?, changed = ?
		WHERE `+ofLane+` AND state = 'planned' AND thing = 'message' AND message_id = '' AND target = ''
		AND team <> '' AND team = (SELECT team FROM outbox WHERE `+ofKey+` AND message_id = '' AND target = '' AND thing = 'message')
		AND seq > (SELECT seq FROM outbox WHERE `+ofKey+`)`,
		append(append(append([]any{o.Why, o.Error, now}, laneArgs(o.Lane)...), laneArgs(o.Lane, o.Key)...), laneArgs(o.Lane, o.Key)...)...)
}

// Echo records that a message of ours was seen on the platform, whoever reported it, since
// the response to the call may have been lost. It returns the lane that may continue. A
// message that is not ours, or already known, changes nothing.
func (db *DB) Echo(ctx context.Context, platform, bot, nonce, messageID string) (lane journal.Lane, ours bool, err error) {
	err = db.Write(ctx, func(tx database.Tx) error {
		lane, ours = journal.Lane{Platform: platform, Bot: bot}, false
		var key string
		var tried int64
		err := tx.Row(`SELECT channel, key, tried FROM outbox WHERE platform = ? AND bot = ? AND nonce = ?
			AND state = 'sending' AND message_id = '' AND target = '' AND thing = 'message'`, []any{platform, bot, nonce}, &lane.Channel, &key, &tried)
		if errors.Is(err, sql.ErrNoRows) {
			return nil
		}
		if err != nil {
			return err
		}
		ours = true
		return db.sent(tx, journal.Outcome{Lane: lane, Key: key, Rev: tried, ID: messageID})
	})
	if err != nil {
		return journal.Lane{}, false, fmt.Errorf("note message %s: %w", messageID, err)
	}
	return lane, ours, nil
}

// LastMade returns the id of the newest message that the lane made before a place. A
// message that is searched for after that place is never older.
func (db *DB) LastMade(ctx context.Context, lane journal.Lane, before int64) (string, error) {
	var id string
	err := db.Query(ctx, `SELECT message_id FROM outbox WHERE `+ofLane+` AND seq < ? AND message_id <> '' ORDER BY seq DESC LIMIT 1`,
		laneArgs(lane, before), func(rows *sql.Rows) error { return rows.Scan(&id) })
	if err != nil {
		return "", fmt.Errorf("last message of lane %s: %w", lane, err)
	}
	return id, nil
}
