package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"chorus/internal/chat"
	"chorus/internal/database"
	"chorus/internal/ledger"
)

const (
	// No row means that nobody has asked for sums of this kind yet.
	querySpent = `SELECT coalesce(s.open, 0), coalesce(s.settled, 0) FROM counted c
		LEFT JOIN spent s ON s.scope = c.scope AND s.whose = ? AND s.period = ? WHERE c.scope = ? AND c.unit = ?`
	queryTask = `SELECT coalesce(sum(CASE WHEN how = '' THEN reserved ELSE 0 END), 0), coalesce(sum(settled), 0)
		FROM ledger WHERE run_id = ? OR root_run <> '' AND root_run = ?`
	// For a run in the middle: its own requests, and those in the threads that it started and that these started.
	queryPart = `WITH RECURSIVE below(id) AS (SELECT id FROM threads WHERE parent <> '' AND parent_run = ? AND parent IN (SELECT thread_id FROM ledger WHERE run_id = ?)
			UNION SELECT t.id FROM threads t JOIN below ON t.parent = below.id WHERE t.parent <> '')
		SELECT coalesce(sum(CASE WHEN how = '' THEN reserved ELSE 0 END), 0), coalesce(sum(settled), 0)
		FROM ledger WHERE root_run <> '' AND root_run = ? AND (run_id = ? OR thread_id IN (SELECT id FROM below))`

	queryAsked  = `SELECT count(*) FROM budget_asked WHERE key = ? AND whose = ? AND period = ? AND most = ?`
	insertAsked = `INSERT INTO budget_asked (key, whose, period, most, at) VALUES (?, ?, ?, ?, ?) ON CONFLICT DO NOTHING`
)

// keepTo checks a reservation that was just written against its ceilings. It runs in the
// reservation's transaction, and only one such transaction runs at a time in any process, so the
// sum it reads is exact. On PostgreSQL the reservation has locked the rows of its sums.
func keepTo(tx database.Tx, c *ledger.Ceilings, e ledger.Entry, now int64) error {
	if c == nil || e.Reserved <= 0 {
		return nil
	}
	at := database.Time(now)
	stands := make([]ledger.Stand, len(c.Limits))
	for i, l := range c.Limits {
		s, err := standing(tx, l, e.Root, at)
		if err != nil {
			return err
		}
		s.Open -= e.Reserved // it is part of the sums already
		if s.AtSoft(c.Soft) {
			var n int
			if err := tx.Row(queryAsked, []any{l.Key(), l.Subject, l.Period.Name(at), l.Most}, &n); err != nil {
				return err
			}
			s.Asked = n > 0
		}
		stands[i] = s
	}
	if r := ledger.Judge(stands, c.Soft, e.Reserved, at); r != nil {
		return r
	}
	return nil
}

// standing reads what counts against a limit. root is the topmost run, if an agent started the one in question.
func standing(tx database.Tx, l ledger.Limit, root string, at time.Time) (ledger.Stand, error) {
	s := ledger.Stand{Limit: l}
	if l.Scope.OfRuns() {
		if err := tx.Alone("task " + l.Subject); err != nil { // children of one run reserve on threads of their own
			return s, err
		}
		if root != "" && l.Subject != root {
			return s, tx.Row(queryPart, []any{l.Subject, l.Subject, root, l.Subject}, &s.Open, &s.Settled)
		}
		return s, tx.Row(queryTask, []any{l.Subject, l.Subject}, &s.Open, &s.Settled)
	}
	scope := counter(l.Scope)
	args := []any{l.Subject, l.Period.Name(at), string(scope), string(l.Period)}
	err := tx.Row(querySpent, args, &s.Open, &s.Settled)
	if !errors.Is(err, sql.ErrNoRows) {
		return s, err
	}
	if err := count(tx, scope, l.Period, at); err != nil {
		return s, err
	}
	return s, tx.Row(querySpent, args, &s.Open, &s.Settled)
}

func markAsked(tx database.Tx, r *ledger.Refusal, now int64) error {
	return tx.Exec(insertAsked, r.Key(), r.Subject, r.When, r.Most, now)
}

// Standing returns how much of each limit is used now.
func (db *DB) Standing(ctx context.Context, limits []ledger.Limit) ([]ledger.Stand, error) {
	now := db.Now()
	out := make([]ledger.Stand, 0, len(limits))
	for _, l := range limits {
		query, args := `SELECT coalesce(sum(CASE WHEN how = '' THEN reserved ELSE 0 END), 0), coalesce(sum(settled), 0) FROM ledger WHERE at >= ? AND (run_id = ? OR root_run <> '' AND root_run = ?)`,
			[]any{database.Micros(l.Period.Begin(now)), l.Subject, l.Subject}
		if !l.Scope.OfRuns() {
			column := dayColumns(db.says)[counter(l.Scope)]
			if column == "" {
				return nil, fmt.Errorf("how far budgets are used: there is no scope %q", l.Scope)
			}
			query, args = `SELECT coalesce(sum(open), 0), coalesce(sum(settled), 0) FROM spent_days WHERE day >= ? AND `+column+` = ?`,
				[]any{l.Period.Begin(now).UTC().Format(time.DateOnly), l.Subject}
		}
		s := ledger.Stand{Limit: l}
		err := db.Query(ctx, query, args, func(rows *sql.Rows) error { return rows.Scan(&s.Open, &s.Settled) })
		if err != nil {
			return nil, fmt.Errorf("how far budgets are used: %w", err)
		}
		out = append(out, s)
	}
	return out, nil
}

// dayColumns name the column that says whose a row of the daily sums is.
func dayColumns(says *dialect) map[ledger.Scope]string {
	return map[ledger.Scope]string{ledger.Guild: says.guild, ledger.Channel: "channel", ledger.Agent: "agent", ledger.Person: "payer"}
}

// Spender is who spent money, where, and through which agent.
type Spender struct {
	Thread chat.ThreadID // one of the threads in the channel
	Agent  string
	Payer  chat.Principal
}

// Spenders lists who spent something since then, by whole months, once for each channel and agent.
func (db *DB) Spenders(ctx context.Context, since time.Time) ([]Spender, error) {
	var out []Spender
	err := db.Query(ctx, `SELECT max(thread_id), agent, payer_body FROM spent_months WHERE month >= ? GROUP BY channel, agent, payer_body ORDER BY 1, 2, 3`,
		[]any{since.UTC().Format("2006-01")}, database.Fill(&out, func(rows *sql.Rows, s *Spender) error {
			var payer string
			if err := rows.Scan(&s.Thread, &s.Agent, &payer); err != nil {
				return err
			}
			return json.Unmarshal([]byte(payer), &s.Payer)
		}))
	if err != nil {
		return nil, fmt.Errorf("who spent money: %w", err)
	}
	return out, nil
}
