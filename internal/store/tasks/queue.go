package tasks

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"chorus/internal/chat"
	"chorus/internal/database"
	"chorus/internal/store"
	"chorus/internal/work"
)

// maxReady is how many tasks of a project a round considers. It is more than can begin in one round.
const maxReady = 64

// Snapshot returns what the scheduler decides by. What happened since since counts for shares and limits.
func (s *Tasks) Snapshot(ctx context.Context, now, since time.Time) (work.Snapshot, error) {
	snap := work.Snapshot{Holds: map[string]int{}}
	at := map[string]int{}
	err := s.db.Query(ctx, `SELECT id, weight, max_runs, token_limit FROM projects WHERE state = 'ACTIVE' ORDER BY id`, nil, database.Fill(&snap.Projects, func(rows *sql.Rows, p *work.Load) error {
		err := rows.Scan(&p.ID, &p.Weight, &p.MaxRuns, &p.Limit)
		at[p.ID] = len(snap.Projects)
		return err
	}))
	if err != nil {
		return snap, err
	}
	spent, err := s.SpentBy(ctx, since)
	if err != nil {
		return snap, err
	}
	for _, p := range spent {
		snap.Tokens += p.Tokens
		if i, ok := at[p.Project]; ok {
			l := &snap.Projects[i]
			l.Tokens, l.Done, l.Mean = p.Tokens, p.Done, p.Tokens/int64(max(1, p.Entries))
		}
	}
	err = s.db.Query(ctx, running, nil, func(rows *sql.Rows) error {
		var project, tree, worker string
		if err := rows.Scan(&project, &tree, &worker); err != nil {
			return err
		}
		snap.Busy = append(snap.Busy, tree)
		snap.Holds[worker]++
		if i, ok := at[project]; ok {
			snap.Projects[i].Running++
		}
		return nil
	})
	if err != nil {
		return snap, err
	}
	for i := range snap.Projects {
		p := &snap.Projects[i]
		err := s.db.Query(ctx, `SELECT id, priority, created_at, agent, `+tree+` FROM tasks WHERE project = ? AND state = 'READY' AND COALESCE(not_before, 0) <= ? AND `+begins+` ORDER BY priority, created_at, id LIMIT ?+0`,
			[]any{p.ID, now.UnixMicro(), maxReady}, database.Fill(&p.Ready, func(rows *sql.Rows, c *work.Candidate) error {
				var created int64
				err := rows.Scan(&c.ID, &c.Priority, &created, &c.Agent, &c.Tree)
				c.Created = instant(created)
				return err
			}))
		if err != nil {
			return snap, err
		}
	}
	return snap, nil
}

// begins is the condition that the parent allows a task to begin: steps of a
// plan are worked on while their parent is in progress.
const begins = `(parent = '' OR EXISTS (SELECT 1 FROM tasks p WHERE p.id = tasks.parent AND p.state = 'IN_PROGRESS'))`

// tree is what only one task may use at a time. The steps of a plan share their parent's branch.
const tree = `CASE WHEN parent = '' THEN id ELSE parent END`

// running selects the tasks that occupy a worker: those assigned to one, and
// those whose run has not ended, whatever became of them.
const running = `SELECT project, ` + tree + `, worker FROM tasks WHERE state = 'ASSIGNED' AND run_id = '' UNION ALL SELECT project, ` + tree + `, worker FROM tasks WHERE run_id <> '' AND state <> 'WAITING_INPUT'`

// Running counts the tasks that occupy a worker.
func (s *Tasks) Running(ctx context.Context) (n int, err error) {
	err = s.db.Query(ctx, `SELECT count(*) FROM (`+running+`) AS held`, nil, func(rows *sql.Rows) error { return rows.Scan(&n) })
	return n, err
}

