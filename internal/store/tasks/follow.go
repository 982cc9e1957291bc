package tasks

import (
	"database/sql"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"chorus/internal/chat"
	"chorus/internal/database"
	"chorus/internal/journal"
	"chorus/internal/work"
)

// Follow updates the task of a thread according to what happens in that thread,
// inside the transaction that writes it. It is a store.Follower.
func Follow(tx database.Tx, thread chat.ThreadID, e chat.Event) error {
	if !strings.HasPrefix(string(thread), chat.WorkTransport+":") {
		return nil
	}
	switch e.Body.(type) {
	case chat.Took, chat.AbortAsked, chat.ApprovalAsked, chat.ApprovalAnswered, chat.RunEnded:
	default:
		return nil
	}
	if err := tx.Alone(everybody); err != nil {
		return err
	}
	t, err := taskIn(tx, `thread_id = ?`, string(thread))
	if errors.Is(err, journal.ErrUnknown) {
		return nil // the task was deleted; its conversation stays
	}
	if err != nil {
		return err
	}
	switch body := e.Body.(type) {
	case chat.Took:
		return follow(tx, t, work.Assigned, work.AgentStarted, e.Who, func(t *work.Task) { t.Run = body.Run })
	case chat.AbortAsked:
		if _, err := work.Next(t.State, work.AdminStop); err != nil {
			return nil // nothing to stop
		}
		return follow(tx, t, t.State, work.AdminStop, body.By, func(t *work.Task) { t.Why = "stopped by " + body.By })
	case chat.ApprovalAsked:
		if body.During {
			return nil // the asking command still occupies its worker
		}
		return follow(tx, t, work.InProgress, work.AgentQuestion, e.Who, func(t *work.Task) { t.Why = "asks: " + body.Name })
	case chat.ApprovalAnswered:
		return follow(tx, t, work.WaitingInput, work.HumanReplied, body.By, func(t *work.Task) { t.Why = "" })
	case chat.RunEnded:
		return followEnd(tx, t, body, e.Who)
	}
	return nil
}

// follow takes a step if the task is in the state where the step begins.
func follow(tx database.Tx, t work.Task, in work.State, step work.Step, by string, with func(*work.Task)) error {
	if t.State != in {
		return nil
	}
	e, err := t.Take(step, by, tx.Now())
	if err != nil {
		return err
	}
	with(&t)
	return save(tx, t, e)
}

// followEnd records the result of the attempt and moves the task on. If somebody moved
// the task meanwhile, the end of the run only frees its worker.
func followEnd(tx database.Tx, t work.Task, end chat.RunEnded, by string) error {
	if t.Run != end.Run {
		return nil // this run is a conversation about the task, not an attempt
	}
	now := tx.Now()
	c := work.Ended(t, end, now)
	r := work.Result{Task: t.ID, Attempt: t.Attempt, Run: end.Run, Agent: t.Agent, Outcome: c.Outcome, Kind: c.Kind, Error: c.Why, Tokens: int64(end.Usage.Total()), Cost: end.Cost, At: now}
	t.Run = ""
	var events []work.Event
	if t.State == work.WaitingInput {
		e, err := t.Take(work.HumanReplied, by, now)
		if err != nil {
			return err
		}
		events = append(events, e)
	}
	if t.State == work.InProgress {
		e, err := t.Take(c.Step, by, now)
		if err != nil {
			return err
		}
		events = append(events, e)
		t.Retries, t.NotBefore, t.Why = c.Retries, c.NotBefore, c.Why
	} else if r.Outcome == work.OutcomeCompleted {
		r.Outcome, r.Kind, r.Error = work.OutcomeStopped, work.ErrorStopped, t.Why // it came too late to count
	}
	if err := writeResult(tx, t.Project, r); err != nil {
		return err
	}
	return save(tx, t, events...)
}

// writeResult writes what is known of an attempt and adds it to the sums of its hour. An
// attempt is counted once, with its usage when it was first written.
func writeResult(tx database.Tx, project string, r work.Result) error {
	files, err := json.Marshal(append([]string{}, r.Files...))
	if err != nil {
		return err
	}
	at, before, attempts := r.At.UnixMicro(), "", 0
	switch err := tx.Row(`SELECT outcome, at FROM task_results WHERE task_id = ? AND attempt = ?`, []any{r.Task, r.Attempt}, &before, &at); {
	case errors.Is(err, sql.ErrNoRows):
		attempts = 1
	case err != nil:
		return err
	default:
		r.Tokens, r.Cost = 0, 0
	}
	completed := number(r.Outcome == work.OutcomeCompleted) - number(before == string(work.OutcomeCompleted))
	err = tx.Exec(`INSERT INTO work_hours (project, hour, tokens, cost, attempts, completed) VALUES (?, ?, ?, ?, ?, ?)
		ON CONFLICT (project, hour) DO UPDATE SET tokens = work_hours.tokens + excluded.tokens, cost = work_hours.cost + excluded.cost,
			attempts = work_hours.attempts + excluded.attempts, completed = work_hours.completed + excluded.completed`,
		project, at/hour, r.Tokens, r.Cost, attempts, completed)
	if err != nil {
		return err
	}
	return tx.Exec(`INSERT INTO task_results (task_id, attempt, project, run_id, agent, outcome, summary, files, kind, error, tokens, cost, at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
		ON CONFLICT (task_id, attempt) DO UPDATE SET outcome = excluded.outcome, summary = CASE WHEN excluded.summary = '' THEN task_results.summary ELSE excluded.summary END,
		files = CASE WHEN excluded.files = '[]' THEN task_results.files ELSE excluded.files END, kind = excluded.kind, error = excluded.error`,
		r.Task, r.Attempt, project, r.Run, r.Agent, string(r.Outcome), r.Summary, string(files), string(r.Kind), r.Error, r.Tokens, r.Cost, at)
}

// hour is an hour in the unit of our columns.
const hour = int64(time.Hour / time.Microsecond)

func number(yes bool) int {
	if yes {
		return 1
	}
	return 0
}
