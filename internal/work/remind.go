package work

import (
	"fmt"
	"time"
)

// Reminders say how often people are told that a task waits for their yes.
type Reminders struct {
	Every    time.Duration // between two reminders; 0: none
	Escalate time.Duration // after how long it counts as stuck, and how often that is said; 0: never
}

// The events of a task that waits for a yes.
const (
	EventReminder = "task.approval_reminder"
	EventStuck    = "task.approval_stuck"
)

// Next is when people are told the next time that a task waits; zero: never. It depends on the task alone, so that a process which
// begins anew comes to the same instant.
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

// stuck is from when on a task counts as stuck; zero: never.
func (r Reminders) stuck(t Task) time.Time {
	if r.Escalate <= 0 {
		return time.Time{}
	}
	return t.Moved.Add(r.Escalate)
}

// Remind reminds people of a task if it is due, and gives the event that says so; false: it is not. However many times have passed while
// nobody looked, it is said once.
func (r Reminders) Remind(t *Task, by string, now time.Time) (Event, bool) {
	due := r.Next(*t)
	if due.IsZero() || now.Before(due) {
		return Event{}, false
	}
	e := Event{At: now, Type: EventReminder, Project: t.Project, Task: t.ID, By: by, From: t.State, To: t.State, Text: "waits for a yes since " + since(now.Sub(t.Moved)) + ": " + t.Title}
	if stuck := r.stuck(*t); !stuck.IsZero() && !now.Before(stuck) {
		e.Type, e.Text = EventStuck, fmt.Sprintf("Stuck task: nobody has said yes or no for %s: %s", since(now.Sub(t.Moved)), t.Title)
	}
	t.Reminded = now
	return e, true
}

// since is a time that has passed, as people say it.
func since(d time.Duration) string {
	if d < time.Hour {
		return fmt.Sprintf("%dm", int(d.Minutes()))
	}
	return fmt.Sprintf("%dh", int(d.Hours()))
}
