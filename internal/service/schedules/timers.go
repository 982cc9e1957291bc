package schedules

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"chorus/internal/chat"
	"chorus/internal/database"
	"chorus/internal/id"
	"chorus/internal/journal"
	"chorus/internal/runsetup"
	"chorus/internal/schedule"
	"chorus/internal/service"
	"chorus/internal/store/schedules"
	"chorus/internal/text"
	"chorus/internal/tool"
	"chorus/internal/tool/timer"
)

// Limits for what an agent may plan in a room. It plans because somebody asked, or because of that, so the count starts
// when a person last spoke there. An agent that nobody talks to any more falls silent, whatever it plans.
const (
	maxTimers      = 10             // since a person spoke, including those that have fired
	maxAhead       = 50             // that are still to come
	maxActivations = 3              // of those, wishes to speak again
	maxActivateIn  = 24 * time.Hour // anything later is for a timer
	maxTimerIn     = 366 * 24 * time.Hour
	maxTimerNote   = 2000 // bytes
)

// roomTimers are the timers of an agent in a room: schedules like any other.
type roomTimers struct {
	app     *service.Service
	rows    *schedules.Store
	changed func()
	thread  chat.ThreadID
}

// RoomTimers returns the timers of an agent in a room. changed is called when one was set or cancelled.
func RoomTimers(app *service.Service, thread chat.ThreadID, changed func()) timer.Timers {
	return roomTimers{app, schedules.New(app.DB), changed, thread}
}

// Set implements timer.Timers.
func (t roomTimers) Set(ctx context.Context, n timer.New) (timer.Timer, error) {
	now := t.app.Now()
	spec, err := schedule.Parse(n.When, time.Local, now)
	if err != nil {
		return timer.Timer{}, tool.Mistake(err.Error())
	}
	s := schedule.Schedule{ID: id.Of("timer", string(t.thread), n.Key), Kind: schedule.Timer, Thread: t.thread, Words: n.Note, Said: n.When, Spec: spec.String(),
		CatchUp: string(schedule.Last), Due: spec.Next(now), Created: now}
	if n.Note == "" {
		s.Kind = schedule.SelfActivation
	}
	if before, err := t.rows.Schedule(ctx, s.ID); err == nil {
		return timer.Timer{ID: before.ID, Due: before.Due}, nil
	}
	most := maxTimerIn
	if s.Kind == schedule.SelfActivation {
		most = maxActivateIn
	}
	switch {
	case spec.Repeats():
		return timer.Timer{}, tool.Mistake("A timer comes once; name one time. Somebody can have it repeated with `schedule_add`, or `chorus schedule add`.")
	case s.Due.Before(now.Add(time.Minute)):
		return timer.Timer{}, tool.Mistake("That is too soon: a minute from now is the earliest.")
	case s.Due.After(now.Add(most)):
		return timer.Timer{}, tool.Mistake(fmt.Sprintf("That is too far away: it may be at most %d hours from now.", int(most.Hours())))
	case len(n.Note) > maxTimerNote:
		return timer.Timer{}, tool.Mistake(fmt.Sprintf("The note is too long: at most %d bytes.", maxTimerNote))
	case len(n.For) == 0:
		return timer.Timer{}, tool.Mistake("It is not known on whose words this is done.")
	}
	s.Begins, s.Owner = s.Due, timerOwner(n.For)
	if err := t.within(ctx, s.Kind); err != nil {
		return timer.Timer{}, err
	}
	if _, err := t.rows.AddSchedule(ctx, s); err != nil {
		return timer.Timer{}, err
	}
	t.changed()
	return timer.Timer{ID: s.ID, Due: s.Due}, nil
}

// timerOwner returns whose timer it is: a person who speaks in the run, else whoever had it started.
func timerOwner(senders []chat.Principal) chat.Principal {
	for _, p := range senders {
		if p.Depth() == 0 {
			return p
		}
	}
	return senders[0]
}

// within limits what an agent may set since a person spoke.
func (t roomTimers) within(ctx context.Context, kind schedule.Kind) error {
	since, err := t.lastPerson(ctx)
	if err != nil {
		return err
	}
	set, err := t.rows.SchedulesSet(ctx, t.thread, since)
	if err != nil {
		return err
	}
	ahead, err := t.rows.SchedulesIn(ctx, t.thread, maxAhead)
	if err != nil {
		return err
	}
	activates := func(s schedule.Schedule) bool { return s.Kind == schedule.SelfActivation }
	activations := 0
	for _, s := range set {
		if activates(s) {
			activations++
		}
	}
	switch {
	case kind == schedule.SelfActivation && slices.ContainsFunc(ahead, activates):
		return tool.Mistake("You will speak again already; cancel that first, or wait for it.")
	case kind == schedule.SelfActivation && activations >= maxActivations:
		return tool.Mistake(fmt.Sprintf("You have let yourself speak %d times since a person spoke here. Wait until somebody does.", activations))
	case len(set) >= maxTimers:
		return tool.Mistake(fmt.Sprintf("You have set %d timers since a person spoke here, and that is the most. Cancel one, or wait until somebody speaks.", len(set)))
	case len(ahead) >= maxAhead:
		return tool.Mistake(fmt.Sprintf("%d things are planned in this room, and that is the most. Cancel one first.", len(ahead)))
	}
	return nil
}

