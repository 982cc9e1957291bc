package commands

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"chorus/internal/chat"
	"chorus/internal/connector"
	"chorus/internal/journal"
	"chorus/internal/operation"
	"chorus/internal/platform"
	"chorus/internal/room"
	"chorus/internal/room/mark"
	"chorus/internal/room/split"
	"chorus/internal/room/threadname"
	"chorus/internal/text"
)

// maxHere is how many conversations of a channel a command reaches, newest first.
const maxHere = 1000

// mine returns the conversations of a channel that somebody may change: all for those
// who manage it, otherwise those they started or asked for.
func (b *Set) mine(ctx context.Context, o request) (mine []journal.Thread, others int, err error) {
	rows, err := b.hereMost(ctx, o.in, maxHere)
	for _, row := range rows {
		if o.Allowed.ManageMessages || b.Asker(ctx, row.ID, o.by.ID) {
			mine = append(mine, row)
		} else {
			others++
		}
	}
	return mine, others, err
}

// notYours is shown to those who may not change other people's conversations.
const notYours = "These conversations are not all yours. The person who started one can do this, or somebody who may manage messages."

func (b *Set) clearContext(ctx context.Context, o request) platform.Answer {
	rows, others, err := b.mine(ctx, o)
	if err != nil {
		return says(b.UserMessage(err))
	}
	if name := o.Text["thread"]; name != "" {
		row, err := b.named(ctx, o.in, name)
		if err != nil {
			return says(b.UserMessage(err))
		}
		if !slices.ContainsFunc(rows, func(r journal.Thread) bool { return r.ID == row.ID }) {
			return says("Somebody else started that conversation. They can clear it, or somebody who may manage messages.")
		}
		rows, others = []journal.Thread{row}, 0
	}
	cleared, messages, busy := 0, 0, 0
	for _, row := range rows {
		if on(row) && (!o.Flag["stop"] || !b.halted(ctx, row, o.by)) {
			busy++
			continue
		}
		n, err := b.Backend.ClearContext(ctx, row.ID, o.by)
		if operation.KindOf(err) == operation.Conflict {
			busy++ // it started meanwhile, or a waiting prompt did
			continue
		}
		if err != nil {
			return says(b.UserMessage(err))
		}
		if n > 0 {
			cleared++
			messages += n
		}
	}
	var out strings.Builder
	switch {
	case cleared > 0:
		fmt.Fprintf(&out, "Cleared %s of %s. They stay in the journal; the agent starts over.", text.Count(messages, "message"), text.Count(cleared, "conversation"))
	case busy == 0 && len(rows) == 0 && others > 0:
		return says(notYours)
	case busy == 0:
		return says("There is nothing to clear.")
	}
	if busy > 0 {
		fmt.Fprintf(&out, " %s still running and was not cleared; use `stop` to stop and clear it.", text.CountOf(busy, "conversation is", "conversations are"))
	}
	return says(strings.TrimSpace(out.String()))
}

// haltTime is how long a run may take to stop.
const haltTime = 30 * time.Second

// halted stops a conversation's run and waits for its end.
func (b *Set) halted(ctx context.Context, row journal.Thread, by chat.Principal) bool {
	ctx, cancel := context.WithTimeout(ctx, haltTime)
	defer cancel()
	if _, err := b.Backend.Abort(ctx, row.ID, by.String(), false); err != nil {
		return false
	}
	for item, err := range b.Backend.Watch(ctx, row.ID, row.Next-1) {
		if err != nil {
			return false
		}
		if item.Event != nil {
			if _, over := item.Event.Body.(chat.RunEnded); over {
				return true
			}
		}
	}
	return false
}

