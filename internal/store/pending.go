package store

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"time"

	"chorus/internal/approval"
	"chorus/internal/chat"
	"chorus/internal/database"
	"chorus/internal/journal"
	"chorus/internal/ledger"
)

// LastRun returns the id of the thread's newest run, or fails with ErrUnknown before the first.
func (db *DB) LastRun(ctx context.Context, thread chat.ThreadID) (string, error) {
	run := ""
	err := db.Query(ctx, `SELECT run_id FROM events WHERE thread_id = ? AND kind = 'run_started' ORDER BY seq DESC LIMIT 1`,
		[]any{string(thread)}, func(rows *sql.Rows) error { return rows.Scan(&run) })
	if err == nil && run == "" {
		err = journal.ErrUnknown
	}
	if err != nil {
		return "", fmt.Errorf("last run of %s: %w", thread, err)
	}
	return run, nil
}

// PendingPrompts returns the numbers of the prompts that no run has taken, oldest first.
func (db *DB) PendingPrompts(ctx context.Context, thread chat.ThreadID) ([]int64, error) {
	var out []int64
	err := db.Query(ctx, `SELECT seq FROM events WHERE thread_id = ? AND taken = 0 ORDER BY seq`,
		[]any{string(thread)}, database.Column(&out))
	if err != nil {
		return nil, fmt.Errorf("waiting prompts of %s: %w", thread, err)
	}
	return out, nil
}

// Overdue returns pending approvals whose deadline has passed.
func (db *DB) Overdue(ctx context.Context, now time.Time) ([]approval.Approval, error) {
	return db.Approvals(ctx, ApprovalFilter{State: approval.Open, Due: now})
}

// RunCost returns what a run's calls cost in total when it ends. A lost call counts with what was
// reserved for it, as it does in the ledger from then on. The cost of its children is included.
func (db *DB) RunCost(ctx context.Context, run string) (ledger.Nanos, error) {
	n, err := db.Count(ctx, `SELECT coalesce(sum(CASE WHEN how = '' THEN reserved ELSE settled END), 0) FROM ledger WHERE run_id = ? OR root_run <> '' AND root_run = ?`, run, run)
	if err != nil {
		return 0, fmt.Errorf("cost of run %s: %w", run, err)
	}
	return n, nil
}

// ThreadsNamed returns the threads whose own part of the id begins with name, or only the
// exact match if there is one. It is for people who type part of an id.
func (db *DB) ThreadsNamed(ctx context.Context, name string) ([]journal.Thread, error) {
	escaped := strings.NewReplacer(`\`, `\\`, `%`, `\%`, `_`, `\_`).Replace(name)
	rows, err := db.threads(ctx, `SELECT `+threadColumns+` FROM threads WHERE id LIKE ? ESCAPE '\' ORDER BY id LIMIT 50`, "%:"+escaped+"%")
	if err != nil {
		return nil, fmt.Errorf("find thread %q: %w", name, err)
	}
	var out []journal.Thread
	for _, row := range rows {
		switch own := row.ID.Thread(); {
		case own == name:
			return []journal.Thread{row}, nil
		case strings.HasPrefix(own, name):
			out = append(out, row)
		}
	}
	return out, nil
}

// LastRunAt returns the number of the event that began the thread's newest run, or 0 before the first.
func (db *DB) LastRunAt(ctx context.Context, thread chat.ThreadID) (int64, error) {
	seq, err := db.Count(ctx, `SELECT seq FROM events WHERE thread_id = ? AND kind = 'run_started' ORDER BY seq DESC LIMIT 1`,
		string(thread))
	if err != nil {
		return 0, fmt.Errorf("last run of %s: %w", thread, err)
	}
	return seq, nil
}
