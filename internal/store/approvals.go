package store

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"chorus/internal/approval"
	"chorus/internal/chat"
	"chorus/internal/database"
	"chorus/internal/journal"
)

// writeApproval makes one change to the approvals. An answer counts only while the
// approval is open: the first one wins, and later ones get ErrSettled.
func writeApproval(tx database.Tx, thread chat.ThreadID, c approval.Change, now int64) error {
	if c.New != nil {
		if err := insertApproval(tx, thread, *c.New, now); err != nil {
			return err
		}
	}
	if c.Vote != nil {
		if err := writeVote(tx, thread, *c.Vote, now); err != nil {
			return err
		}
	}
	if c.Remind != "" {
		n, err := tx.Change(`UPDATE approvals SET remind = NULL
			WHERE id = ? AND thread_id = ? AND state = 'pending' AND remind IS NOT NULL`, c.Remind, string(thread))
		if err != nil || n == 0 {
			return cmp.Or(err, notOpen(tx, thread, c.Remind))
		}
	}
	if c.Answer != nil {
		if err := answerApproval(tx, thread, *c.Answer, now); err != nil {
			return err
		}
	}
	if c.CancelRun != "" {
		return tx.Exec(`UPDATE approvals SET state = 'cancelled', answered_at = ?
			WHERE thread_id = ? AND run_id = ? AND state = 'pending'`, now, string(thread), c.CancelRun)
	}
	return nil
}