func (b *Set) saveContext(ctx context.Context, o request) platform.Answer {
	rows, err := b.hereMost(ctx, o.in, maxHere)
	if err != nil {
		return says(b.UserMessage(err))
	}
	var agents []string
	by := map[string][]journal.Thread{}
	for _, row := range rows {
		if by[row.Agent] == nil {
			agents = append(agents, row.Agent)
		}
		by[row.Agent] = append(by[row.Agent], row)
	}
	if len(agents) == 0 {
		agents = []string{""}
	}
	var out strings.Builder
	for _, agent := range agents {
		saved, err := b.Backend.SaveContext(ctx, by[agent], o.by, o.Text["description"])
		if err != nil {
			out.WriteString(b.UserMessage(err) + "\n")
			continue
		}
		fmt.Fprintf(&out, "Saved as `%s`: %s with **%s**. Nothing was cleared.\n", saved.ID, text.Count(saved.Messages, "message"), saved.Agent)
		fmt.Fprintf(&out, "> %s\n", strings.ReplaceAll(split.Clip(saved.Summary, 1200), "\n", "\n> "))
		out.WriteString(mark.Small("`/context restore "+short(saved.ID)+"` brings it back") + "\n")
	}
	return says(strings.TrimSpace(out.String()))
}

// short is the part of an id that people see.
func short(id string) string { return id[:min(len(id), 8)] }

func (b *Set) savedContexts(ctx context.Context, o request) platform.Answer {
	list, err := b.Backend.SavedContexts(ctx, "", o.in.Place())
	if err != nil {
		return says(b.UserMessage(err))
	}
	var out strings.Builder
	for _, s := range list {
		fmt.Fprintf(&out, "- `%s` %s **%s**, %s%s: %s\n", short(s.ID), mark.Time(s.At), s.Agent, text.Count(s.Messages, "message"), b.whose(s), aboutSaved(s, 160))
	}
	return says(cmp.Or(strings.TrimSpace(out.String()), "Nothing is saved here yet; save something with `/context save`."))
}

func (b *Set) whose(s connector.Saved) string {
	if s.Quiet {
		return ", automatically after a quiet time"
	}
	return ", by " + b.MentionPeople(s.By)
}

// aboutSaved describes a saved context in one line.
func aboutSaved(s connector.Saved, limit int) string {
	text := s.Summary
	if s.Description != "" {
		text = s.Description + " · " + text
	}
	return split.Clip(strings.Join(strings.Fields(text), " "), limit)
}

func (b *Set) restoreContext(ctx context.Context, o request) platform.Answer {
	rows, others, err := b.mine(ctx, o)
	if err != nil {
		return says(b.UserMessage(err))
	}
	if len(rows) == 0 && others > 0 {
		return says(notYours)
	}
	done, err := b.Backend.RestoreContext(ctx, o.in.Place(), strings.ToLower(strings.TrimSpace(o.Text["session_id"])), rows, o.by)
	if err != nil {
		return says(b.UserMessage(err))
	}
	var out strings.Builder
	fmt.Fprintf(&out, "Restored `%s`: the agent sees %s in %s again, instead of what it saw before.", short(done.ID), text.Count(done.Messages, "message"),
		text.Count(done.Conversations, "conversation"))
	if done.Cleared > 0 {
		fmt.Fprintf(&out, " %s cleared.", text.CountOf(done.Cleared, "conversation began later and is", "conversations began later and are"))
	}
	if done.LeftOut > 0 {
		fmt.Fprintf(&out, " %s left out: not here, or not yours.", text.CountOf(done.LeftOut, "conversation was", "conversations were"))
	}
	return says(out.String())
}

// proposeSaved suggests what was saved here.
func (b *Set) proposeSaved(ctx context.Context, o request, option string) []platform.Choice {
	list, err := b.Backend.SavedContexts(ctx, "", o.in.Place())
	if err != nil {
		return nil
	}
	typed := strings.ToLower(strings.TrimSpace(o.Text["session_id"]))
	var out []platform.Choice
	for _, s := range list {
		name := split.Clip(fmt.Sprintf("%s %s, %s: %s", short(s.ID), s.At.UTC().Format("2 Jan 15:04"), text.Count(s.Messages, "message"), aboutSaved(s, 80)), 100)
		if strings.HasPrefix(s.ID, typed) || strings.Contains(strings.ToLower(name), typed) {
			out = append(out, platform.Choice{Label: name, Value: s.ID})
		}
	}
	return out
}

