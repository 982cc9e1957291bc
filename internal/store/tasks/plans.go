package tasks

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"chorus/internal/database"
	"chorus/internal/journal"
	"chorus/internal/work"
)

// FindPlan stores the plan that an attempt produced, with the attempt's
// result, and lets its task wait for approval.
func (s *Tasks) FindPlan(ctx context.Context, p work.Proposal, r work.Result, by, why string) (asked work.Task, err error) {
	outline, err := json.Marshal(p.Outline)
	if err != nil {
		return asked, err
	}
	err = s.write(ctx, func(tx database.Tx) error {
		t, err := taskIn(tx, `id = ?`, p.Task)
		if err != nil {
			return err
		}
		if t.Attempt != p.Attempt {
			return work.ErrMoved
		}
		now := tx.Now()
		e, err := t.Take(work.PlanFound, by, now)
		if err != nil {
			return err
		}
		t.Why, r.At = why, now
		if err := writeResult(tx, t.Project, r); err != nil {
			return err
		}
		if err := tx.Exec(`INSERT INTO plans (task_id, attempt, source, text, outline, state, by_key, at) VALUES (?, ?, ?, ?, ?, ?, '', ?)
			ON CONFLICT (task_id, attempt) DO UPDATE SET source = excluded.source, text = excluded.text, outline = excluded.outline, state = excluded.state, by_key = '', at = excluded.at`,
			p.Task, p.Attempt, p.Source, p.Text, string(outline), work.PlanIsFound, now.UnixMicro()); err != nil {
			return err
		}
		asked = t
		return save(tx, t, e)
	})
	if err != nil {
		return asked, fmt.Errorf("keep the plan of task %s: %w", p.Task, err)
	}
	return asked, nil
}

// PlanOf returns the last plan that a task produced, or fails with ErrUnknown.
func (s *Tasks) PlanOf(ctx context.Context, task string) (p work.Proposal, err error) {
	there := false
	err = s.db.Query(ctx, planQuery, []any{task}, func(rows *sql.Rows) error {
		there = true
		p, err = scanPlan(rows)
		return err
	})
	if err == nil && !there {
		err = fmt.Errorf("plan of task %s: %w", task, journal.ErrUnknown)
	}
	return p, err
}

const planQuery = `SELECT task_id, attempt, source, text, outline, state, by_key FROM plans WHERE task_id = ? ORDER BY attempt DESC LIMIT 1`

func scanPlan(rows *sql.Rows) (p work.Proposal, err error) {
	var outline string
	if err := rows.Scan(&p.Task, &p.Attempt, &p.Source, &p.Text, &outline, &p.State, &p.By); err != nil {
		return p, err
	}
	return p, json.Unmarshal([]byte(outline), &p.Outline)
}

// planIn returns the plan of the task's current attempt.
func planIn(tx database.Tx, t work.Task) (p work.Proposal, err error) {
	err = tx.Rows(planQuery, []any{t.ID}, func(rows *sql.Rows) error {
		p, err = scanPlan(rows)
		return err
	})
	if err == nil && (p.Task == "" || p.Attempt != t.Attempt) {
		err = fmt.Errorf("plan of task %s: %w", t.ID, journal.ErrUnknown)
	}
	return p, err
}

func decidePlan(tx database.Tx, p work.Proposal, state, by string) error {
	return tx.Exec(`UPDATE plans SET state = ?, by_key = ? WHERE task_id = ? AND attempt = ?`, state, by, p.Task, p.Attempt)
}

// errTooManySteps explains that a plan is too long. A plan is never carried out in part.
func errTooManySteps(n int) error {
	return fmt.Errorf("the plan has %d steps, and at most %d can become tasks: reject it and say how to shorten it", n, work.MaxPlanSteps)
}