func insertApproval(tx database.Tx, thread chat.ThreadID, a approval.Approval, now int64) error {
	if a.ID == "" {
		return errors.New("approval without an id")
	}
	if a.Thread != "" && a.Thread != thread {
		return fmt.Errorf("approval %s belongs to thread %s", a.ID, a.Thread)
	}
	asked := now
	if !a.AskedAt.IsZero() {
		asked = database.Micros(a.AskedAt)
	}
	call, err := database.AsJSON(chat.Blocks{a.Call})
	if err != nil {
		return err
	}
	actions, err := database.AsJSON(a.Actions)
	if err != nil {
		return err
	}
	parts := ""
	if len(a.Parts) > 0 {
		if parts, err = database.AsJSON(a.Parts); err != nil {
			return err
		}
	}
	fields := ""
	if len(a.Fields) > 0 {
		if fields, err = database.AsJSON(a.Fields); err != nil {
			return err
		}
	}
	by, err := database.AsJSON(a.AskedBy)
	if err != nil {
		return err
	}
	payer, err := database.AsJSON(a.Payer)
	if err != nil {
		return err
	}
	return tx.Insert(fmt.Errorf("approval %s: %w", a.ID, journal.ErrDuplicate), `INSERT INTO approvals (id, thread_id, run_id, call_id, call, actions, dir, bound, preview, risk, risk_why, parts, fields, rule, reason, again,
			asked_by, payer, asked_at, deadline, remind, who) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		a.ID, string(thread), a.Run, a.Call.ID, call, actions, a.Dir, string(a.Bound), a.Preview, a.Risk, a.RiskWhy, parts, fields, a.Rule, a.Reason, a.Again,
		by, payer, asked, database.NullMicros(a.Deadline), database.NullMicros(a.Remind), a.Who)
}

func answerApproval(tx database.Tx, thread chat.ThreadID, a approval.Answer, now int64) error {
	switch a.State {
	case approval.Approved, approval.Refused, approval.Expired, approval.Cancelled:
	default:
		return fmt.Errorf("approval %s cannot be answered with %q", a.ID, a.State)
	}
	n, err := tx.Change(`UPDATE approvals SET state = ?, answered_by = ?, answered_at = ?, note = ?
		WHERE id = ? AND thread_id = ? AND state = 'pending'`,
		string(a.State), a.By, now, a.Note, a.ID, string(thread))
	if err != nil || n == 1 {
		return err
	}
	return notOpen(tx, thread, a.ID)
}

// notOpen says why an approval could not be changed.
func notOpen(tx database.Tx, thread chat.ThreadID, id string) error {
	var there int
	err := tx.Row(`SELECT count(*) FROM approvals WHERE id = ? AND thread_id = ?`, []any{id, string(thread)}, &there)
	switch {
	case err != nil:
		return err
	case there == 0:
		return fmt.Errorf("approval %s: %w", id, journal.ErrUnknown)
	default:
		return fmt.Errorf("approval %s: %w", id, journal.ErrSettled)
	}
}

// writeVote stores one person's answer to an open approval. The caller has decided based on
// the votes it had seen; with more votes it might decide differently.
func writeVote(tx database.Tx, thread chat.ThreadID, v approval.Ballot, now int64) error {
	var open, votes int
	err := tx.Row(`SELECT (SELECT count(*) FROM approvals WHERE id = ? AND thread_id = ? AND state = 'pending'),
		(SELECT count(*) FROM answers WHERE approval_id = ?)`, []any{v.ID, string(thread), v.ID}, &open, &votes)
	switch {
	case err != nil:
		return err
	case open == 0:
		return notOpen(tx, thread, v.ID)
	case votes != v.Before:
		return fmt.Errorf("approval %s has more answers now: %w", v.ID, journal.ErrMoved)
	}
	body, err := database.AsJSON(v.By)
	if err != nil {
		return err
	}
	ok := 0
	if v.OK {
		ok = 1
	}
	err = tx.Exec(`INSERT INTO answers (approval_id, principal, principal_body, ok, note, at) VALUES (?, ?, ?, ?, ?, ?)
		ON CONFLICT (approval_id, principal) DO UPDATE SET ok = excluded.ok, note = excluded.note, at = excluded.at`, v.ID, v.By.String(), body, ok, v.Note, now)
	if err != nil {
		return err
	}
	return seePrincipal(tx, v.By, now)
}

// ApprovalFilter narrows a list of approvals. Zero fields match everything.
type ApprovalFilter = approval.Filter

// Approval reads an approval, or fails with ErrUnknown.
func (db *DB) Approval(ctx context.Context, id string) (approval.Approval, error) {
	found, err := db.approvals(ctx, ` WHERE id = ?`, id)
	return One(found, err, "approval "+id)
}

// Approvals lists the approvals that match f.
func (db *DB) Approvals(ctx context.Context, f ApprovalFilter) ([]approval.Approval, error) {
	var where database.Where
	where.Equal("thread_id", string(f.Thread))
	where.Equal("run_id", f.Run)
	if f.State == approval.Open { // written out, so that SQLite uses the index without planning again each time
		where.Add("state = 'pending'")
	} else {
		where.Equal("state", string(f.State))
	}
	if !f.Due.IsZero() {
		where.Add("deadline <= ?", database.Micros(f.Due))
	}
	if !f.Remind.IsZero() {
		where.Add("remind <= ?", database.Micros(f.Remind))
	}
	if f.Prefix != "" {
		where.Add("substr(id, 1, ?) = ?", len(f.Prefix), f.Prefix)
	}
	rest, args := where.On("")
	order := ` ORDER BY asked_at, id LIMIT ?+0`
	if f.Newest {
		order = ` ORDER BY asked_at DESC, id DESC LIMIT ?+0`
	}
	found, err := db.approvals(ctx, rest+order, append(args, database.Limit(f.Limit, 100))...)
	if err != nil {
		return nil, fmt.Errorf("list approvals: %w", err)
	}
	return found, nil
}

func (db *DB) approvals(ctx context.Context, rest string, args ...any) ([]approval.Approval, error) {
	var out []approval.Approval
	err := db.Query(ctx, `SELECT id, thread_id, run_id, call, actions, dir, bound, preview, risk, risk_why, parts, fields, rule, reason, again, asked_by, payer,
		asked_at, deadline, remind, who, state, answered_by, answered_at, note FROM approvals`+rest, args, database.Collect(&out, scanApproval))
	for i := range out {
		if err == nil {
			out[i].Votes, err = db.votes(ctx, out[i].ID)
		}
	}
	return out, err
}

func (db *DB) votes(ctx context.Context, id string) ([]approval.Vote, error) {
	var out []approval.Vote
	err := db.Query(ctx, `SELECT principal_body, ok, note, at FROM answers WHERE approval_id = ? ORDER BY at, principal`, []any{id},
		database.Fill(&out, func(rows *sql.Rows, v *approval.Vote) error {
			var body string
			var ok, at int64
			if err := rows.Scan(&body, &ok, &v.Note, &at); err != nil {
				return err
			}
			v.OK, v.At = ok == 1, database.Time(at)
			return json.Unmarshal([]byte(body), &v.By)
		}))
	return out, err
}

func scanApproval(row database.Scanner) (approval.Approval, error) {
	var a approval.Approval
	var call, actions, bound, parts, fields, by, payer string
	var asked int64
	var deadline, remind, answered sql.NullInt64
	err := row.Scan(&a.ID, &a.Thread, &a.Run, &call, &actions, &a.Dir, &bound, &a.Preview, &a.Risk, &a.RiskWhy, &parts, &fields, &a.Rule, &a.Reason, &a.Again,
		&by, &payer, &asked, &deadline, &remind, &a.Who, &a.State, &a.AnsweredBy, &answered, &a.Note)
	if err != nil {
		return a, err
	}
	a.AskedAt = database.Time(asked)
	for at, to := range map[*sql.NullInt64]*time.Time{&deadline: &a.Deadline, &remind: &a.Remind, &answered: &a.AnsweredAt} {
		if at.Valid {
			*to = database.Time(at.Int64)
		}
	}
	if bound != "" {
		a.Bound = json.RawMessage(bound)
	}
	if parts != "" {
		if err := json.Unmarshal([]byte(parts), &a.Parts); err != nil {
			return a, err
		}
	}
	if fields != "" {
		if err := json.Unmarshal([]byte(fields), &a.Fields); err != nil {
			return a, err
		}
	}
	var blocks chat.Blocks
	if err := errors.Join(json.Unmarshal([]byte(call), &blocks), json.Unmarshal([]byte(actions), &a.Actions),
		json.Unmarshal([]byte(by), &a.AskedBy), json.Unmarshal([]byte(payer), &a.Payer)); err != nil {
		return a, err
	}
	if calls := blocks.Calls(); len(calls) == 1 {
		a.Call = calls[0]
	}
	return a, nil
}
