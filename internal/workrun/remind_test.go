package workrun_test

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"chorus/internal/chat"
	"chorus/internal/store/tasks"
	"chorus/internal/work"
)

// events are those of a task with a type, the oldest first.
func (h *home) events(task, typ string) (out []work.Event) {
	h.t.Helper()
	all, err := h.queue.Events(h.t.Context(), work.EventFilter{Task: task, Limit: 500, Forward: true})
	if err != nil {
		h.t.Fatal(err)
	}
	for _, e := range all {
		if e.Type == typ {
			out = append(out, e)
		}
	}
	return out
}

func (h *home) pass(d time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.now = h.now.Add(d)
}

func (h *home) round() time.Time {
	h.t.Helper()
	next, err := h.Round(h.t.Context())
	if err != nil {
		h.t.Fatal(err)
	}
	h.Wait()
	return next
}

func TestPeopleAreRemindedOnceAcrossRestarts(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	h.Reminders = work.Reminders{Every: time.Hour, Escalate: 24 * time.Hour}
	h.worker = func(work.Task, string) chat.RunEnded { return done() }
	task := h.task("with approval", func(n *work.NewTask) { n.Approval = true })
	asked := h.settle(task.ID, work.AwaitingApproval)

	if next := h.round(); !next.Equal(asked.Moved.Add(time.Hour)) {
		t.Errorf("the queue sleeps until %s, not until the reminder at %s", next, asked.Moved.Add(time.Hour))
	}
	if n := len(h.events(task.ID, work.EventReminder)); n != 0 {
		t.Fatalf("%d reminders before their time", n)
	}
	h.pass(time.Hour)
	for range 3 { // the process ends and begins again, and looks more than once
		h.restart(h.Home)
		h.Reminders = work.Reminders{Every: time.Hour, Escalate: 24 * time.Hour}
		h.round()
		h.round()
	}
	if n := len(h.events(task.ID, work.EventReminder)); n != 1 {
		t.Errorf("%d reminders, want one", n)
	}
	if words := slices.Collect(maps.Values(h.told)); len(words) != 1 || !strings.Contains(words[0], "chorus task approve "+task.ID) {
		t.Errorf("the conversation was told %q", words)
	}
	h.pass(24 * time.Hour) // nobody looked meanwhile
	h.round()
	h.round()
	stuck := h.events(task.ID, work.EventStuck)
	if len(stuck) != 1 || !strings.Contains(stuck[0].Text, "25h") || len(h.events(task.ID, work.EventReminder)) != 1 {
		t.Errorf("escalated %d times: %+v", len(stuck), stuck)
	}
	if _, err := h.queue.Change(t.Context(), task.ID, func(t *work.Task, now time.Time) ([]work.Event, error) {
		e, err := t.Take(work.Approved, "local:ada", now)
		return []work.Event{e}, err
	}); err != nil {
		t.Fatal(err)
	}
	h.settle(task.ID, work.Completed)
	h.pass(48 * time.Hour)
	if h.round(); len(h.events(task.ID, work.EventStuck)) != 1 {
		t.Error("people are reminded of a task that they have approved")
	}
}

// A process that is killed after the conversation was told and before that was written down tells it the same once more.
func TestAReminderThatWasCutOffIsNotSaidTwice(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	h.worker = func(work.Task, string) chat.RunEnded { return done() }
	task := h.task("with approval", func(n *work.NewTask) { n.Approval = true })
	h.settle(task.ID, work.AwaitingApproval)
	h.pass(90 * time.Minute)
	h.Reminders = work.Reminders{Every: time.Hour}
	h.Tasks = cutOff{h.queue}
	if _, err := h.Round(t.Context()); err == nil {
		t.Fatal("the round ended well without writing")
	}
	h.Tasks = h.queue
	h.pass(time.Minute)
	h.round()
	if len(h.told) != 1 || len(h.events(task.ID, work.EventReminder)) != 1 {
		t.Errorf("told %q, written %d times", h.told, len(h.events(task.ID, work.EventReminder)))
	}
}

// cutOff is a store that writes no changes any more, as after a kill.
type cutOff struct{ *tasks.Tasks }

func (cutOff) Change(context.Context, string, func(*work.Task, time.Time) ([]work.Event, error)) (work.Task, error) {
	return work.Task{}, errKilled
}

var errKilled = errors.New("killed")
