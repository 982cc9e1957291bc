// Package tasks keeps projects, repositories and tasks in the store's database.
//
// It guarantees:
//   - A task's row, its event and the effects on other tasks (those that waited for it) are written in one transaction.
//   - A task follows its thread: the event that begins, ends or halts a run moves the task in the same transaction, so a
//     killed process can never leave the two inconsistent.
//   - Every frequent query reads only what is not finished, however many finished tasks there are.
package tasks

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"chorus/internal/chat"
	"chorus/internal/database"
	"chorus/internal/journal"
	"chorus/internal/store"
	"chorus/internal/work"
)

// Tasks is the part of the store for the work queue. It may be used from any goroutine.
type Tasks struct {
	db      *store.DB
	written func()
}

// New returns the tasks in a store. written is called after every
// change, when there may be new events; it may be nil.
func New(db *store.DB, written func()) *Tasks {
	if written == nil {
		written = func() {}
	}
	return &Tasks{db, written}
}

// everybody is the name that all writers of tasks lock first, on every node: what becomes of one
// task depends on others, and its events are read in the order of their numbers.
const everybody = "work"

// write runs a function in a transaction and then calls written.
func (s *Tasks) write(ctx context.Context, change func(database.Tx) error) error {
	err := s.db.Write(ctx, func(tx database.Tx) error {
		if err := tx.Alone(everybody); err != nil {
			return err
		}
		return change(tx)
	})
	if err != nil {
		return err
	}
	s.written()
	return nil
}

const taskColumns = `id, project, parent, repo, agent, title, description, type, priority, state, attempt, retries, max_retries, COALESCE(not_before, 0),
	COALESCE(deadline, 0), approval, branch, pr, run_id, thread_id, owner, plan_source, why, origin, COALESCE(reminded_at, 0), created_at, moved_at, worker, resolves`

func scanTask(rows database.Scanner) (t work.Task, err error) {
	var notBefore, deadline, reminded, created, moved int64
	var owner string
	err = rows.Scan(&t.ID, &t.Project, &t.Parent, &t.Repo, &t.Agent, &t.Title, &t.Description, &t.Type, &t.Priority, &t.State, &t.Attempt, &t.Retries, &t.MaxRetries, &notBefore,
		&deadline, &t.Approval, &t.Branch, &t.PR, &t.Run, &t.Thread, &owner, &t.PlanSource, &t.Why, &t.Origin, &reminded, &created, &moved, &t.Worker, &t.Resolves)
	if err != nil {
		return t, err
	}
	if err := json.Unmarshal([]byte(owner), &t.Owner); err != nil {
		return t, fmt.Errorf("the owner of task %s cannot be read: %w", t.ID, err)
	}
	t.NotBefore, t.Deadline, t.Reminded, t.Created, t.Moved = instant(notBefore), instant(deadline), instant(reminded), instant(created), instant(moved)
	return t, nil
}

func instant(micros int64) time.Time {
	if micros == 0 {
		return time.Time{}
	}
	return time.UnixMicro(micros)
}

func nullable(t time.Time) any {
	if t.IsZero() {
		return nil
	}
	return t.UnixMicro()
}

// one returns exactly one thing, or fails with ErrUnknown.
func one[T any](found []T, err error, what, id string) (T, error) {
	var none T
	switch {
	case err != nil:
		return none, fmt.Errorf("%s %s: %w", what, id, err)
	case len(found) == 0:
		return none, fmt.Errorf("%s %s: %w", what, id, journal.ErrUnknown)
	}
	return found[0], nil
}

// Create creates a task with its thread and its event, and chooses its id and state.
// A task that needs others which are not completed waits for them. With a key that
// was used before, it returns the existing task.
func (s *Tasks) Create(ctx context.Context, n work.NewTask) (made work.Task, err error) {
	err = s.write(ctx, func(tx database.Tx) (err error) {
		made, err = CreateIn(tx, n)
		return err
	})
	if err != nil {
		return made, fmt.Errorf("create task: %w", err)
	}
	return made, nil
}