// Assign gives a task to a worker with so many slots. It fails with work.ErrMoved if
// the task is no longer available or a limit would be exceeded. dir is the task's
// working folder; tree is its checkout, nil if it has none.
func (s *Tasks) Assign(ctx context.Context, a work.Assignment, slots int, deadline time.Duration, dir string, tree *work.Worktree) (given work.Task, err error) {
	err = s.write(ctx, func(tx database.Tx) error {
		t, err := taskIn(tx, `id = ? AND project = ?`, a.Task, a.Project)
		if err != nil {
			return err
		}
		if parent, err := parentIn(tx, t); err != nil || t.Parent != "" && parent.State != work.InProgress {
			return cmp.Or(err, error(work.ErrMoved)) // its plan was stopped
		}
		var held, ours, most int
		if err := tx.Row(`SELECT COALESCE(SUM(CASE WHEN worker = ? THEN 1 ELSE 0 END), 0), COALESCE(SUM(CASE WHEN project = ? THEN 1 ELSE 0 END), 0) FROM (`+running+`) AS held`, []any{a.Worker, a.Project}, &held, &ours); err != nil {
			return err
		}
		if err := tx.Row(`SELECT max_runs FROM projects WHERE id = ? AND state = 'ACTIVE'`, []any{a.Project}, &most); err != nil && !errors.Is(err, sql.ErrNoRows) {
			return err
		}
		now := tx.Now()
		if t.State != work.Ready || t.NotBefore.After(now) || held >= slots || ours >= most {
			return work.ErrMoved
		}
		e, err := t.Take(work.Assign, queueKey(), now)
		if err != nil {
			return err
		}
		t.Attempt, t.Why, t.Run, t.Worker = t.Attempt+1, "", "", a.Worker
		if deadline > 0 {
			t.Deadline = now.Add(deadline)
		}
		if tree != nil {
			t.Branch = tree.Branch
			if err := tx.Exec(`INSERT INTO worktrees (task_id, project, repo, path, branch, base, state) VALUES (?, ?, ?, ?, ?, ?, 'making') ON CONFLICT (task_id) DO UPDATE SET state = 'making', path = excluded.path, branch = excluded.branch`,
				tree.Task, t.Project, tree.Repo, tree.Path, tree.Branch, tree.Base); err != nil {
				return err
			}
		}
		if err := store.SetDir(tx, t.Thread, dir); err != nil {
			return err
		}
		given = t
		return save(tx, t, e)
	})
	if err != nil {
		return given, fmt.Errorf("assign task %s: %w", a.Task, err)
	}
	return given, nil
}

func queueKey() string { return chat.Principal{Kind: chat.TheSystem, ID: "queue"}.String() }

// SetWorktree records the state of a checkout.
func (s *Tasks) SetWorktree(ctx context.Context, t work.Worktree) error {
	return s.write(ctx, func(tx database.Tx) error {
		return tx.Exec(`UPDATE worktrees SET state = ?, base = ? WHERE task_id = ?`, t.State, t.Base, t.Task)
	})
}

// RemoveWorktree removes the row of a checkout that is gone.
func (s *Tasks) RemoveWorktree(ctx context.Context, task string) error {
	return s.write(ctx, func(tx database.Tx) error { return tx.Exec(`DELETE FROM worktrees WHERE task_id = ?`, task) })
}

// Worktrees lists the checkouts, or those of one task if it is named.
func (s *Tasks) Worktrees(ctx context.Context, task string) (out []work.Worktree, err error) {
	query, args := `SELECT task_id, project, repo, path, branch, base, state FROM worktrees ORDER BY task_id`, []any{}
	if task != "" {
		query, args = `SELECT task_id, project, repo, path, branch, base, state FROM worktrees WHERE task_id = ?`, []any{task}
	}
	err = s.db.Query(ctx, query, args, database.Fill(&out, func(rows *sql.Rows, w *work.Worktree) error {
		return rows.Scan(&w.Task, &w.Project, &w.Repo, &w.Path, &w.Branch, &w.Base, &w.State)
	}))
	return out, err
}

// PrepareMerge records a merge that is about to be made.
func (s *Tasks) PrepareMerge(ctx context.Context, m work.Merge) error {
	return s.write(ctx, func(tx database.Tx) error {
		return tx.Exec(`INSERT INTO merges (task_id, attempt, target, head, base, oid, at) VALUES (?, ?, ?, ?, ?, ?, ?)
			ON CONFLICT (task_id, attempt) DO UPDATE SET target = excluded.target, head = excluded.head, base = excluded.base, oid = excluded.oid, at = excluded.at`,
			m.Task, m.Attempt, m.Target, m.Head, m.Base, m.OID, m.At.UnixMicro())
	})
}

// PreparedMerge finds the merge of an attempt, or returns false if none was begun.
func (s *Tasks) PreparedMerge(ctx context.Context, task string, attempt int) (m work.Merge, there bool, err error) {
	err = s.db.Query(ctx, `SELECT task_id, attempt, target, head, base, oid, at FROM merges WHERE task_id = ? AND attempt = ?`, []any{task, attempt}, func(rows *sql.Rows) error {
		var at int64
		err := rows.Scan(&m.Task, &m.Attempt, &m.Target, &m.Head, &m.Base, &m.OID, &at)
		m.At, there = instant(at), true
		return err
	})
	return m, there, err
}

