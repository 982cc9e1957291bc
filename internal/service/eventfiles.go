package service

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"chorus/internal/chat"
	"chorus/internal/eventfile"
	"chorus/internal/id"
	"chorus/internal/journal"
	"chorus/internal/operation"
	"chorus/internal/operations"
	"chorus/internal/schedule"
)

// eventFiles does what event files say, with the rights and the money of the home's owner: only they can write there.
type eventFiles struct {
	*Handler
	owner chat.Principal
}

// EventFiles does what event files say.
func (o *Handler) EventFiles(owner chat.Principal) eventfile.Handler { return eventFiles{o, owner} }

// eventPlatform names what event files say, in arrivals and events.
const eventPlatform = "event"

// target is the thread in which an event is said.
func (f eventFiles) target(ctx context.Context, e eventfile.Event) (journal.Thread, error) {
	if e.Thread == "" {
		return journal.Thread{}, &eventfile.Rejected{Why: fmt.Sprintf("%.40q: an event can only be said in a conversation that is there; name it as threadId", e.Adapter)}
	}
	row, err := f.find(ctx, operation.Caller{Principal: f.owner, Scopes: operation.Scopes()}, e.Thread)
	if no := (*operation.Error)(nil); errors.As(err, &no) && no.Kind == operation.NotFound {
		return row, &eventfile.Rejected{Why: no.Message}
	}
	return row, err
}

// Say implements eventfile.Handler. What a full queue refuses is tried again later.
func (f eventFiles) Say(ctx context.Context, file, key string, e eventfile.Event) error {
	row, err := f.target(ctx, e)
	if err != nil {
		return err
	}
	who := actsFor(schedule.Schedule{ID: eventID(file), Owner: f.owner})
	u, err := f.utter(ctx, operation.Caller{Principal: who}, row, operations.SteerMessage{Message: e.Words(file)})
	if no := (*operation.Error)(nil); errors.As(err, &no) && no.Kind != operation.Failed {
		return &eventfile.Rejected{Why: no.Message}
	}
	if err != nil {
		return err
	}
	said, err := f.deliver(ctx, row, u, chat.Inbound{Principal: who, From: chat.Participant{ID: file, Name: "event", Kind: chat.System}, Platform: eventPlatform, PlatformID: key})
	if err == nil && said.Refused != "" {
		err = &eventfile.Rejected{Why: said.Refused}
	}
	return err
}

func eventID(file string) string { return id.Of("event", file) }

// Keep implements eventfile.Handler: an event with set times is a schedule. A file that changed is a new one.
func (f eventFiles) Keep(ctx context.Context, file, digest string, e eventfile.Event) (over bool, err error) {
	before, err := f.app.DB.Schedule(ctx, eventID(file))
	switch {
	case err == nil && before.Digest == digest:
		return before.Due.IsZero(), nil
	case err != nil && !errors.Is(err, journal.ErrUnknown):
		return false, err
	case err == nil:
		if _, err := f.app.DB.RemoveSchedule(ctx, before.ID); err != nil {
			return false, err
		}
	}
	row, err := f.target(ctx, e)
	if err != nil {
		return false, err
	}
	now := f.app.Now()
	s := schedule.Schedule{ID: eventID(file), Owner: f.owner, Thread: row.ID, Words: e.Words(file), Said: e.Schedule, Spec: e.Spec.String(), Zone: e.Zone,
		CatchUp: string(schedule.Last), Due: e.Spec.Next(now), Created: now, File: file, Digest: digest}
	if s.Due.IsZero() { // an instant that has passed is kept at once: nobody was there at its time
		s.Due = e.Spec.First()
	}
	s.Begins = s.Due
	if _, err := f.app.DB.AddSchedule(ctx, s); err != nil {
		return false, err
	}
	f.app.SchedulesChanged()
	return false, nil
}

// Only implements eventfile.Handler. What is over stays, for what became of it.
func (f eventFiles) Only(ctx context.Context, files []string) error {
	all, err := f.app.DB.Schedules(ctx, "")
	if err != nil {
		return err
	}
	for _, s := range all {
		if s.File == "" || s.Due.IsZero() {
			continue
		}
		if _, there := slices.BinarySearch(files, s.File); there {
			continue
		}
		if _, err := f.app.DB.RemoveSchedule(ctx, s.ID); err != nil {
			return err
		}
		f.app.SchedulesChanged()
	}
	return nil
}