// CreateIn is Create inside a transaction.
func CreateIn(tx database.Tx, n work.NewTask) (work.Task, error) {
	t, now := n.Task, tx.Now()
	var key any
	if n.Key != "" {
		key = n.Key
		before, err := taskIn(tx, `made_by = ?`, n.Key)
		if err == nil || !errors.Is(err, journal.ErrUnknown) {
			return before, err
		}
	}
	var there int
	if err := tx.Row(`SELECT count(*) FROM projects WHERE id = ?`, []any{t.Project}, &there); err != nil || there == 0 {
		return t, errors.Join(err, fmt.Errorf("project %s: %w", t.Project, journal.ErrUnknown))
	}
	for tries := 0; t.ID == "" || there > 0; tries++ {
		t.ID = work.TaskID(rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64())), tries)
		if err := tx.Row(`SELECT count(*) FROM tasks WHERE id = ?`, []any{t.ID}, &there); err != nil {
			return t, err
		}
	}
	thread, err := chat.NewThreadID(chat.WorkTransport, t.Project, t.ID, t.Agent)
	if err != nil {
		return t, err
	}
	owner, err := json.Marshal(t.Owner)
	if err != nil {
		return t, err
	}
	t.Thread, t.Created, t.Moved, t.State = thread, now, now, work.Defined
	err = tx.Exec(`INSERT INTO tasks (id, project, parent, repo, agent, title, description, type, priority, state, attempt, retries, max_retries, not_before, deadline, approval,
		branch, pr, run_id, thread_id, owner, owner_key, plan_source, why, origin, made_by, created_at, moved_at, resolves) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 0, 0, ?, NULL, NULL, ?, ?, '', '', ?, ?, ?, ?, '', ?, ?, ?, ?, ?)`,
		t.ID, t.Project, t.Parent, t.Repo, t.Agent, t.Title, t.Description, t.Type, t.Priority, string(t.State), t.MaxRetries, t.Approval,
		t.Branch, string(t.Thread), string(owner), t.Owner.String(), t.PlanSource, string(t.Origin), key, now.UnixMicro(), now.UnixMicro(), t.Resolves)
	if err != nil {
		return t, err
	}
	if err := addNeeds(tx, t.ID, n.Needs); err != nil {
		return t, err
	}
	if err := store.CreateThread(tx, thread, journal.Thread{Agent: t.Agent, Owner: t.Owner, Title: t.Title}); err != nil {
		return t, err
	}
	if err := record(tx, work.Event{At: now, Type: "task.created", Project: t.Project, Task: t.ID, By: t.Owner.String(), To: t.State, Text: t.Title}); err != nil {
		return t, err
	}
	return promote(tx, t)
}

// promote makes a task ready if everything it needs is done.
func promote(tx database.Tx, t work.Task) (work.Task, error) {
	var missing int
	err := tx.Row(`SELECT count(*) FROM task_dependencies d LEFT JOIN tasks n ON n.id = d.needs WHERE d.task_id = ? AND n.state <> 'COMPLETED'`, []any{t.ID}, &missing)
	if err != nil || missing > 0 || t.State != work.Defined {
		return t, err
	}
	e, err := t.Take(work.DepsMet, chat.Principal{Kind: chat.TheSystem, ID: "queue"}.String(), tx.Now())
	if err != nil {
		return t, err
	}
	return t, save(tx, t, e)
}

// addNeeds makes a task need others, unless they would wait for each other.
func addNeeds(tx database.Tx, id string, needs []string) error {
	for _, n := range needs {
		if _, err := taskIn(tx, `id = ?`, n); err != nil {
			return fmt.Errorf("task %s: %w", n, err)
		}
	}
	path, err := work.Cycle(id, needs, func(task string) ([]string, error) { return needsOf(tx, task) })
	if err != nil {
		return err
	}
	if path != nil {
		return &work.CycleError{Path: path}
	}
	for _, n := range needs {
		if err := tx.Exec(`INSERT INTO task_dependencies (task_id, needs) VALUES (?, ?) ON CONFLICT DO NOTHING`, id, n); err != nil {
			return err
		}
	}
	return nil
}

