package tasks

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"chorus/internal/database"
	"chorus/internal/journal"
	"chorus/internal/work"
)

const projectColumns = `id, name, weight, max_runs, state, token_limit, channel, owner, shared, created_at, approvers, on_conflict`

// CreateProject creates a project. It returns false, and writes nothing, if there is already one with this id.
func (s *Tasks) CreateProject(ctx context.Context, p work.Project) (bool, error) {
	owner, err := json.Marshal(p.Owner)
	if err != nil {
		return false, err
	}
	var made int64
	err = s.write(ctx, func(tx database.Tx) (err error) {
		made, err = tx.Change(`INSERT INTO projects (id, name, weight, max_runs, state, token_limit, channel, owner, owner_key, shared, created_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING`,
			p.ID, p.Name, p.Weight, p.MaxRuns, string(p.State), p.TokenLimit, p.Channel, string(owner), p.Owner.String(), p.Shared, tx.Now().UnixMicro())
		if err != nil || made == 0 {
			return err
		}
		return record(tx, work.Event{At: tx.Now(), Type: "project.created", Project: p.ID, By: p.Owner.String(), Text: p.Name})
	})
	if err != nil {
		return false, fmt.Errorf("create project %s: %w", p.ID, err)
	}
	return made == 1, nil
}

// Project finds a project by its id, or fails with ErrUnknown.
func (s *Tasks) Project(ctx context.Context, id string) (work.Project, error) {
	found, err := s.projects(ctx, `SELECT `+projectColumns+` FROM projects WHERE id = ?`, id)
	return one(found, err, "project", id)
}

// Projects lists all projects by id.
func (s *Tasks) Projects(ctx context.Context) ([]work.Project, error) {
	return s.projects(ctx, `SELECT `+projectColumns+` FROM projects ORDER BY id`)
}

// OfChannel finds the project that a channel belongs to, or fails with ErrUnknown.
func (s *Tasks) OfChannel(ctx context.Context, channel string) (work.Project, error) {
	found, err := s.projects(ctx, `SELECT `+projectColumns+` FROM projects WHERE channel = ? AND channel <> '' ORDER BY created_at, id LIMIT 1`, channel)
	return one(found, err, "project of channel", channel)
}

// AnyProject asks whether there are projects.
func AnyProject() database.Question {
	return database.Question{Query: `SELECT 1 FROM projects`}
}

func (s *Tasks) projects(ctx context.Context, query string, args ...any) (out []work.Project, err error) {
	err = s.db.Query(ctx, query, args, database.Collect(&out, scanProject))
	return out, err
}

func scanProject(rows database.Scanner) (p work.Project, err error) {
	var owner, approvers string
	var created int64
	if err := rows.Scan(&p.ID, &p.Name, &p.Weight, &p.MaxRuns, &p.State, &p.TokenLimit, &p.Channel, &owner, &p.Shared, &created, &approvers, &p.OnConflict); err != nil {
		return p, err
	}
	p.Created = instant(created)
	return p, errors.Join(json.Unmarshal([]byte(owner), &p.Owner), json.Unmarshal([]byte(approvers), &p.Approvers))
}

// ChangeProject changes a project and records what happened.
func (s *Tasks) ChangeProject(ctx context.Context, id string, change func(*work.Project) (work.Event, error)) (changed work.Project, err error) {
	err = s.write(ctx, func(tx database.Tx) error {
		var found []work.Project
		err := tx.Rows(`SELECT `+projectColumns+` FROM projects WHERE id = ?`, []any{id}, database.Collect(&found, scanProject))
		if changed, err = one(found, err, "project", id); err != nil {
			return err
		}
		e, err := change(&changed)
		if err != nil {
			return err
		}
		p := changed
		approvers, err := json.Marshal(append([]string{}, p.Approvers...))
		if err != nil {
			return err
		}
		if err := tx.Exec(`UPDATE projects SET name = ?, weight = ?, max_runs = ?, state = ?, token_limit = ?, channel = ?, shared = ?, approvers = ?, on_conflict = ? WHERE id = ?`,
			p.Name, p.Weight, p.MaxRuns, string(p.State), p.TokenLimit, p.Channel, p.Shared, string(approvers), p.OnConflict, id); err != nil {
			return err
		}
		e.At, e.Project = tx.Now(), id
		return record(tx, e)
	})
	if err != nil {
		return changed, fmt.Errorf("change project %s: %w", id, err)
	}
	return changed, nil
}

