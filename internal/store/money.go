package store

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"time"

	"chorus/internal/chat"
	"chorus/internal/database"
	"chorus/internal/ledger"
)

const (
	reserve = `INSERT INTO ledger (run_id, step, attempt, thread_id, agent, payer, payer_body, model, reserved, at, root_run)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING`

	// A settlement without a known reservation keeps the existing one.
	settle = `INSERT INTO ledger (run_id, step, attempt, thread_id, agent, payer, payer_body, model, reserved, at, root_run,
			settled, how, tok_in, tok_out, tok_read, tok_write, settled_at)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
		ON CONFLICT (run_id, step, attempt) DO UPDATE SET
			reserved = CASE WHEN excluded.reserved = 0 THEN ledger.reserved ELSE excluded.reserved END,
			settled = excluded.settled, how = excluded.how, tok_in = excluded.tok_in, tok_out = excluded.tok_out,
			tok_read = excluded.tok_read, tok_write = excluded.tok_write, settled_at = excluded.settled_at`

	// Money that may have been spent counts as spent.
	assumeOthers = `UPDATE ledger SET settled = reserved, how = 'assumed', settled_at = ?
		WHERE run_id = ? AND how = '' AND NOT (step = ? AND attempt = ?)`
	assumeRun = `UPDATE ledger SET settled = reserved, how = 'assumed', settled_at = ? WHERE run_id = ? AND how = ''`
	// All runs of a thread, found with the index on their beginnings.
	assumeThread = `UPDATE ledger SET settled = reserved, how = 'assumed', settled_at = ? WHERE how = ''
		AND run_id IN (SELECT run_id FROM events WHERE thread_id = ? AND kind = 'run_started')`
)

// writeMoney reserves or settles one call. A new reservation means that earlier attempts of the
// run are over, whatever became of them. It must keep to its ceilings.
func writeMoney(tx database.Tx, thread chat.ThreadID, e ledger.Entry, under *ledger.Ceilings, now int64) error {
	if e.Run == "" {
		return fmt.Errorf("ledger entry without a run")
	}
	e.Thread = cmp.Or(e.Thread, thread)
	payer, err := database.AsJSON(e.Payer)
	if err != nil {
		return err
	}
	args := []any{e.Run, e.Step, e.Attempt, string(e.Thread), e.Agent, e.Payer.String(), payer, e.Model, e.Reserved, now, e.Root}
	if e.How != ledger.Open {
		return tx.Exec(settle, append(args, e.Settled, string(e.How),
			e.Usage.Input, e.Usage.Output, e.Usage.CacheRead, e.Usage.CacheWrite, now)...)
	}
	n, err := tx.Change(reserve, args...)
	if err != nil || n == 0 {
		return err
	}
	// First attempt of a later step: the step before it was answered, and therefore settled.
	if e.Attempt > 1 || e.Step <= 1 {
		if err := tx.Exec(assumeOthers, now, e.Run, e.Step, e.Attempt); err != nil {
			return err
		}
	}
	return keepTo(tx, under, e, now)
}

// LedgerEntries returns a run's model calls in order.
func (db *DB) LedgerEntries(ctx context.Context, run string) ([]ledger.Entry, error) {
	var out []ledger.Entry
	err := db.Query(ctx, `SELECT run_id, step, attempt, thread_id, agent, payer_body, model, reserved, settled, how,
			tok_in, tok_out, tok_read, tok_write FROM ledger WHERE run_id = ? ORDER BY step, attempt`,
		[]any{run}, database.Fill(&out, func(rows *sql.Rows, e *ledger.Entry) error {
			var payer string
			err := rows.Scan(&e.Run, &e.Step, &e.Attempt, &e.Thread, &e.Agent, &payer, &e.Model, &e.Reserved, &e.Settled, &e.How,
				&e.Usage.Input, &e.Usage.Output, &e.Usage.CacheRead, &e.Usage.CacheWrite)
			if err != nil {
				return err
			}
			return json.Unmarshal([]byte(payer), &e.Payer)
		}))
	if err != nil {
		return nil, fmt.Errorf("ledger of run %s: %w", run, err)
	}
	return out, nil
}

// SpendBy says what a sum is grouped by.
type SpendBy string

// The groupings.
const (
	ByNothing SpendBy = ""
	ByModel   SpendBy = "model"
	ByAgent   SpendBy = "agent"
	ByPayer   SpendBy = "payer"
	ByThread  SpendBy = "thread"
	ByChannel SpendBy = "channel"
	ByDay     SpendBy = "day" // in UTC, like months
	ByMonth   SpendBy = "month"
	ByRun     SpendBy = "run"
)

// SpendFilter narrows the sums. Zero fields match everything. Payer is a principal's key.
type SpendFilter struct {
	By           SpendBy
	Agent        string
	Payer        string
	Model        string
	Thread       chat.ThreadID
	Under        string // prefix of the thread ids
	Run          string
	Since, Until time.Time
}

// Sum is the total of a group of calls. Budgets count Settled + Open.
type Sum struct {
	Key     string
	Calls   int
	Settled ledger.Nanos
	Open    ledger.Nanos // reserved and not yet settled
	Usage   chat.Usage
}

// Spend sums the ledger, most expensive group first.
func (db *DB) Spend(ctx context.Context, f SpendFilter) ([]Sum, error) {
	key, ok := map[SpendBy]string{ByNothing: "''", ByModel: "model", ByAgent: "agent", ByPayer: "payer",
		ByThread: "thread_id", ByRun: "run_id", ByChannel: "channel", ByDay: "day", ByMonth: "substr(day, 1, 7)"}[f.By]
	if !ok {
		return nil, fmt.Errorf("sum of spending: cannot group by %q", f.By)
	}
	from, args := spendSource(db.says, f)
	query := `SELECT ` + key + `, sum(calls), sum(settled), sum(open), sum(tok_in), sum(tok_out), sum(tok_read), sum(tok_write) FROM (` + from + `) AS calls`
	var out []Sum
	err := db.Query(ctx, query+` GROUP BY 1 ORDER BY 3 DESC, 1`, args, database.Fill(&out, func(rows *sql.Rows, s *Sum) error {
		return rows.Scan(&s.Key, &s.Calls, &s.Settled, &s.Open, &s.Usage.Input, &s.Usage.Output, &s.Usage.CacheRead, &s.Usage.CacheWrite)
	}))
	if err != nil {
		return nil, fmt.Errorf("sum of spending: %w", err)
	}
	return out, nil
}
