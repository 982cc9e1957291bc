// Package schedules implements the operations on schedules, and sends the messages of schedules, timers and event files when they are due.
package schedules

import (
	"cmp"
	"context"
	"errors"
	"strings"
	"time"

	"chorus/internal/chat"
	"chorus/internal/id"
	"chorus/internal/journal"
	"chorus/internal/operation"
	"chorus/internal/operations"
	"chorus/internal/schedule"
	"chorus/internal/schedule/clock"
	"chorus/internal/service"
	"chorus/internal/store/schedules"
)

// Handler implements the operations on schedules.
type Handler struct {
	Options
	app      *service.Service
	sessions *service.Handler
	rows     *schedules.Store
}

// Options are what a Handler needs besides sessions.
type Options struct {
	// Channels are those of the chat platforms.
	Channels Channels
	// Changed is called when this process added or changed schedules.
	Changed func()
}

// New returns a handler that uses another one for sessions and their messages.
func New(app *service.Service, sessions *service.Handler, o Options) *Handler {
	return &Handler{o, app, sessions, schedules.New(app.DB)}
}

var _ operations.Schedules = (*Handler)(nil)

const (
	// shownTimes is how many future dates are shown.
	shownTimes = 5
	// shownDues is how many past due times are shown.
	shownDues = 20
	// maxJitter keeps a due time near its date.
	maxJitter = 24 * time.Hour
)

// when parses a time in words; spec always has a next time.
func when(text, zone string, now time.Time) (schedule.Spec, error) {
	place, err := schedule.Zone(zone)
	if err != nil {
		return schedule.Spec{}, operation.InvalidField("zone", "%s", err)
	}
	spec, err := schedule.Parse(text, place, now)
	if err != nil {
		return schedule.Spec{}, operation.InvalidField("when", "%s", err)
	}
	return spec, nil
}

// PreviewSchedule implements the operation of that name.
func (o *Handler) PreviewSchedule(_ context.Context, _ operation.Caller, in operations.ScheduleTimes) (operations.SchedulePreview, error) {
	spec, err := when(in.When, in.Zone, o.app.Now())
	if err != nil {
		return operations.SchedulePreview{}, err
	}
	return operations.SchedulePreview{Spec: spec.String(), Zone: spec.Zone().String(), Next: upcoming(spec, o.app.Now())}, nil
}

// upcoming returns the next times of what was just parsed; now if it is due at once.
func upcoming(spec schedule.Spec, now time.Time) []time.Time {
	if next := spec.Upcoming(now, shownTimes); len(next) > 0 {
		return next
	}
	return []time.Time{spec.First()}
}

// AddSchedule implements the operation of that name.
func (o *Handler) AddSchedule(ctx context.Context, by operation.Caller, in operations.NewSchedule) (operations.Schedule, error) {
	now := o.app.Now()
	spec, err := when(in.When, in.Zone, now)
	if err != nil {
		return operations.Schedule{}, err
	}
	s := schedule.Schedule{ID: id.New(), Owner: by.Principal, Words: in.Text, Said: in.When, Spec: spec.String(), Zone: in.Zone, CatchUp: in.CatchUp, Due: upcoming(spec, now)[0], Created: now}
	if in.Key != "" {
		s.ID = id.Of("schedule", by.Principal.String(), in.Key)
		if before, err := o.rows.Schedule(ctx, s.ID); err == nil {
			return o.showSchedule(before), nil
		}
	}
	s.CatchUp = cmp.Or(s.CatchUp, string(schedule.Last))
	if in.Jitter != "" {
		if s.Jitter, err = time.ParseDuration(in.Jitter); err != nil || s.Jitter < 0 || s.Jitter > maxJitter {
			return operations.Schedule{}, operation.InvalidField("jitter", "jitter must be a time like 5m, at most 24h, not %q", in.Jitter)
		}
	}
	s.Begins = s.Begin(s.Due)
	if err := o.aim(ctx, by, &s, in); err != nil {
		return operations.Schedule{}, err
	}
	if _, err := o.rows.AddSchedule(ctx, s); err != nil {
		return operations.Schedule{}, err
	}
	o.Changed()
	return o.showSchedule(s), nil
}

