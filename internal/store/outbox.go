package store

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"

	"chorus/internal/database"
	"chorus/internal/journal"
)

const (
	ofLane = `platform = ? AND bot = ? AND channel = ?`
	ofKey  = ofLane + ` AND key = ?`

	outColumns = `platform, bot, channel, seq, key, thread_id, event, part, team, thing, target, target_key, nonce, final, gone,
		want, have, message_id, tried, tried_at, tried_body, state, attempts, not_before, alone, why, error, body`
)

func laneArgs(l journal.Lane, more ...any) []any {
	return append([]any{l.Platform, l.Bot, l.Channel}, more...)
}

// SetDesired writes what is wanted without an event. Writing the same again changes nothing.
func (db *DB) SetDesired(ctx context.Context, list ...journal.Desired) error {
	err := checkDesired(list)
	if err == nil {
		err = db.Write(ctx, func(tx database.Tx) error { return db.writeDesired(tx, list) })
	}
	if err != nil {
		return fmt.Errorf("write to the outbox: %w", err)
	}
	return nil
}

// Plan takes one step of a durable reader: what is wanted and the reader's position, in one
// transaction. If the reader is no longer at From, Plan fails with ErrMoved and writes nothing.
func (db *DB) Plan(ctx context.Context, p journal.Plan) error {
	err := checkDesired(p.Desired)
	if err == nil && p.UpTo < p.From {
		err = fmt.Errorf("a reader never moves back, from %d to %d", p.From, p.UpTo)
	}
	if err == nil {
		err = db.Write(ctx, func(tx database.Tx) error { return db.plan(tx, p) })
	}
	if err != nil {
		return fmt.Errorf("plan of reader %s in thread %s: %w", p.Reader, p.Thread, err)
	}
	return nil
}

func (db *DB) plan(tx database.Tx, p journal.Plan) error {
	var next, at int64
	err := tx.Row(`SELECT t.next_seq, coalesce(r.seq, 0) FROM threads t
		LEFT JOIN readers r ON r.thread_id = t.id AND r.reader = ? WHERE t.id = ?`, []any{p.Reader, string(p.Thread)}, &next, &at)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return journal.ErrUnknown
	case err != nil:
		return err
	case at != p.From:
		return journal.ErrMoved
	case p.UpTo >= next:
		return fmt.Errorf("there is no event %d", p.UpTo)
	}
	n, err := tx.Change(`INSERT INTO readers (reader, thread_id, seq) VALUES (?, ?, ?)
		ON CONFLICT (reader, thread_id) DO UPDATE SET seq = excluded.seq WHERE readers.seq = ?`, p.Reader, string(p.Thread), p.UpTo, p.From)
	switch {
	case err != nil:
		return err
	case n == 0: // another process was just faster
		return journal.ErrMoved
	}
	return db.writeDesired(tx, p.Desired)
}

func checkDesired(list []journal.Desired) error {
	for _, d := range list {
		switch {
		case d.Lane.Platform == "" || d.Lane.Bot == "" || d.Lane.Channel == "" || d.Key == "":
			return fmt.Errorf("entry %q in lane %s: platform, bot, channel and key are needed", d.Key, d.Lane)
		case d.Thing != "" && d.Thing != journal.Message && d.Thing != journal.Reaction:
			return fmt.Errorf("entry %q in lane %s: what is a %q", d.Key, d.Lane, d.Thing)
		case d.Thing == journal.Reaction && d.Target == "" && d.TargetKey == "":
			return fmt.Errorf("entry %q in lane %s: a reaction needs a message", d.Key, d.Lane)
		case d.Thing != journal.Reaction && d.TargetKey != "":
			return fmt.Errorf("entry %q in lane %s: a message of ours is changed by its own key", d.Key, d.Lane)
		case !d.Gone && !json.Valid(d.Body):
			return fmt.Errorf("entry %q in lane %s: its body is not JSON", d.Key, d.Lane)
		}
	}
	return nil
}

func (db *DB) writeDesired(tx database.Tx, list []journal.Desired) error {
	for _, d := range list {
		d.Thing = cmp.Or(d.Thing, journal.Message)
		if err := db.writeOne(tx, d); err != nil {
			return err
		}
	}
	return nil
}

// writeOne writes one of them. A change makes a new revision and reopens what was sent, failed or
// given up. If the thing should not exist, a different body is not a change, but the body is kept,
// because removing a reaction needs it. The final text counts as a change even if it is the same,
// because previews may have been shown in between.
func (db *DB) writeOne(tx database.Tx, d journal.Desired) error {
	now := database.Micros(db.Now())
	n, err := tx.Change(`UPDATE outbox SET event = ?, final = ?, gone = ?, body = CASE WHEN ? = '' THEN body ELSE ? END, part = ?, want = want + 1, changed = ?,
			state = CASE WHEN state = 'sending' THEN state ELSE 'planned' END,
			attempts = CASE WHEN state = 'failed' THEN 0 ELSE attempts END,
			not_before = CASE WHEN state = 'failed' THEN NULL ELSE not_before END,
			alone = CASE WHEN state = 'failed' OR message_id <> '' THEN NULL ELSE alone END, why = '', error = ''
		WHERE `+ofKey+` AND event <= ? AND (gone <> ? OR (body <> ? AND gone = 0) OR (final < ? AND (have > 0 OR tried > 0)))`,
		append([]any{d.Seq, database.Flag(d.Final), database.Flag(d.Gone), string(d.Body), string(d.Body), d.Part, now}, laneArgs(d.Lane, d.Key, d.Seq, database.Flag(d.Gone), string(d.Body), database.Flag(d.Final))...)...)
	if err != nil || n > 0 {
		return err
	}
	// The same, an older one, or the first.
	n, err = tx.Change(`UPDATE outbox SET event = CASE WHEN event < ? THEN ? ELSE event END,
		final = CASE WHEN event <= ? AND ? = 1 THEN 1 ELSE final END WHERE `+ofKey,
		append([]any{d.Seq, d.Seq, d.Seq, database.Flag(d.Final)}, laneArgs(d.Lane, d.Key)...)...)
	if err != nil || n > 0 {
		return err
	}
	var place int64
	err = tx.Row(`INSERT INTO lanes (platform, bot, channel, next_seq) VALUES (?, ?, ?, 2)
		ON CONFLICT (platform, bot, channel) DO UPDATE SET next_seq = lanes.next_seq + 1 RETURNING next_seq - 1`, laneArgs(d.Lane), &place)
	if err != nil {
		return err
	}
	state := journal.Planned
	if d.Gone && (d.Thing == journal.Reaction || d.Target == "") {
		state = journal.Superseded // there is nothing to do, and what an older one asks for never will be done
	}
	n, err = tx.Change(`INSERT INTO outbox (platform, bot, channel, seq, key, thread_id, event, part, team, thing, target, target_key,
		nonce, final, gone, created, changed, body, state) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
		ON CONFLICT (platform, bot, channel, key) DO NOTHING`,
		laneArgs(d.Lane, place, d.Key, string(d.Thread), d.Seq, d.Part, d.Group, string(d.Thing), d.Target, d.TargetKey,
			d.Lane.Nonce(d.Key), database.Flag(d.Final), database.Flag(d.Gone), now, now, string(d.Body), string(state))...)
	if err == nil && n == 0 { // another node was just faster, and this changes its row
		return db.writeOne(tx, d)
	}
	return err
}
