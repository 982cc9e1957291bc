package tasks

import (
	"cmp"
	"context"
	"fmt"

	"chorus/internal/database"
	"chorus/internal/work"
)

// Held returns the tasks that occupy a worker: those assigned to one, and
// those whose run has not ended, whatever became of them.
func (s *Tasks) Held(ctx context.Context) ([]work.Task, error) {
	return s.tasks(ctx, `SELECT `+taskColumns+` FROM tasks WHERE state = 'ASSIGNED' AND run_id = '' UNION ALL SELECT `+taskColumns+` FROM tasks WHERE run_id <> ''`)
}

// TakeOver moves a task whose worker is gone to another worker, if it has not changed since it was
// seen; otherwise it returns false. The attempt stays the same: its run continues where it stopped.
func (s *Tasks) TakeOver(ctx context.Context, seen work.Task, to string) (took bool, err error) {
	err = s.write(ctx, func(tx database.Tx) error {
		n, err := tx.Change(`UPDATE tasks SET worker = ? WHERE id = ? AND worker = ? AND attempt = ? AND (state = 'ASSIGNED' OR run_id <> '')`, to, seen.ID, seen.Worker, seen.Attempt)
		if took = n > 0; err != nil || !took {
			return err
		}
		return record(tx, work.Event{At: tx.Now(), Type: "task.taken_over", Project: seen.Project, Task: seen.ID, By: queueKey(), From: seen.State, To: seen.State,
			Text: fmt.Sprintf("worker %s is gone; %s continues", nameOf(seen.Worker), to)})
	})
	if err != nil {
		return false, fmt.Errorf("take over task %s: %w", seen.ID, err)
	}
	return took, nil
}

func nameOf(worker string) string {
	return cmp.Or(worker, "of an earlier version")
}