// aim determines where a new schedule posts.
func (o *Handler) aim(ctx context.Context, by operation.Caller, s *schedule.Schedule, in operations.NewSchedule) error {
	if transport, place, _ := strings.Cut(by.Here, ":"); in.Session == "" && in.Channel == "" && chat.OnPlatform(transport) {
		// In a session held elsewhere, nobody here would see it.
		in.Adapter, in.Channel = transport, place[strings.LastIndexByte(place, '/')+1:]
	}
	if in.Adapter != "" || in.Channel != "" {
		switch {
		case in.Adapter == "" || in.Channel == "":
			return operation.InvalidField("channelId", "a channel needs both adapterId and channelId")
		case in.Session != "" || in.Workspace != "":
			return operation.InvalidField("channelId", "a schedule posts in a channel or in a session; leave out one of them")
		}
		place, err := o.Channels.CheckTarget(ctx, schedule.Target{Adapter: in.Adapter, Channel: in.Channel, Agent: in.Agent}, by)
		s.Target = place.Target
		return err
	}
	row, err := o.scheduledIn(ctx, by, s.ID, in)
	if err != nil {
		return err
	}
	s.Thread = row.ID
	return o.sessions.CheckScheduledPlace(row.ID, row.Dir)
}

// scheduledIn returns the session in which a schedule posts: an existing one, or a new one.
func (o *Handler) scheduledIn(ctx context.Context, by operation.Caller, key string, in operations.NewSchedule) (journal.Thread, error) {
	name := in.Session
	if name == "" {
		if in.Workspace != "" { // before a session is created
			if err := o.sessions.CheckScheduledPlace("", in.Workspace); err != nil {
				return journal.Thread{}, err
			}
		}
		title := []rune(in.Text)
		made, err := o.sessions.CreateSession(ctx, by, operations.NewSession{WorkspacePath: in.Workspace, Agent: in.Agent, Title: string(title[:min(len(title), 80)]), Key: key})
		if err != nil {
			return journal.Thread{}, err
		}
		name = made.SessionID
	} else if in.Agent != "" || in.Workspace != "" {
		return journal.Thread{}, operation.InvalidField("session", "a session already has its agent and folder; leave them out")
	}
	return o.sessions.Find(ctx, by, name)
}

// ListSchedules implements the operation of that name.
func (o *Handler) ListSchedules(ctx context.Context, by operation.Caller, _ operation.None) (out operation.List[operations.Schedule], err error) {
	owner := by.Principal.String()
	if by.May(operation.Admin) {
		owner = ""
	} else if owner == "" {
		return out, nil
	}
	rows, err := o.rows.Schedules(ctx, owner)
	for _, s := range rows {
		out.Items = append(out.Items, o.showSchedule(s))
	}
	return out, err
}

// GetSchedule implements the operation of that name.
func (o *Handler) GetSchedule(ctx context.Context, by operation.Caller, in operations.ScheduleRef) (operations.Schedule, error) {
	s, err := o.findSchedule(ctx, by, in.ID)
	if err != nil {
		return operations.Schedule{}, err
	}
	runs, err := o.rows.ScheduleRuns(ctx, s.ID, shownDues)
	shown := o.showSchedule(s)
	for _, r := range runs {
		where := cmp.Or(r.Thread, s.Thread)
		outcome, err := o.outcome(ctx, where, r.Seq)
		if err != nil {
			return shown, err
		}
		shown.Runs = append(shown.Runs, operations.ScheduleRun{Due: r.Due, State: r.State, Outcome: outcome, Seq: r.Seq, SessionID: r.Thread.Thread(), Why: r.Why, At: r.At})
	}
	return shown, err
}

// PauseSchedule implements the operation of that name.
func (o *Handler) PauseSchedule(ctx context.Context, by operation.Caller, in operations.ScheduleRef) (operations.Schedule, error) {
	return o.changeSchedule(ctx, by, in, true)
}

// ResumeSchedule implements the operation of that name. Times that passed while it was paused are not made up for.
func (o *Handler) ResumeSchedule(ctx context.Context, by operation.Caller, in operations.ScheduleRef) (operations.Schedule, error) {
	return o.changeSchedule(ctx, by, in, false)
}

func (o *Handler) changeSchedule(ctx context.Context, by operation.Caller, in operations.ScheduleRef, pause bool) (operations.Schedule, error) {
	s, err := o.findSchedule(ctx, by, in.ID)
	switch {
	case err != nil:
		return operations.Schedule{}, err
	case s.Due.IsZero():
		return operations.Schedule{}, operation.Errorf(operation.Conflict, "schedule %s has ended; add a new one", s.ID)
	case !pause && s.Paused:
		spec, err := s.Read()
		if err != nil {
			return operations.Schedule{}, err
		}
		if s.Due = spec.Next(o.app.Now()); s.Due.IsZero() {
			return operations.Schedule{}, operation.Errorf(operation.Conflict, "schedule %s was due while it was paused and has ended; add a new one", s.ID)
		}
		s.Begins = s.Begin(s.Due)
	}
	s.Paused = pause
	if err := o.rows.PauseSchedule(ctx, s.ID, pause, s.Due, s.Begins); err != nil {
		return operations.Schedule{}, err
	}
	o.Changed()
	return o.showSchedule(s), nil
}