// ApprovePlan makes tasks of the steps of a plan. Each needs the previous one, and all work
// on the branch of the planning task. Only the last one asks for approval of the result, if
// the task does. Everything happens in one transaction.
func (s *Tasks) ApprovePlan(ctx context.Context, id, by string) (parent work.Task, steps []work.Task, err error) {
	err = s.write(ctx, func(tx database.Tx) error {
		steps = nil
		t, err := taskIn(tx, `id = ?`, id)
		if err != nil {
			return err
		}
		e, err := t.Take(work.PlanApproved, by, tx.Now())
		if err != nil {
			return err
		}
		plan, err := planIn(tx, t)
		if err != nil {
			return err
		}
		if n := len(plan.Steps); n > work.MaxPlanSteps {
			return errTooManySteps(n)
		}
		if err := decidePlan(tx, plan, work.PlanIsApproved, by); err != nil {
			return err
		}
		t.Why, t.Retries = "", 0
		if err := save(tx, t, e); err != nil {
			return err
		}
		before := ""
		for i, step := range plan.Steps {
			n := work.NewTask{Key: fmt.Sprintf("plan/%s/%d/%d", t.ID, plan.Attempt, i), Task: work.Task{Project: t.Project, Parent: t.ID, Repo: t.Repo, Agent: t.Agent, Title: step.Title, Type: stepType(t.Type),
				Description: plan.Describe(t, i), Priority: t.Priority + i, MaxRetries: t.MaxRetries, Approval: t.Approval && i == len(plan.Steps)-1, Branch: t.Branch, Owner: t.Owner, PlanSource: plan.Source, Origin: t.Origin}}
			if before != "" {
				n.Needs = []string{before}
			}
			made, err := CreateIn(tx, n)
			if err != nil {
				return err
			}
			before, steps = made.ID, append(steps, made)
		}
		parent = t
		return nil
	})
	if err != nil {
		return parent, nil, fmt.Errorf("approve the plan of task %s: %w", id, err)
	}
	return parent, steps, nil
}

// stepType returns the type of a step's task: carrying out a plan is not planning.
func stepType(of string) string {
	if of == "plan" {
		return ""
	}
	return of
}

// RejectPlan returns a task to its worker with feedback on the plan.
func (s *Tasks) RejectPlan(ctx context.Context, id, by, feedback string) (work.Task, error) {
	return s.decide(ctx, id, by, work.PlanRejected, work.PlanIsRejected, func(t *work.Task) {
		t.Retries, t.NotBefore, t.Why = 0, time.Time{}, ""
		t.Description += "\n\n---\n**Feedback on the plan:**\n" + feedback
	})
}

// DeletePlan accepts what a task produced as its result and not as a plan.
func (s *Tasks) DeletePlan(ctx context.Context, id, by string) (work.Task, error) {
	return s.decide(ctx, id, by, work.PlanDeleted, work.PlanIsDeleted, func(t *work.Task) { t.Why = "" })
}

func (s *Tasks) decide(ctx context.Context, id, by string, step work.Step, state string, with func(*work.Task)) (changed work.Task, err error) {
	err = s.write(ctx, func(tx database.Tx) error {
		if changed, err = taskIn(tx, `id = ?`, id); err != nil {
			return err
		}
		e, err := changed.Take(step, by, tx.Now())
		if err != nil {
			return err
		}
		plan, err := planIn(tx, changed)
		if err != nil {
			return err
		}
		if err := decidePlan(tx, plan, state, by); err != nil {
			return err
		}
		with(&changed)
		return save(tx, changed, e)
	})
	if err != nil {
		return changed, fmt.Errorf("decide on the plan of task %s: %w", id, err)
	}
	return changed, nil
}