// DeleteProject removes a project with its tasks and repositories if may allows it. may gets the
// number of tasks that occupy a worker. Files, conversations and events remain.
func (s *Tasks) DeleteProject(ctx context.Context, id, by string, may func(running int) error) error {
	err := s.write(ctx, func(tx database.Tx) error {
		var there, running int
		if err := tx.Row(`SELECT count(*) FROM projects WHERE id = ?`, []any{id}, &there); err != nil {
			return err
		}
		if there == 0 {
			return journal.ErrUnknown
		}
		if err := tx.Row(`SELECT count(*) FROM tasks WHERE project = ? AND (state IN ('ASSIGNED', 'IN_PROGRESS', 'VERIFYING') OR run_id <> '')`, []any{id}, &running); err != nil {
			return err
		}
		if err := may(running); err != nil {
			return err
		}
		const ofProject = `(SELECT id FROM tasks WHERE project = ?)`
		for _, query := range []string{
			`DELETE FROM task_dependencies WHERE task_id IN ` + ofProject, `DELETE FROM task_dependencies WHERE needs IN ` + ofProject,
			`DELETE FROM merges WHERE task_id IN ` + ofProject, `DELETE FROM plans WHERE task_id IN ` + ofProject, `DELETE FROM task_results WHERE project = ?`, `DELETE FROM work_hours WHERE project = ?`, `DELETE FROM tasks WHERE project = ?`, `DELETE FROM repos WHERE project = ?`,
			`DELETE FROM projects WHERE id = ?`,
		} {
			if err := tx.Exec(query, id); err != nil {
				return err
			}
		}
		return record(tx, work.Event{At: tx.Now(), Type: "project.deleted", Project: id, By: by})
	})
	if err != nil {
		return fmt.Errorf("delete project %s: %w", id, err)
	}
	return nil
}

const repoColumns = `id, project, kind, url, path, branch, created_at`

// AddRepo registers a repository. It returns false if the project already has one with this name.
func (s *Tasks) AddRepo(ctx context.Context, r work.Repo, by string) (bool, error) {
	var made int64
	err := s.write(ctx, func(tx database.Tx) (err error) {
		made, err = tx.Change(`INSERT INTO repos (id, project, kind, url, path, branch, created_at) VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING`,
			r.ID, r.Project, string(r.Kind), r.URL, r.Path, r.Branch, tx.Now().UnixMicro())
		if err != nil || made == 0 {
			return err
		}
		return record(tx, work.Event{At: tx.Now(), Type: "repo.added", Project: r.Project, By: by, Text: r.ID})
	})
	if err != nil {
		return false, fmt.Errorf("add repo %s: %w", r.ID, err)
	}
	return made == 1, nil
}

// Repos lists the repositories of a project, or of all, in the order in which they were added.
func (s *Tasks) Repos(ctx context.Context, project string) (out []work.Repo, err error) {
	query, args := `SELECT `+repoColumns+` FROM repos ORDER BY project, created_at, id`, []any{}
	if project != "" {
		query, args = `SELECT `+repoColumns+` FROM repos WHERE project = ? ORDER BY created_at, id`, []any{project}
	}
	err = s.db.Query(ctx, query, args, database.Fill(&out, func(rows *sql.Rows, r *work.Repo) error {
		var created int64
		if err := rows.Scan(&r.ID, &r.Project, &r.Kind, &r.URL, &r.Path, &r.Branch, &created); err != nil {
			return err
		}
		r.Created = instant(created)
		return nil
	}))
	return out, err
}

// SetRepo records where a repository is stored and its default branch, once they are known.
func (s *Tasks) SetRepo(ctx context.Context, r work.Repo) error {
	return s.write(ctx, func(tx database.Tx) error {
		return tx.Exec(`UPDATE repos SET path = ?, branch = ? WHERE project = ? AND id = ?`, r.Path, r.Branch, r.Project, r.ID)
	})
}

// Events returns what happened, newest first unless f says otherwise.
func (s *Tasks) Events(ctx context.Context, f work.EventFilter) (out []work.Event, err error) {
	query, args := `SELECT id, at, type, project, task_id, by_key, from_state, to_state, step, text FROM work_events WHERE `, []any{}
	switch {
	case f.Task != "":
		query, args = query+`task_id = ? AND task_id <> '' AND `, append(args, f.Task)
	case f.Project != "":
		query, args = query+`project = ? AND `, append(args, f.Project)
	}
	switch {
	case f.Forward:
		query, args = query+`id > ? ORDER BY id`, append(args, f.After)
	case f.Before > 0:
		query, args = query+`id < ? ORDER BY id DESC`, append(args, f.Before)
	default:
		query += `id > 0 ORDER BY id DESC`
	}
	err = s.db.Query(ctx, query+` LIMIT ?+0`, append(args, f.Limit), database.Fill(&out, func(rows *sql.Rows, e *work.Event) error {
		var at int64
		if err := rows.Scan(&e.ID, &at, &e.Type, &e.Project, &e.Task, &e.By, &e.From, &e.To, &e.Step, &e.Text); err != nil {
			return err
		}
		e.At = instant(at)
		return nil
	}))
	return out, err
}

// Record writes an event that is not a task's move.
func (s *Tasks) Record(ctx context.Context, e work.Event) error {
	return s.write(ctx, func(tx database.Tx) error {
		e.At = tx.Now()
		return record(tx, e)
	})
}