// lastPerson is when a person last spoke in the room; zero if that was long ago.
func (t roomTimers) lastPerson(ctx context.Context) (time.Time, error) {
	row, err := t.app.DB.Thread(ctx, t.thread)
	if err != nil {
		return time.Time{}, err
	}
	last := time.Unix(0, 0)
	for ev, err := range t.app.DB.AllEvents(ctx, t.thread, max(0, row.Next-lookedBack)) {
		if err != nil {
			return last, err
		}
		switch b := ev.Body.(type) {
		case chat.Received:
			if b.From.Kind == chat.Person {
				last = ev.At
			}
		case chat.Steered:
			if b.From.Kind == chat.Person {
				last = ev.At
			}
		}
	}
	return last, nil
}

// Cancel implements timer.Timers.
func (t roomTimers) Cancel(ctx context.Context, name string) error {
	s, err := t.rows.Schedule(ctx, strings.TrimSpace(name))
	if errors.Is(err, journal.ErrUnknown) || err == nil && (s.Thread != t.thread || s.Kind == schedule.Ordinary || s.Due.IsZero()) {
		return tool.Mistake("There is no such timer in this room; those there are stand in the note \"future\".")
	}
	if err != nil {
		return err
	}
	if _, err := t.rows.RemoveSchedule(ctx, s.ID); err != nil {
		return err
	}
	t.changed()
	return nil
}

// lookedBack is how many events are searched for when a person spoke.
const lookedBack = 1000

// maxFuture is how many planned things a model sees.
const maxFuture = 20

// FutureNote tells a model what is planned in its thread, and that it need not answer messages that nobody waits for.
func FutureNote(app *service.Service) runsetup.NoteSource {
	return runsetup.NoteSource{What: "future", Gone: "Nothing is planned here any more.", Text: func(ctx context.Context, at runsetup.NoteContext) (string, error) {
		list, err := schedules.New(app.DB).SchedulesIn(ctx, at.Row.ID, maxFuture)
		// One that is running at this moment is not in the future.
		list = slices.DeleteFunc(list, func(f schedule.Schedule) bool { return !f.Begins.After(app.Now()) })
		if err != nil || len(list) == 0 && !scheduledRun(at) {
			return "", err
		}
		var b strings.Builder
		b.WriteString("What a schedule, a timer or an event file says has nobody waiting for it: if there is nothing to say, answer exactly " + chat.SilentAnswer + " and nothing is posted.\n")
		if len(list) > 0 {
			b.WriteString("Planned in this conversation:\n")
		}
		for _, f := range list {
			b.WriteString("- " + planned(f) + "\n")
		}
		return b.String(), nil
	}, Rows: func(at runsetup.NoteContext) (database.Question, bool) {
		return schedules.AnyIn(at.Row.ID), !scheduledRun(at)
	}}
}

// scheduledRun reports whether a current or starting run was requested by a schedule.
func scheduledRun(at runsetup.NoteContext) bool {
	if run := at.Log.Run(); run != nil {
		return run.Principal.Kind == chat.ScheduleRule
	}
	waiting := at.Log.Waiting()
	return len(waiting) > 0 && waiting[0].Principal.Kind == chat.ScheduleRule
}

// planned formats one planned thing.
func planned(s schedule.Schedule) string {
	due, words := s.Due, text.Clip(strings.Join(strings.Fields(s.Words), " "), 120)
	if spec, err := s.Read(); err == nil {
		due = due.In(spec.Zone())
		if spec.Repeats() {
			return fmt.Sprintf("%s and on (%s): %s", due.Format("2006-01-02 15:04 MST"), s.Said, words)
		}
	}
	what := "says " + words
	switch s.Kind {
	case schedule.Timer:
		what = "your timer " + s.ID + ": " + words
	case schedule.SelfActivation:
		what = "you speak again by yourself (id " + s.ID + ")"
	}
	return due.Format("2006-01-02 15:04 MST") + " " + what
}