func needsOf(tx database.Tx, task string) (list []string, err error) {
	err = tx.Rows(`SELECT needs FROM task_dependencies WHERE task_id = ? ORDER BY needs`, []any{task}, database.Column(&list))
	return list, err
}

func taskIn(tx database.Tx, where string, args ...any) (work.Task, error) {
	var found []work.Task
	err := tx.Rows(`SELECT `+taskColumns+` FROM tasks WHERE `+where, args, database.Collect(&found, scanTask))
	return one(found, err, "task", fmt.Sprint(args...))
}

// save writes a task's row and its events, and lets tasks continue that waited for it.
func save(tx database.Tx, t work.Task, events ...work.Event) error {
	return saveMerged(tx, t, false, events...)
}

// saveMerged is save for a task whose branch may have been merged by what happened.
func saveMerged(tx database.Tx, t work.Task, merged bool, events ...work.Event) error {
	err := tx.Exec(`UPDATE tasks SET repo = ?, agent = ?, title = ?, description = ?, type = ?, priority = ?, state = ?, attempt = ?, retries = ?, max_retries = ?, not_before = ?, deadline = ?,
		approval = ?, branch = ?, pr = ?, run_id = ?, worker = ?, why = ?, reminded_at = ?, moved_at = ? WHERE id = ?`,
		t.Repo, t.Agent, t.Title, t.Description, t.Type, t.Priority, string(t.State), t.Attempt, t.Retries, t.MaxRetries, nullable(t.NotBefore), nullable(t.Deadline),
		t.Approval, t.Branch, t.PR, t.Run, t.Worker, t.Why, nullable(t.Reminded), t.Moved.UnixMicro(), t.ID)
	if err != nil {
		return err
	}
	completed, resolved := false, false
	for _, e := range events {
		e.Text = cmp.Or(e.Text, t.Why)
		completed = completed || e.To == work.Completed && e.From != work.Completed
		resolved = resolved || e.To == work.Completed && e.Step != work.AdminSkip && e.Step != work.Overrides
		if err := record(tx, e); err != nil {
			return err
		}
	}
	if completed {
		if err := promoteDependents(tx, t.ID); err != nil {
			return err
		}
	}
	if resolved && t.Resolves != "" {
		if err := followResolution(tx, t); err != nil {
			return err
		}
	}
	if t.Parent == "" {
		return nil
	}
	for _, e := range events {
		if err := followStep(tx, t, e, merged || e.Step == work.PRMerged); err != nil {
			return err
		}
	}
	return nil
}

// followResolution retries the merge of a task whose conflict another one has
// resolved. git then says whether the branch can be merged.
func followResolution(tx database.Tx, t work.Task) error {
	first, err := taskIn(tx, `id = ?`, t.Resolves)
	if errors.Is(err, journal.ErrUnknown) {
		return nil // it was deleted meanwhile
	}
	if err != nil || !first.Conflicted() {
		return err // somebody has decided otherwise
	}
	e, err := first.Take(work.ConflictResolved, queueKey(), tx.Now())
	if err != nil {
		return err
	}
	first.Why, e.Text = "", "task "+t.ID+" has resolved its merge conflict"
	return save(tx, first, e)
}

func promoteDependents(tx database.Tx, id string) error {
	waiting, err := dependents(tx, id)
	if err != nil {
		return err
	}
	for _, d := range waiting {
		if _, err := promote(tx, d); err != nil {
			return err
		}
	}
	return nil
}

func dependents(tx database.Tx, id string) (list []work.Task, err error) {
	err = tx.Rows(`SELECT `+taskColumns+` FROM tasks WHERE id IN (SELECT task_id FROM task_dependencies WHERE needs = ?) ORDER BY priority, created_at, id`, []any{id}, database.Collect(&list, scanTask))
	return list, err
}