// Finish writes what is known of an attempt apart from its run (summary, files) and takes the
// next step. merged says that the branch has been merged into the default branch. If a step
// turns out to be the last one of its plan but was not merged, Finish changes nothing and fails
// with work.ErrMoved, and the caller checks again.
func (s *Tasks) Finish(ctx context.Context, r work.Result, step work.Step, merged bool, by, why string) (done work.Task, err error) {
	err = s.write(ctx, func(tx database.Tx) error {
		t, err := taskIn(tx, `id = ?`, r.Task)
		if err != nil {
			return err
		}
		if t.Attempt != r.Attempt {
			return work.ErrMoved
		}
		e, err := t.Take(step, by, tx.Now())
		if err != nil {
			return err
		}
		t.Why, e.Text = why, why
		if r.At.IsZero() {
			r.At = tx.Now()
		}
		if err := writeResult(tx, t.Project, r); err != nil {
			return err
		}
		if t.Conflicted() {
			if err := resolveAtOnce(tx, &t); err != nil {
				return err
			}
		}
		done = t
		if t.Parent != "" && t.State == work.Completed {
			open, err := openSteps(tx, t.Parent, t.ID)
			if err != nil {
				return err
			}
			if open == 0 && !merged {
				return work.ErrMoved
			}
		}
		return saveMerged(tx, t, merged, e)
	})
	if err != nil {
		return done, fmt.Errorf("finish task %s: %w", r.Task, err)
	}
	return done, nil
}

// resolveAtOnce creates the task that resolves another one's merge conflict, if the project
// wants that. It does so in the transaction that blocks the task, so that no crash leaves
// one without the other, and one conflict has one task.
func resolveAtOnce(tx database.Tx, t *work.Task) error {
	var wants string
	if err := tx.Row(`SELECT on_conflict FROM projects WHERE id = ?`, []any{t.Project}, &wants); err != nil {
		return err
	}
	if t.Why += ". Reopen the task to let its worker resolve it"; t.Resolves != "" {
		return nil // a person has to look at the conflict of a task that resolves one
	}
	if wants != work.ConflictTask {
		t.Why += ", or create a task that does: chorus task resolve-conflict " + t.ID
		return nil
	}
	made, err := CreateIn(tx, work.Resolution(*t))
	if err != nil {
		return err
	}
	if made.State == work.Completed {
		t.Why += ". Task " + made.ID + " was to resolve it, but has not merged its branch"
	} else {
		t.Why += ". Task " + made.ID + " resolves it"
	}
	return nil
}

// Wake makes tasks ready whose pause is over, and returns when the next pause
// ends; zero if none does. If nothing is due it only reads.
func (s *Tasks) Wake(ctx context.Context, now time.Time) (next time.Time, err error) {
	var due, at int64
	err = s.db.Query(ctx, `SELECT COALESCE(SUM(CASE WHEN state = 'PAUSED' AND not_before <= ? THEN 1 ELSE 0 END), 0), COALESCE(min(CASE WHEN not_before > ? THEN not_before END), 0) FROM tasks WHERE not_before IS NOT NULL`,
		[]any{now.UnixMicro(), now.UnixMicro()}, func(rows *sql.Rows) error { return rows.Scan(&due, &at) })
	if err != nil || due == 0 {
		return instant(at), err
	}
	return instant(at), s.write(ctx, func(tx database.Tx) error {
		var list []work.Task
		err := tx.Rows(`SELECT `+taskColumns+` FROM tasks WHERE not_before IS NOT NULL AND not_before <= ? AND state = 'PAUSED' ORDER BY not_before LIMIT 1000`, []any{now.UnixMicro()}, database.Collect(&list, scanTask))
		if err != nil {
			return err
		}
		for _, t := range list {
			e, err := t.Take(work.ResumeTimer, queueKey(), now)
			if err != nil {
				return err
			}
			t.NotBefore, t.Why = time.Time{}, ""
			if err := save(tx, t, e); err != nil {
				return err
			}
		}
		return nil
	})
}

// Overdue returns the tasks whose deadline has passed, and the next deadline.
func (s *Tasks) Overdue(ctx context.Context, now time.Time) (late []work.Task, next time.Time, err error) {
	late, err = s.tasks(ctx, `SELECT `+taskColumns+` FROM tasks WHERE deadline IS NOT NULL AND deadline <= ? ORDER BY deadline`, now.UnixMicro())
	if err != nil {
		return nil, next, err
	}
	err = s.db.Query(ctx, `SELECT COALESCE(min(deadline), 0) FROM tasks WHERE deadline IS NOT NULL AND deadline > ?`, []any{now.UnixMicro()}, func(rows *sql.Rows) error {
		var at int64
		err := rows.Scan(&at)
		next = instant(at)
		return err
	})
	return late, next, err
}

// In lists all tasks in a state, of any project, for callers that move them on.
func (s *Tasks) In(ctx context.Context, state work.State) ([]work.Task, error) {
	return s.tasks(ctx, `SELECT `+taskColumns+` FROM tasks WHERE state = ? ORDER BY priority, created_at, id`, string(state))
}
