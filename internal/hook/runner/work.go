package runner

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"chorus/internal/bus"
	"chorus/internal/chat"
	"chorus/internal/hook"
	"chorus/internal/journal"
	"chorus/internal/work"
)

// WorkStore is the part of the store that the source of work events reads.
type WorkStore interface {
	Events(context.Context, work.EventFilter) ([]work.Event, error)
	Task(ctx context.Context, id string) (work.Task, error)
	// EventReader returns how far a reader has come; 0 if it has read nothing.
	EventReader(ctx context.Context, name string) (int64, error)
	MoveEventReader(ctx context.Context, name string, id int64) error
	// EventBefore returns the last event before an instant, or 0.
	EventBefore(ctx context.Context, at time.Time) (int64, error)
}

// Work is the source of events of projects, tasks, repositories and notes. Its
// position is stored in the transaction that writes a hook's run.
type Work struct {
	db   WorkStore
	news *bus.Subscription
	at   int64 // the last event read; -1: use the stored position
	kept int64 // the stored position
}

// WorkReader is the name under which this source stores its position.
const WorkReader = "hooks/work"

const (
	workBatch = 200
	// keepEvery is after how many events that triggered nothing the
	// position is stored. Later events may be read again.
	keepEvery = 500
)

// WorkTypes returns the events of the work queue, with the names used in triggers.
func WorkTypes() (out []string) {
	for _, name := range work.EventTypes() {
		out = append(out, hook.EventName(name))
	}
	return out
}

// NewWork returns the source of the work queue's events. The bus wakes it.
func NewWork(db WorkStore, b *bus.Bus) *Work {
	return &Work{db: db, news: b.Subscribe(work.EventsWritten), at: -1}
}

var _ Source = (*Work)(nil)

// Wake implements Source.
func (w *Work) Wake() <-chan struct{} { return w.news.Wake() }

// Close ends its subscription.
func (w *Work) Close() { w.news.Close() }

// Pass implements Source. The first hook to exist determines when events begin to count.
func (w *Work) Pass(context.Context) error {
	w.news.Take()
	w.at = -1
	return nil
}

// Read implements Source.
func (w *Work) Read(ctx context.Context, since time.Time, take func(Happened) error) error {
	w.news.Take()
	if w.at < 0 {
		kept, err := w.db.EventReader(ctx, WorkReader)
		if err != nil {
			return err
		}
		before, err := w.db.EventBefore(ctx, since)
		if err != nil {
			return err
		}
		w.at, w.kept = max(kept, before), kept
	}
	for {
		events, err := w.db.Events(ctx, work.EventFilter{After: w.at, Forward: true, Limit: workBatch})
		if err != nil {
			return err
		}
		for _, e := range events {
			if !e.At.Before(since) {
				what, err := w.happened(ctx, e)
				if err != nil {
					return err
				}
				if err := take(what); err != nil {
					return err
				}
			}
			w.at = e.ID
		}
		if w.at-w.kept >= keepEvery {
			if err := w.db.MoveEventReader(ctx, WorkReader, w.at); err != nil {
				return err
			}
			w.kept = w.at
		}
		if len(events) < workBatch {
			return nil
		}
	}
}

// workTask is what templates and conditions see of a task, in its state when the event is read.
type workTask struct {
	ID       string `json:"id"`
	Title    string `json:"title"`
	Status   string `json:"status"`
	Priority int    `json:"priority"`
	Type     string `json:"task_type,omitempty"`
	Agent    string `json:"agent,omitempty"`
	Repo     string `json:"repo_id,omitempty"`
	Branch   string `json:"branch,omitempty"`
	PR       string `json:"pr_url,omitempty"`
	Parent   string `json:"parent_task_id,omitempty"`
	Owner    string `json:"owner,omitempty"`
	Attempt  int    `json:"attempt"`
	Retries  int    `json:"retry_count"`
}

// workEvent is an event as templates and conditions see it.
type workEvent struct {
	Type    string    `json:"event_type"`
	ID      int64     `json:"event_id"`
	At      time.Time `json:"timestamp"`
	Project string    `json:"project_id,omitempty"`
	TaskID  string    `json:"task_id,omitempty"`
	By      string    `json:"by,omitempty"`
	From    string    `json:"from,omitempty"`
	To      string    `json:"to,omitempty"`
	Step    string    `json:"step,omitempty"`
	Text    string    `json:"text,omitempty"`
	Task    *workTask `json:"task,omitempty"`
}

func (w *Work) happened(ctx context.Context, e work.Event) (Happened, error) {
	name := hook.EventName(e.Type)
	shown := workEvent{Type: name, ID: e.ID, At: e.At.UTC(), Project: e.Project, TaskID: e.Task, By: e.By, From: string(e.From), To: string(e.To), Step: string(e.Step), Text: e.Text}
	event := hook.Event{Key: fmt.Sprintf("work/%d", e.ID), Type: name, At: e.At, Project: e.Project}
	cause := principalOf(e.By)
	if e.Task != "" {
		t, err := w.db.Task(ctx, e.Task)
		if err != nil && !errors.Is(err, journal.ErrUnknown) {
			return Happened{}, err
		}
		if err == nil {
			event.Thread = t.Thread
			shown.Task = &workTask{ID: t.ID, Title: t.Title, Status: string(t.State), Priority: t.Priority, Type: t.Type, Agent: t.Agent, Repo: t.Repo, Branch: t.Branch, PR: t.PR, Parent: t.Parent,
				Owner: t.Owner.String(), Attempt: t.Attempt, Retries: t.Retries}
			if cause.Kind != chat.HookRule {
				cause = t.Owner // what a task does is done for whoever asked for it, including a hook
			}
		}
	}
	data, err := json.Marshal(shown)
	if err != nil {
		return Happened{}, err
	}
	event.Data = hook.BoundData(data, nil)
	return Happened{Reader: WorkReader, Seq: e.ID, Events: []hook.Event{event}, Cause: func() (chat.Principal, error) { return cause, nil }}, nil
}

// principalOf returns the principal of a key. The key does not say on whose behalf they acted.
func principalOf(key string) chat.Principal {
	kind, id, _ := strings.Cut(key, ":")
	return chat.Principal{Kind: chat.PrincipalKind(kind), ID: id}
}