func record(tx database.Tx, e work.Event) error {
	return tx.Exec(`INSERT INTO work_events (at, type, project, task_id, by_key, from_state, to_state, step, text) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		e.At.UnixMicro(), e.Type, e.Project, e.Task, e.By, string(e.From), string(e.To), string(e.Step), e.Text)
}

// Change changes a task. The function gets the task as it is in the transaction
// and returns events describing its changes. An error leaves everything
// unchanged. The function may run more than once.
func (s *Tasks) Change(ctx context.Context, id string, change func(t *work.Task, now time.Time) ([]work.Event, error)) (changed work.Task, err error) {
	err = s.write(ctx, func(tx database.Tx) (err error) {
		if changed, err = taskIn(tx, `id = ?`, id); err != nil {
			return err
		}
		events, err := change(&changed, tx.Now())
		if err != nil {
			return err
		}
		return save(tx, changed, events...)
	})
	if err != nil {
		return changed, fmt.Errorf("change task %s: %w", id, err)
	}
	return changed, nil
}

// Depend makes a task need another. A task that was ready waits again.
func (s *Tasks) Depend(ctx context.Context, id, needs, by string) error {
	err := s.write(ctx, func(tx database.Tx) error {
		t, err := taskIn(tx, `id = ?`, id)
		if err != nil {
			return err
		}
		if err := addNeeds(tx, id, []string{needs}); err != nil {
			return err
		}
		event := work.Event{At: tx.Now(), Type: "task.dependency_added", Project: t.Project, Task: id, By: by, Text: needs}
		other, err := taskIn(tx, `id = ?`, needs)
		if err != nil {
			return err
		}
		if t.State == work.Ready && other.State != work.Completed {
			return save(tx, t, event, t.Override(work.Defined, by, tx.Now()))
		}
		return record(tx, event)
	})
	if err != nil {
		return fmt.Errorf("let task %s need %s: %w", id, needs, err)
	}
	return nil
}

// Undepend removes a dependency, or returns false if there was none.
func (s *Tasks) Undepend(ctx context.Context, id, needs, by string) (there bool, err error) {
	err = s.write(ctx, func(tx database.Tx) error {
		n, err := tx.Change(`DELETE FROM task_dependencies WHERE task_id = ? AND needs = ?`, id, needs)
		there = n > 0
		if err != nil || !there {
			return err
		}
		t, err := taskIn(tx, `id = ?`, id)
		if err != nil {
			return err
		}
		if err := record(tx, work.Event{At: tx.Now(), Type: "task.dependency_removed", Project: t.Project, Task: id, By: by, Text: needs}); err != nil {
			return err
		}
		_, err = promote(tx, t)
		return err
	})
	return there, err
}

// Delete removes a task with everything known about it except its conversation
// and its events. Tasks that waited for it no longer do.
func (s *Tasks) Delete(ctx context.Context, id, by string, may func(t work.Task, subtasks int) error) (gone work.Task, err error) {
	err = s.write(ctx, func(tx database.Tx) (err error) {
		if gone, err = taskIn(tx, `id = ?`, id); err != nil {
			return err
		}
		var subtasks int
		if err := tx.Row(`SELECT count(*) FROM tasks WHERE parent = ? AND parent <> ''`, []any{id}, &subtasks); err != nil {
			return err
		}
		if err := may(gone, subtasks); err != nil {
			return err
		}
		waiting, err := dependents(tx, id)
		if err != nil {
			return err
		}
		for _, query := range []string{`DELETE FROM tasks WHERE id = ?`, `DELETE FROM task_results WHERE task_id = ?`, `DELETE FROM merges WHERE task_id = ?`,
			`DELETE FROM plans WHERE task_id = ?`,
			`DELETE FROM task_dependencies WHERE task_id = ?`, `DELETE FROM task_dependencies WHERE needs = ?`} {
			if err := tx.Exec(query, id); err != nil {
				return err
			}
		}
		for _, d := range waiting {
			if _, err := promote(tx, d); err != nil {
				return err
			}
		}
		if gone.Parent != "" {
			if err := followSteps(tx, gone.Parent, false); err != nil {
				return err
			}
		}
		return record(tx, work.Event{At: tx.Now(), Type: "task.deleted", Project: gone.Project, Task: id, By: by, From: gone.State, Text: gone.Title})
	})
	if err != nil {
		return gone, fmt.Errorf("delete task %s: %w", id, err)
	}
	return gone, nil
}

// Task finds a task by its id, or fails with ErrUnknown.
func (s *Tasks) Task(ctx context.Context, id string) (work.Task, error) {
	found, err := s.tasks(ctx, `SELECT `+taskColumns+` FROM tasks WHERE id = ?`, id)
	return one(found, err, "task", id)
}

// OfThread finds the task of a thread.
func (s *Tasks) OfThread(ctx context.Context, thread chat.ThreadID) (work.Task, error) {
	found, err := s.tasks(ctx, `SELECT `+taskColumns+` FROM tasks WHERE thread_id = ?`, string(thread))
	return one(found, err, "task of thread", string(thread))
}

func (s *Tasks) tasks(ctx context.Context, query string, args ...any) (out []work.Task, err error) {
	err = s.db.Query(ctx, query, args, database.Collect(&out, scanTask))
	return out, err
}

// List returns a page of tasks: lowest priority number first, then oldest; or the last moved.
func (s *Tasks) List(ctx context.Context, f work.Filter) ([]work.Task, error) {
	var where []string
	var args []any
	add := func(condition string, values ...any) {
		where = append(where, condition)
		args = append(args, values...)
	}
	if f.Project != "" {
		add(`project = ?`, f.Project)
	}
	if f.Parent != "" {
		add(`parent = ? AND parent <> ''`, f.Parent)
	}
	if f.Resolves != "" {
		add(`resolves = ? AND resolves <> ''`, f.Resolves)
	}
	switch {
	case f.State != "":
		add(`state = ?`, string(f.State))
	case !f.All:
		add(`state NOT IN ('COMPLETED', 'FAILED', 'BLOCKED')`)
	}
	if f.After != "" {
		last, err := s.Task(ctx, f.After)
		if err != nil {
			return nil, err
		}
		if f.Newest {
			add(`(moved_at, id) < (?, ?)`, last.Moved.UnixMicro(), last.ID)
		} else {
			add(`(priority, created_at, id) > (?, ?, ?)`, last.Priority, last.Created.UnixMicro(), last.ID)
		}
	}
	if len(where) == 0 {
		where = []string{`1 = 1`}
	}
	order := `priority, created_at, id`
	if f.Newest {
		order = `moved_at DESC, id DESC`
	}
	return s.tasks(ctx, `SELECT `+taskColumns+` FROM tasks WHERE `+strings.Join(where, ` AND `)+` ORDER BY `+order+` LIMIT ?+0`, append(args, f.Limit)...)
}

// Count counts tasks by state, for a project or for all.
func (s *Tasks) Count(ctx context.Context, project string) (map[work.State]int, error) {
	query, args := `SELECT state, count(*) FROM tasks GROUP BY state`, []any{}
	if project != "" {
		query, args = `SELECT state, count(*) FROM tasks WHERE project = ? GROUP BY state`, []any{project}
	}
	out := map[work.State]int{}
	err := s.db.Query(ctx, query, args, database.Pairs(out))
	return out, err
}

// Needs returns the tasks that a task needs.
func (s *Tasks) Needs(ctx context.Context, id string) ([]work.Task, error) {
	return s.tasks(ctx, `SELECT `+taskColumns+` FROM tasks WHERE id IN (SELECT needs FROM task_dependencies WHERE task_id = ?) ORDER BY priority, created_at, id`, id)
}

// Dependents returns the tasks that need a task.
func (s *Tasks) Dependents(ctx context.Context, id string) ([]work.Task, error) {
	return s.tasks(ctx, `SELECT `+taskColumns+` FROM tasks WHERE id IN (SELECT task_id FROM task_dependencies WHERE needs = ?) ORDER BY priority, created_at, id`, id)
}