// RemoveSchedule implements the operation of that name.
func (o *Handler) RemoveSchedule(ctx context.Context, by operation.Caller, in operations.ScheduleRef) (operation.None, error) {
	s, err := o.findSchedule(ctx, by, in.ID)
	if err != nil {
		return operation.None{}, err
	}
	if s.File != "" && !s.Due.IsZero() {
		return operation.None{}, operation.Errorf(operation.Conflict, "it comes from the file %s in the folder events and would come back; remove that file", s.File)
	}
	if there, err := o.rows.RemoveSchedule(ctx, s.ID); err != nil {
		return operation.None{}, err
	} else if !there {
		return operation.None{}, noSchedule(in.ID)
	}
	o.Changed()
	return operation.None{}, nil
}

// findSchedule finds a schedule that the caller may see.
func (o *Handler) findSchedule(ctx context.Context, by operation.Caller, name string) (schedule.Schedule, error) {
	s, err := o.rows.Schedule(ctx, name)
	switch {
	case errors.Is(err, journal.ErrUnknown):
		return s, noSchedule(name)
	case err != nil:
		return s, err
	case !by.May(operation.Admin) && (by.Principal.ID == "" || s.Owner.Person().String() != by.Principal.String()):
		return s, noSchedule(name)
	}
	return s, nil
}

// noSchedule is the error for a schedule that does not exist or belongs to somebody else.
func noSchedule(name string) error {
	return operation.Errorf(operation.NotFound, "there is no schedule %.64q; `chorus schedule list` lists them", name)
}

func (o *Handler) showSchedule(s schedule.Schedule) operations.Schedule {
	shown := operations.Schedule{ID: s.ID, When: s.Said, Spec: s.Spec, Zone: s.Zone, Text: s.Words, Owner: s.Owner.Person().String(), OwnerName: s.Owner.Person().Label(), Agent: cmp.Or(s.Thread.Agent(), s.Target.Agent), SessionID: s.Thread.Thread(),
		Kind: string(s.Kind), Adapter: s.Target.Adapter, Channel: s.Target.Channel, CatchUp: s.CatchUp, Due: s.Due, Status: "active", File: s.File, CreatedAt: s.Created}
	if s.Jitter > 0 {
		shown.Jitter = s.Jitter.String()
	}
	spec, err := s.Read()
	if err == nil {
		shown.Zone = spec.Zone().String()
	}
	switch {
	case s.Due.IsZero():
		shown.Status = "over"
	case s.Paused:
		shown.Status = "paused"
	case s.Held:
		shown.Status = "deleted"
	case err == nil:
		shown.Due = s.Due.In(spec.Zone())
		shown.Next = append([]time.Time{shown.Due}, spec.Upcoming(s.Due, shownTimes-1)...)
	}
	return shown
}

// actsFor returns a schedule as a principal: with its owner's rights and money.
func actsFor(s schedule.Schedule) chat.Principal {
	return chat.Principal{Kind: chat.ScheduleRule, ID: s.ID, Name: "schedule", For: &s.Owner}
}

// schedulePlatform marks messages of schedules, in arrivals and events.
const schedulePlatform = "schedule"

// Say sends a schedule's message to its thread, or posts it in its channel, once per due time.
func (o *Handler) Say(ctx context.Context, s schedule.Schedule, due time.Time) (clock.Said, error) {
	if why, err := o.sessions.Lapsed(ctx, s.Owner.Person()); err != nil || why != "" {
		return clock.Said{Refused: why}, err
	}
	if s.Target != (schedule.Target{}) {
		return o.sayInChannel(ctx, s, due)
	}
	row, err := o.app.DB.Thread(ctx, s.Thread)
	if errors.Is(err, journal.ErrUnknown) {
		return clock.Said{Refused: "the session no longer exists"}, nil
	}
	if err != nil {
		return clock.Said{}, err
	}
	if said, over, err := o.overBudget(ctx, s, row, due); over || err != nil {
		return said, err
	}
	if s.Kind != schedule.Ordinary {
		return o.wakeRoom(ctx, s, due)
	}
	who := actsFor(s)
	said, err := o.sessions.SayUnattended(ctx, operation.Caller{Principal: who}, row, s.Words,
		chat.Inbound{Principal: who, From: fromSchedule(s), Platform: schedulePlatform, PlatformID: dueKey(s.ID, due)})
	return clock.Said{Seq: said.Seq, Refused: said.Refused}, err
}
