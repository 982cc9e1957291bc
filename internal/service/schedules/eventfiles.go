package schedules

import (
	"context"
	"errors"
	"slices"

	"chorus/internal/chat"
	"chorus/internal/eventfile"
	"chorus/internal/id"
	"chorus/internal/journal"
	"chorus/internal/operation"
	"chorus/internal/schedule"
)

// eventFiles runs event files with the rights and the money of the home's owner: only they can write there.
type eventFiles struct {
	*Handler
	owner chat.Principal
}

// EventFiles runs event files.
func (o *Handler) EventFiles(owner chat.Principal) eventfile.Handler { return eventFiles{o, owner} }

// eventPlatform marks messages of event files, in arrivals and events.
const eventPlatform = "event"

// target is where an event is posted: a thread, or a channel.
func (f eventFiles) target(ctx context.Context, e eventfile.Event) (journal.Thread, schedule.Target, error) {
	by := operation.Caller{Principal: f.owner, Scopes: operation.Scopes()}
	if e.Thread == "" {
		place, err := f.Channels.CheckTarget(ctx, schedule.Target{Adapter: e.Adapter, Channel: e.Channel}, by)
		return journal.Thread{}, place.Target, rejected(err)
	}
	row, err := f.sessions.Find(ctx, by, e.Thread)
	return row, schedule.Target{}, rejected(err)
}

// rejected marks an error as the fault of the file, if it is not a temporary problem.
func rejected(err error) error {
	if no := (*operation.Error)(nil); errors.As(err, &no) && no.Kind != operation.Failed && no.Kind != operation.Unavailable {
		return &eventfile.Rejected{Why: no.Message}
	}
	return err
}

// Say implements eventfile.Handler. If a full queue refuses it, it is tried again later.
func (f eventFiles) Say(ctx context.Context, file, key string, e eventfile.Event) error {
	row, channel, err := f.target(ctx, e)
	if err != nil {
		return err
	}
	who := actsFor(schedule.Schedule{ID: eventID(file), Owner: f.owner})
	from := chat.Participant{ID: file, Name: "event", Kind: chat.System}
	if channel.Adapter != "" {
		return f.Channels.OpenThread(ctx, Opening{Key: eventPlatform + "/" + key, Target: channel, By: who, From: from, Post: e.Text, Words: e.Words(file)})
	}
	said, err := f.sessions.SayUnattended(ctx, operation.Caller{Principal: who}, row, e.Words(file), chat.Inbound{Principal: who, From: from, Platform: eventPlatform, PlatformID: key})
	if err == nil && said.Refused != "" {
		err = &eventfile.Rejected{Why: said.Refused}
	}
	return err
}

func eventID(file string) string { return id.Of("event", file) }

// Keep implements eventfile.Handler: an event with set times becomes a schedule. A changed file is a new event.
func (f eventFiles) Keep(ctx context.Context, file, digest string, e eventfile.Event) (over bool, err error) {
	before, err := f.rows.Schedule(ctx, eventID(file))
	switch {
	case err == nil && before.Digest == digest:
		return before.Due.IsZero(), nil
	case err != nil && !errors.Is(err, journal.ErrUnknown):
		return false, err
	case err == nil:
		if _, err := f.rows.RemoveSchedule(ctx, before.ID); err != nil {
			return false, err
		}
	}
	row, channel, err := f.target(ctx, e)
	if err != nil {
		return false, err
	}
	now := f.app.Now()
	s := schedule.Schedule{ID: eventID(file), Owner: f.owner, Thread: row.ID, Target: channel, Words: e.Words(file), Said: e.Schedule, Spec: e.Spec.String(), Zone: e.Zone,
		CatchUp: string(schedule.Last), Due: e.Spec.Next(now), Created: now, File: file, Digest: digest}
	if s.Due.IsZero() { // a time that has passed is run at once, because nothing ran at that time
		s.Due = e.Spec.First()
	}
	s.Begins = s.Due
	if _, err := f.rows.AddSchedule(ctx, s); err != nil {
		return false, err
	}
	f.Changed()
	return false, nil
}

// Only implements eventfile.Handler. Ended schedules stay, for their history.
func (f eventFiles) Only(ctx context.Context, files []string) error {
	all, err := f.rows.Schedules(ctx, "")
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
		if _, err := f.rows.RemoveSchedule(ctx, s.ID); err != nil {
			return err
		}
		f.Changed()
	}
	return nil
}