// SpentBy sums what tasks have used since an instant, by project. The hour of the instant counts completely.
func (s *Tasks) SpentBy(ctx context.Context, since time.Time) (out []work.Spent, err error) {
	err = s.db.Query(ctx, `SELECT project, SUM(tokens), SUM(completed), SUM(attempts) FROM work_hours WHERE hour >= ? GROUP BY project ORDER BY 2 DESC, project`, []any{nullableZero(since) / hour}, database.Fill(&out, func(rows *sql.Rows, p *work.Spent) error {
		return rows.Scan(&p.Project, &p.Tokens, &p.Done, &p.Entries)
	}))
	return out, err
}

func nullableZero(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMicro()
}

// SpentOn sums what the attempts of a task, or of a project's tasks, have used, largest first.
func (s *Tasks) SpentOn(ctx context.Context, project, task string) (out []work.Spent, err error) {
	query, args := `SELECT project, task_id, agent, SUM(tokens), SUM(cost), count(*) FROM task_results WHERE project = ? GROUP BY project, task_id, agent ORDER BY 4 DESC, 2`, []any{project}
	if task != "" {
		query, args = `SELECT project, task_id, agent, SUM(tokens), SUM(cost), count(*) FROM task_results WHERE task_id = ? GROUP BY project, task_id, agent ORDER BY 4 DESC, 2`, []any{task}
	}
	err = s.db.Query(ctx, query, args, database.Fill(&out, func(rows *sql.Rows, p *work.Spent) error {
		return rows.Scan(&p.Project, &p.Task, &p.Agent, &p.Tokens, &p.Cost, &p.Entries)
	}))
	return out, err
}

// SpentDays sums what the attempts of a project's tasks have used on each day since an hour, oldest day first.
func (s *Tasks) SpentDays(ctx context.Context, project string, since time.Time) (out []work.SpentDay, err error) {
	err = s.db.Query(ctx, `SELECT hour / 24, SUM(tokens), SUM(cost) FROM work_hours WHERE project = ? AND hour >= ? GROUP BY 1 ORDER BY 1`, []any{project, since.Unix() / 3600}, database.Fill(&out, func(rows *sql.Rows, d *work.SpentDay) error {
		var day int64 // since 1970
		err := rows.Scan(&day, &d.Tokens, &d.Cost)
		d.Day = time.Unix(day*24*3600, 0).UTC().Format(time.DateOnly)
		return err
	}))
	return out, err
}

// Edges returns the dependencies between a project's tasks.
func (s *Tasks) Edges(ctx context.Context, project string) (out []work.Edge, err error) {
	err = s.db.Query(ctx, `SELECT d.task_id, d.needs FROM tasks t JOIN task_dependencies d ON d.task_id = t.id WHERE t.project = ? ORDER BY d.task_id, d.needs`, []any{project}, database.Fill(&out, func(rows *sql.Rows, e *work.Edge) error {
		return rows.Scan(&e.Task, &e.Needs)
	}))
	return out, err
}

// Results returns the attempts of a task, newest first.
func (s *Tasks) Results(ctx context.Context, task string) (out []work.Result, err error) {
	err = s.db.Query(ctx, `SELECT task_id, attempt, run_id, agent, outcome, summary, files, kind, error, tokens, cost, at FROM task_results WHERE task_id = ? ORDER BY attempt DESC`, []any{task}, database.Fill(&out, func(rows *sql.Rows, r *work.Result) error {
		var files string
		var at int64
		if err := rows.Scan(&r.Task, &r.Attempt, &r.Run, &r.Agent, &r.Outcome, &r.Summary, &files, &r.Kind, &r.Error, &r.Tokens, &r.Cost, &at); err != nil {
			return err
		}
		r.At = instant(at)
		return json.Unmarshal([]byte(files), &r.Files)
	}))
	return out, err
}

// EventReader returns how far a reader of events has come; 0 if it has read nothing.
func (s *Tasks) EventReader(ctx context.Context, name string) (at int64, err error) {
	err = s.db.Query(ctx, `SELECT seq FROM work_readers WHERE reader = ?`, []any{name}, func(rows *sql.Rows) error { return rows.Scan(&at) })
	return at, err
}

// MoveEventReader records that a reader is done with everything up to an event. It never moves back.
func (s *Tasks) MoveEventReader(ctx context.Context, name string, id int64) error {
	return s.db.Write(ctx, func(tx database.Tx) error {
		return tx.Exec(`INSERT INTO work_readers (reader, seq) VALUES (?, ?) ON CONFLICT (reader) DO UPDATE SET seq = CASE WHEN excluded.seq > work_readers.seq THEN excluded.seq ELSE work_readers.seq END`, name, id)
	})
}

// EventBefore returns the last event before an instant, or 0 if there is none.
func (s *Tasks) EventBefore(ctx context.Context, at time.Time) (id int64, err error) {
	err = s.db.Query(ctx, `SELECT id FROM work_events WHERE at < ? ORDER BY id DESC LIMIT 1`, []any{at.UnixMicro()}, func(rows *sql.Rows) error { return rows.Scan(&id) })
	return id, err
}