// ResumePlan continues a task whose plan is stuck: its blocked or failed steps become ready again,
// with all their tries. It returns false if the task has no plan in progress.
func (s *Tasks) ResumePlan(ctx context.Context, id, by string) (parent work.Task, resumed bool, err error) {
	err = s.write(ctx, func(tx database.Tx) error {
		resumed = false
		if parent, err = taskIn(tx, `id = ?`, id); err != nil {
			return err
		}
		plan, err := planIn(tx, parent)
		if errors.Is(err, journal.ErrUnknown) {
			return nil
		}
		if err != nil || plan.State != work.PlanIsApproved || !parent.State.Over() || parent.State == work.Completed {
			return err
		}
		resumed = true
		e, err := parent.Take(work.AdminResume, by, tx.Now())
		if err != nil {
			return err
		}
		parent.Why = ""
		if err := save(tx, parent, e); err != nil {
			return err
		}
		steps, err := stepsIn(tx, id)
		if err != nil {
			return err
		}
		for _, step := range steps {
			if step.State != work.Blocked && step.State != work.Failed {
				continue
			}
			e, err := step.Take(work.AdminRestart, by, tx.Now())
			if err != nil {
				return err
			}
			step.Retries, step.NotBefore, step.Why = 0, time.Time{}, ""
			if err := save(tx, step, e); err != nil {
				return err
			}
		}
		if err := followSteps(tx, id, false); err != nil {
			return err
		}
		parent, err = taskIn(tx, `id = ?`, id)
		return err
	})
	if err != nil {
		return parent, resumed, fmt.Errorf("resume the plan of task %s: %w", id, err)
	}
	return parent, resumed, nil
}

// StrayRuns returns the steps of plans that are still running although their parent was stopped.
func (s *Tasks) StrayRuns(ctx context.Context) ([]work.Task, error) {
	return s.tasks(ctx, `SELECT `+taskColumns+` FROM tasks WHERE run_id <> '' AND parent <> '' AND state IN ('IN_PROGRESS', 'WAITING_INPUT') AND EXISTS (SELECT 1 FROM tasks p WHERE p.id = tasks.parent AND p.state = 'BLOCKED')`)
}

// parentIn returns the task whose plan a task is a step of, or the zero task.
func parentIn(tx database.Tx, t work.Task) (work.Task, error) {
	if t.Parent == "" {
		return work.Task{}, nil
	}
	return taskIn(tx, `id = ?`, t.Parent)
}

func stepsIn(tx database.Tx, parent string) (list []work.Task, err error) {
	err = tx.Rows(`SELECT `+taskColumns+` FROM tasks WHERE parent = ? AND parent <> '' ORDER BY priority, created_at, id`, []any{parent}, database.Collect(&list, scanTask))
	return list, err
}

// openSteps counts the steps of a plan that are not completed, except for one.
func openSteps(tx database.Tx, parent, but string) (n int, err error) {
	err = tx.Row(`SELECT count(*) FROM tasks WHERE parent = ? AND parent <> '' AND id <> ? AND state <> 'COMPLETED'`, []any{parent, but}, &n)
	return n, err
}

// followStep updates the task whose plan a step belongs to according to what happened to the step.
func followStep(tx database.Tx, t work.Task, e work.Event, merged bool) error {
	if e.From == e.To {
		return nil
	}
	if work.Resumes(e) {
		parent, err := parentIn(tx, t)
		if err != nil {
			return err
		}
		if _, illegal := work.Next(parent.State, work.AdminResume); illegal == nil && parent.Run == "" {
			resumed, err := parent.Take(work.AdminResume, e.By, tx.Now())
			if err != nil {
				return err
			}
			parent.Why = ""
			if err := save(tx, parent, resumed); err != nil {
				return err
			}
		}
	}
	return followSteps(tx, t.Parent, merged)
}

// followSteps updates a task according to the states of the steps of its plan.
func followSteps(tx database.Tx, id string, merged bool) error {
	parent, err := taskIn(tx, `id = ?`, id)
	if err != nil {
		return err
	}
	if parent.Run != "" {
		return nil // its own worker is running
	}
	steps, err := stepsIn(tx, id)
	if err != nil {
		return err
	}
	states := make([]work.State, len(steps))
	for i, s := range steps {
		states[i] = s.State
	}
	step := work.AfterStep(parent.State, states, merged)
	if step == "" {
		return nil
	}
	e, err := parent.Take(step, queueKey(), tx.Now())
	if err != nil {
		return err
	}
	parent.Why = ""
	if at := slices.IndexFunc(steps, func(s work.Task) bool { return s.State == work.Blocked || s.State == work.Failed }); step == work.PlanStuck && at >= 0 {
		parent.Why = fmt.Sprintf("step %s (%s) of its plan is %s: %s", steps[at].ID, steps[at].Title, steps[at].State, steps[at].Why)
	}
	return save(tx, parent, e)
}
