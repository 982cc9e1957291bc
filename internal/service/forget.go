package service

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"chorus/internal/chat"
	"chorus/internal/id"
	"chorus/internal/journal"
	"chorus/internal/operation"
	"chorus/internal/operations"
	"chorus/internal/service/savedcontext"
	"chorus/internal/settings"
)

// forgetBatch is how many messages one transaction forgets.
const forgetBatch = 100

// ForgetPerson implements the operation of that name. It may be repeated: forgotten messages are not found again.
func (o *Handler) ForgetPerson(ctx context.Context, by operation.Caller, in operations.ForgetRequest) (operations.Forgotten, error) {
	kind, name, ok := strings.Cut(in.Person, ":")
	if !ok || kind == "" || name == "" {
		return operations.Forgotten{}, operation.InvalidField("person", "%.80q is not a person; write kind:id as in `chorus audit list --json`, such as local:ada", in.Person)
	}
	deletions, texts, err := o.saidBy(ctx, in.Person, name)
	if err != nil {
		return operations.Forgotten{}, err
	}
	out := operations.Forgotten{Person: in.Person, Sessions: len(deletions), DryRun: in.DryRun}
	for _, list := range deletions {
		out.Messages += len(list)
	}
	saved, err := o.app.Contexts.With(ctx, texts)
	if err != nil {
		return out, err
	}
	out.Contexts = len(saved)
	if in.DryRun {
		return out, nil
	}
	// First the audit line: what follows may be repeated.
	if err := o.Record(ctx, by, "", "forget "+in.Person, fmt.Sprintf("%d messages in %d sessions, %d saved contexts", out.Messages, out.Sessions, out.Contexts)); err != nil {
		return out, err
	}
	for _, thread := range slices.Sorted(maps.Keys(deletions)) {
		for batch := range slices.Chunk(deletions[thread], forgetBatch) {
			c := journal.Commit{Thread: thread}
			for _, d := range batch {
				c.Events = append(c.Events, chat.Event{Thread: thread, Who: by.Principal.String(), Body: d})
			}
			if _, err := o.app.DB.Commit(ctx, c); err != nil {
				return out, err
			}
		}
		if err := o.app.Mirror(ctx, thread); err != nil {
			return out, err
		}
	}
	told := savedcontext.Forgotten(settings.Forgotten{Threads: slices.Sorted(maps.Keys(deletions))}, saved)
	if err := o.app.Settings.TellForgotten(ctx, id.New(), told); err != nil { // before the rows that name the files are removed
		return out, err
	}
	if err := o.app.Contexts.Remove(ctx, saved); err != nil {
		return out, err
	}
	if err := o.app.DB.ForgetPrincipal(ctx, in.Person); err != nil {
		return out, err
	}
	if err := o.app.Images.Clear(); err != nil {
		return out, fmt.Errorf("remove fetched pictures: %w", err)
	}
	_, err = o.app.DB.IndexNew(ctx)
	return out, err
}

// saidBy returns the messages of somebody in each thread, as the deletions that would forget them, and their texts.
func (o *Handler) saidBy(ctx context.Context, person, name string) (map[chat.ThreadID][]chat.Deleted, []string, error) {
	out := map[chat.ThreadID][]chat.Deleted{}
	var texts []string
	places, err := o.app.DB.SaidBy(ctx, person)
	if err != nil {
		return nil, nil, err
	}
	for _, p := range places {
		ev, err := o.app.DB.Event(ctx, p.Thread, p.Seq)
		if err != nil {
			return nil, nil, err
		}
		if wasForgotten(ev.Body) {
			continue
		}
		switch b := ev.Body.(type) {
		case chat.Received:
			texts = append(texts, b.Blocks.Text())
		case chat.Steered:
			texts = append(texts, b.Blocks.Text())
		}
		out[p.Thread] = append(out[p.Thread], chat.Deleted{Seq: p.Seq, Forget: true})
	}
	read, err := o.app.DB.ReadOf(ctx, name)
	for thread, messages := range read {
		for _, message := range messages {
			out[thread] = append(out[thread], chat.Deleted{Message: message, Forget: true})
		}
	}
	return out, texts, err
}
