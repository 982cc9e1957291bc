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
	"chorus/internal/room/mention"
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
	deletions, said, err := o.saidBy(ctx, in.Person)
	if err != nil {
		return operations.Forgotten{}, err
	}
	out := operations.Forgotten{Person: in.Person, Sessions: len(deletions), DryRun: in.DryRun}
	for _, list := range deletions {
		out.Messages += len(list)
	}
	saved, err := o.app.Contexts.With(ctx, said)
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
	// Then the saved contexts: once the journal has forgotten the words, quotations of them are not found again.
	if err := o.app.Settings.TellForgotten(ctx, id.New(), savedcontext.Forgotten(settings.Forgotten{}, saved)); err != nil { // before the rows that name the files are removed
		return out, err
	}
	if err := o.app.Contexts.Remove(ctx, saved); err != nil {
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
	if err := o.app.Settings.TellForgotten(ctx, id.New(), settings.Forgotten{Threads: slices.Sorted(maps.Keys(deletions))}); err != nil {
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

// saidBy returns what somebody said: in each thread, as the deletions that would forget it, and all of it, also what was
// forgotten before, to find it in saved contexts.
func (o *Handler) saidBy(ctx context.Context, person string) (map[chat.ThreadID][]chat.Deleted, *savedcontext.Said, error) {
	out, who := map[chat.ThreadID][]chat.Deleted{}, chat.PrincipalOf(person)
	said := savedcontext.NewSaid(who)
	name, err := o.app.DB.PrincipalName(ctx, person)
	if err != nil {
		return nil, nil, err
	}
	said.Name(name)
	places, err := o.app.DB.SaidBy(ctx, person)
	if err != nil {
		return nil, nil, err
	}
	for _, p := range places {
		ev, err := o.app.DB.Event(ctx, p.Thread, p.Seq)
		if err != nil {
			return nil, nil, err
		}
		addSaid(said, ev)
		if !wasForgotten(ev.Body) {
			out[p.Thread] = append(out[p.Thread], chat.Deleted{Seq: p.Seq, Forget: true})
		}
	}
	read, err := o.app.DB.ReadOf(ctx, who.ID)
	if err != nil {
		return nil, nil, err
	}
	var messages []string
	for thread, lines := range read {
		for _, line := range lines {
			addWords(said, line.From, line.Blocks)
			if ids := strings.Fields(line.ID); len(ids) > 0 {
				messages = append(messages, ids...)
				out[thread] = append(out[thread], chat.Deleted{Message: ids[0], Forget: true})
			}
		}
	}
	edits, err := o.app.DB.EditsOf(ctx, places, messages)
	for _, ev := range edits {
		addSaid(said, ev)
	}
	return out, said, err
}

// addSaid adds an event to what somebody said.
func addSaid(said *savedcontext.Said, ev chat.Event) {
	said.Event(ev.Thread, ev.Seq)
	if wasForgotten(ev.Body) {
		return
	}
	switch b := ev.Body.(type) {
	case chat.Received:
		addWords(said, b.From, b.Blocks)
	case chat.Steered:
		addWords(said, b.From, b.Blocks)
	case chat.Edited:
		addWords(said, chat.Participant{}, b.Blocks)
	}
}

// addWords adds a message to what somebody said: what they typed, alone and together with what follows it, such as the preview of a link.
func addWords(said *savedcontext.Said, from chat.Participant, blocks chat.Blocks) {
	if from.Kind == chat.System {
		return // Chorus said it in their name
	}
	said.Name(from.Name)
	words, _ := blocks.Apart()
	text := mention.WithoutReply(words.Text())
	said.Text(text)
	if len(words) > 1 {
		said.Text(mention.WithoutReply(words[:1].Text()))
	}
}
