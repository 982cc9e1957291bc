package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"chorus/internal/chat"
	"chorus/internal/database"
	"chorus/internal/store"
	"chorus/internal/store/tasks"
	"chorus/internal/work"
)

// What the queue of tasks may take with ten thousand of them in it, and how much more with a hundred thousand that are over.
const (
	barRound    = 20.0 // ms
	barPage     = 5.0  // ms
	barFinished = 1.2  // times

	waitingTasks  = 10_000
	finishedTasks = 100_000
	workProjects  = 20
)

// workRows measure a round of the scheduler and a page of tasks, by turns with no finished tasks and with many.
func workRows(ctx context.Context, dir string, q float64) (rows []row, err error) {
	owner := chat.Principal{Kind: chat.LocalUser, ID: "ada"}
	var queues []*tasks.Tasks
	for _, finished := range []int{0, finishedTasks} {
		db, err := store.Open(ctx, store.Options{Path: filepath.Join(dir, fmt.Sprint("work-", finished, ".db")), Follow: tasks.Follow})
		if err != nil {
			return nil, err
		}
		defer db.Close()
		queue := tasks.New(db, nil)
		for i := range workProjects {
			if _, err := queue.CreateProject(ctx, work.Project{ID: fmt.Sprint("project-", i), Name: "Project", Weight: float64(1 + i%3), MaxRuns: 2, State: work.Active, Owner: owner}); err != nil {
				return nil, err
			}
		}
		if err := errors.Join(fill(ctx, db, owner, waitingTasks, false), fill(ctx, db, owner, finished, true)); err != nil {
			return nil, err
		}
		queues = append(queues, queue)
	}
	var took [2][2][]float64 // rounds and pages, without and with finished tasks
	for range 2 * rounds {
		for i, queue := range queues {
			took[0][i] = append(took[0][i], timed(0.5, func() { err = errors.Join(err, workRound(ctx, queue)) }, 3, 1))
			took[1][i] = append(took[1][i], timed(0.5, func() { err = errors.Join(err, workPages(ctx, queue)) }, 5, 1)/2)
		}
	}
	if err != nil {
		return nil, err
	}
	round, page, rounds, pages := quantile(took[0][0], q), quantile(took[1][0], q), quantile(took[0][1], q), quantile(took[1][1], q)
	return []row{
		{what: "a round of the scheduler, 10,000 tasks in 20 projects", unit: "ms", chorus: round, value: round, bar: barRound, how: "%.1f ms"},
		{what: "… with 100,000 finished tasks, to none", unit: "ms", floor: round, chorus: rounds, value: rounds / round, bar: barFinished, how: "%.2f×"},
		{what: "a page of 50 tasks, of 10,000", unit: "ms", chorus: page, value: page, bar: barPage, how: "%.1f ms"},
		{what: "… with 100,000 finished tasks, to none", unit: "ms", floor: page, chorus: pages, value: pages / page, bar: barFinished, how: "%.2f×"},
	}, nil
}

// workRound is what a round looks at and decides.
func workRound(ctx context.Context, queue *tasks.Tasks) error {
	now := time.Now()
	_, werr := queue.Wake(ctx, now)
	_, _, oerr := queue.Overdue(ctx, now)
	snap, serr := queue.Snapshot(ctx, now, now.Add(-24*time.Hour))
	snap.Slots = 8
	if given := work.Plan(snap); len(given) != snap.Slots {
		return fmt.Errorf("a round gave %d tasks", len(given))
	}
	return errors.Join(werr, oerr, serr)
}

// workPages is a page of the tasks that are open, and one of all.
func workPages(ctx context.Context, queue *tasks.Tasks) error {
	for _, all := range []bool{false, true} {
		if list, err := queue.List(ctx, work.Filter{All: all, Limit: 50}); err != nil || len(list) != 50 {
			return errors.Join(err, fmt.Errorf("a page has %d tasks", len(list)))
		}
	}
	return nil
}

// fill makes tasks, a thousand in a transaction; finished ones have been worked on within the last day.
func fill(ctx context.Context, db *store.DB, owner chat.Principal, many int, finished bool) error {
	const batch = 1000
	for done := 0; done < many; done += batch {
		err := db.Write(ctx, func(tx database.Tx) error {
			for i := range batch {
				n := done + i
				made, err := tasks.CreateIn(tx, work.NewTask{Task: work.Task{ID: fmt.Sprintf("%t-%d", finished, n), Project: fmt.Sprint("project-", n%workProjects), Title: fmt.Sprint("task ", n),
					Description: "What is to be done.", Agent: "chorus", Priority: 1 + n%200, MaxRetries: 3, Owner: owner}})
				if err != nil {
					return err
				}
				if !finished {
					continue
				}
				at := tx.Now().Add(-time.Duration(n%23) * time.Hour).UnixMicro()
				for query, args := range map[string][]any{
					`UPDATE tasks SET state = 'COMPLETED', attempt = 1, moved_at = ? WHERE id = ?`: {at, made.ID},
					`INSERT INTO task_results (task_id, attempt, project, run_id, agent, outcome, summary, files, kind, error, tokens, cost, at) VALUES (?, 1, ?, '', 'chorus', 'completed', '', '[]', '', '', 1000, 0, ?)`: {made.ID, made.Project, at},
					`INSERT INTO work_hours (project, hour, tokens, cost, attempts, completed) VALUES (?, ?, 1000, 0, 1, 1)
						ON CONFLICT (project, hour) DO UPDATE SET tokens = tokens + 1000, attempts = attempts + 1, completed = completed + 1`: {made.Project, at / int64(time.Hour/time.Microsecond)},
				} {
					if err := tx.Exec(query, args...); err != nil {
						return err
					}
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}
