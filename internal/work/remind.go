package work

import (
	"fmt"
	"time"
)

// Reminders say how often people are told that a task waits for approval.
type Reminders struct {
	Every    time.Duration // time between two reminders; 0: none
	Escalate time.Duration // when it counts as stuck, and how often that is reported; 0: never
}

// The events of a task that waits for approval.
const (
	EventReminder = "task.approval_reminder"
	EventStuck    = "task.approval_stuck"
)

// Next returns when people are next told that a task waits, or zero for never. It depends only
// on the task, so that a restarted process computes the same instant.
func (r Reminders) Next(t Task) time.Time {
	if !t.State.AsksForYes() {
		return time.Time{}
	}
	last := t.Moved
	if t.Reminded.After(last) {
		last = t.Reminded
	}
	stuck := r.stuck(t)
	switch {
	case !stuck.IsZero() && !last.Before(stuck):
		return last.Add(r.Escalate)
	case r.Every > 0 && (stuck.IsZero() || last.Add(r.Every).Before(stuck)):
		return last.Add(r.Every)
	default:
		return stuck
	}
}

// stuck returns when a task begins to count as stuck, or zero for never.
func (r Reminders) stuck(t Task) time.Time {
	if r.Escalate <= 0 {
		return time.Time{}
	}
	return t.Moved.Add(r.Escalate)
}

// Remind records a reminder for a task if one is due, and returns its event, or false if none is
// due. However many times have passed unnoticed, there is one reminder.
func (r Reminders) Remind(t *Task, by string, now time.Time) (Event, bool) {
	due := r.Next(*t)
	if due.IsZero() || now.Before(due) {
		return Event{}, false
	}
	e := Event{At: now, Type: EventReminder, Project: t.Project, Task: t.ID, By: by, From: t.State, To: t.State, Text: "has waited for approval for " + since(now.Sub(t.Moved)) + ": " + t.Title}
	if stuck := r.stuck(*t); !stuck.IsZero() && !now.Before(stuck) {
		e.Type, e.Text = EventStuck, fmt.Sprintf("Stuck task: nobody has said yes or no for %s: %s", since(now.Sub(t.Moved)), t.Title)
	}
	t.Reminded = now
	return e, true
}

// since formats an elapsed time for people.
func since(d time.Duration) string {
	if d < time.Hour {
		return fmt.Sprintf("%dm", int(d.Minutes()))
	}
	return fmt.Sprintf("%dh", int(d.Hours()))
}
