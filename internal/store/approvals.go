package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"chorus/internal/chat"
	"chorus/internal/desk"
	"chorus/internal/journal"
)

// writeApproval makes one change to the approvals. An answer counts only while
// the question is open: the first one wins, whoever comes later gets ErrSettled.
func writeApproval(w *writer, thread chat.ThreadID, c desk.Change, now int64) error {
	if c.New != nil {
		if err := insertApproval(w, thread, *c.New, now); err != nil {
			return err
		}
	}
	if c.Answer != nil {
		if err := answerApproval(w, thread, *c.Answer, now); err != nil {
			return err
		}
	}
	if c.CancelRun != "" {
		return w.exec(`UPDATE approvals SET state = 'cancelled', answered_at = ?
			WHERE thread_id = ? AND run_id = ? AND state = 'pending'`, now, string(thread), c.CancelRun)
	}
	return nil
}

func insertApproval(w *writer, thread chat.ThreadID, a desk.Approval, now int64) error {
	if a.ID == "" {
		return errors.New("approval without an id")
	}
	if a.Thread != "" && a.Thread != thread {
		return fmt.Errorf("approval %s belongs to thread %s", a.ID, a.Thread)
	}
	asked := now
	if !a.AskedAt.IsZero() {
		asked = micros(a.AskedAt)
	}
	call, err := asJSON(chat.Blocks{a.Call})
	if err != nil {
		return err
	}
	actions, err := asJSON(a.Actions)
	if err != nil {
		return err
	}
	by, err := asJSON(a.AskedBy)
	if err != nil {
		return err
	}
	err = w.exec(`INSERT INTO approvals (id, thread_id, run_id, call_id, call, actions, dir, bound, preview, risk, rule,
			asked_by, asked_at, deadline) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		a.ID, string(thread), a.Run, a.Call.ID, call, actions, a.Dir, string(a.Bound), a.Preview, a.Risk, a.Rule,
		by, asked, nullMicros(a.Deadline))
	if isTaken(err) {
		return fmt.Errorf("approval %s: %w", a.ID, journal.ErrDuplicate)
	}
	return err
}

func answerApproval(w *writer, thread chat.ThreadID, a desk.Answer, now int64) error {
	switch a.State {
	case desk.Approved, desk.Refused, desk.Expired, desk.Cancelled:
	default:
		return fmt.Errorf("approval %s cannot be answered with %q", a.ID, a.State)
	}
	n, err := w.change(`UPDATE approvals SET state = ?, answered_by = ?, answered_at = ?, note = ?
		WHERE id = ? AND thread_id = ? AND state = 'pending'`,
		string(a.State), a.By, now, a.Note, a.ID, string(thread))
	if err != nil || n == 1 {
		return err
	}
	var there int
	err = w.row(`SELECT count(*) FROM approvals WHERE id = ? AND thread_id = ?`, []any{a.ID, string(thread)}, &there)
	switch {
	case err != nil:
		return err
	case there == 0:
		return fmt.Errorf("approval %s: %w", a.ID, journal.ErrUnknown)
	default:
		return fmt.Errorf("approval %s: %w", a.ID, journal.ErrSettled)
	}
}

// ApprovalFilter narrows a list of approvals; zero fields do not.
type ApprovalFilter struct {
	Thread chat.ThreadID
	Run    string
	State  desk.State
	Due    time.Time // only those whose deadline is not after it
	Limit  int       // 0: 100
}

// Approval reads one; ErrUnknown if there is none.
func (db *DB) Approval(ctx context.Context, id string) (desk.Approval, error) {
	found, err := db.approvals(ctx, ` WHERE id = ?`, id)
	if err == nil && len(found) == 0 {
		err = journal.ErrUnknown
	}
	if err != nil {
		return desk.Approval{}, fmt.Errorf("approval %s: %w", id, err)
	}
	return found[0], nil
}

// Approvals lists approvals, the oldest first.
func (db *DB) Approvals(ctx context.Context, f ApprovalFilter) ([]desk.Approval, error) {
	var where filter
	where.equal("thread_id", string(f.Thread))
	where.equal("run_id", f.Run)
	where.equal("state", string(f.State))
	if !f.Due.IsZero() {
		where.add("deadline <= ?", micros(f.Due))
	}
	rest, args := where.on("")
	found, err := db.approvals(ctx, rest+` ORDER BY asked_at, id LIMIT ?`, append(args, orDefault(f.Limit, 100))...)
	if err != nil {
		return nil, fmt.Errorf("list approvals: %w", err)
	}
	return found, nil
}

func (db *DB) approvals(ctx context.Context, rest string, args ...any) ([]desk.Approval, error) {
	var out []desk.Approval
	err := db.query(ctx, `SELECT id, thread_id, run_id, call, actions, dir, bound, preview, risk, rule, asked_by, asked_at,
		deadline, state, answered_by, note FROM approvals`+rest, args, func(rows *sql.Rows) error {
		a, err := scanApproval(rows)
		out = append(out, a)
		return err
	})
	return out, err
}

func scanApproval(row scanner) (desk.Approval, error) {
	var a desk.Approval
	var call, actions, bound, by string
	var asked int64
	var deadline sql.NullInt64
	err := row.Scan(&a.ID, &a.Thread, &a.Run, &call, &actions, &a.Dir, &bound, &a.Preview, &a.Risk, &a.Rule, &by, &asked,
		&deadline, &a.State, &a.AnsweredBy, &a.Note)
	if err != nil {
		return a, err
	}
	a.AskedAt = instant(asked)
	if deadline.Valid {
		a.Deadline = instant(deadline.Int64)
	}
	if bound != "" {
		a.Bound = json.RawMessage(bound)
	}
	var blocks chat.Blocks
	if err := errors.Join(json.Unmarshal([]byte(call), &blocks), json.Unmarshal([]byte(actions), &a.Actions),
		json.Unmarshal([]byte(by), &a.AskedBy)); err != nil {
		return a, err
	}
	if calls := blocks.Calls(); len(calls) == 1 {
		a.Call = calls[0]
	}
	return a, nil
}