// proposeThreads suggests the conversations of the channel, newest first.
func (b *Set) proposeThreads(ctx context.Context, o request, option string) []platform.Choice {
	rows, err := b.here(ctx, o.in)
	if err != nil {
		return nil
	}
	typed := strings.ToLower(strings.TrimSpace(o.Text["thread"]))
	var out []platform.Choice
	for _, row := range rows {
		name := threadLabel(row)
		if strings.Contains(strings.ToLower(name), typed) {
			out = append(out, platform.Choice{Label: name, Value: row.ID.Thread()})
		}
	}
	return out
}

// Choices are the first suggestions for a noun: for conversations, those of the channel.
func (b *Set) Choices(ctx context.Context, i platform.Invocation, noun string) (out []platform.Choice) {
	if noun != "session" || i.Absent {
		return nil
	}
	rows, _ := b.here(ctx, i.In) // without them nothing is suggested
	for _, row := range rows {
		out = append(out, platform.Choice{Label: threadLabel(row), Value: string(row.ID)})
	}
	return out
}

// threadLabel is a conversation in a list of choices.
func threadLabel(row journal.Thread) string {
	return split.Clip(fmt.Sprintf("%s · %s · %s", mark.Line(cmp.Or(threadname.Plain(row.Title), "without words"), 60), state(row), row.ID.Thread()), 100)
}

// state describes a conversation's state in a word or two.
func state(row journal.Thread) string {
	switch row.Status {
	case chat.Running:
		return "running"
	case chat.Waiting:
		return "waiting for an approval"
	case chat.Delegated:
		return "waiting for other agents"
	default:
		return "idle"
	}
}

// Named is the full id of a conversation of the channel that somebody named by a part of it; "": it is none of those.
func (b *Set) Named(ctx context.Context, i platform.Invocation, noun, part string) (string, error) {
	if noun != "session" || i.Absent {
		return "", nil
	}
	found, err := b.matching(ctx, i.In, part)
	if err != nil || len(found) == 0 {
		return "", err
	}
	if len(found) > 1 {
		return "", severalNamed(part, len(found))
	}
	return string(found[0].ID), nil
}

func severalNamed(name string, n int) error {
	return connector.Refusal(fmt.Sprintf("%.60q matches %d conversations here; type more of it", name, n))
}

// named finds a conversation of a channel by its id, a prefix of it, or its words.
func (b *Set) named(ctx context.Context, in room.Channel, name string) (journal.Thread, error) {
	found, err := b.matching(ctx, in, name)
	switch {
	case err != nil:
		return journal.Thread{}, err
	case len(found) == 0:
		return journal.Thread{}, connector.Refusal(fmt.Sprintf("there is no conversation %.60q here; see `/thread list`", name))
	case len(found) > 1:
		return journal.Thread{}, severalNamed(name, len(found))
	}
	return found[0], nil
}

// matching returns the conversations of a channel with an id, a prefix of it, or words; only the exact match if there is one.
func (b *Set) matching(ctx context.Context, in room.Channel, name string) ([]journal.Thread, error) {
	rows, err := b.hereMost(ctx, in, maxHere)
	if err != nil {
		return nil, err
	}
	name = strings.Trim(strings.TrimSpace(name), "`#")
	var found []journal.Thread
	for _, row := range rows {
		id := row.ID.Thread()
		if id == name || string(row.ID) == name {
			return []journal.Thread{row}, nil
		}
		if name != "" && (strings.HasPrefix(id, name) || strings.EqualFold(row.Title, name) || strings.EqualFold(threadname.Plain(row.Title), name)) {
			found = append(found, row)
		}
	}
	return found, nil
}
