package connector

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"chorus/internal/chat"
	"chorus/internal/journal"
	"chorus/internal/platform"
	"chorus/internal/room"
	"chorus/internal/room/activate"
	"chorus/internal/room/render"
	"chorus/internal/window"
)

// reaction is a reaction that somebody added to a message, or removed.
type reaction struct {
	message, emoji string
	by             room.Author
	added          bool
}

// id identifies a reaction within a message's reactions.
func (r reaction) id() string { return r.message + "/" + r.by.ID + "/" + r.emoji }

// reacted stores a reaction, and does what it asks for.
func (b *Bot) reacted(ctx context.Context, e platform.Reacted) error {
	if !e.Added {
		e.By.Name = cmp.Or(e.By.Name, b.people.Name(e.In.Guild, e.By.ID))
	}
	err := b.recordReaction(ctx, reaction{e.Message, e.Emoji, e.By, e.Added})
	if !e.Added {
		return err
	}
	return errors.Join(err, b.carryOutReaction(ctx, e))
}

// reactionsCleared removes all known reactions from a message, or all with one emoji.
func (b *Bot) reactionsCleared(ctx context.Context, e platform.Cleared) error {
	known, err := b.Backend.ArrivalsUnder(ctx, b.transport, b.Name, string(room.Reacted), e.Message+"/")
	if err != nil {
		return err
	}
	for id := range known {
		who, emoji, ok := strings.Cut(strings.TrimPrefix(id, e.Message+"/"), "/")
		if !ok || e.Emoji != "" && emoji != e.Emoji {
			continue
		}
		by := room.Author{ID: who, Name: b.people.Name(e.In.Guild, who)}
		if err := b.recordReaction(ctx, reaction{e.Message, emoji, by, false}); err != nil {
			return err
		}
	}
	return nil
}

// carryOutReaction does what a reaction asks for: a cross by the asker stops a run, and on
// a card a check or a cross answers. Other reactions do nothing.
func (b *Bot) carryOutReaction(ctx context.Context, e platform.Reacted) error {
	me := b.Self()
	if e.By.ID == me.ID || e.Emoji == "" {
		return nil
	}
	places, err := b.Backend.Places(ctx, b.transport, e.Message)
	if err != nil || len(places) == 0 {
		return err
	}
	ev := room.Event{Kind: room.Reacted, Emoji: e.Emoji, Added: true, By: e.By}
	for _, p := range places {
		if !b.Backend.Serves(b.Name, p.Thread) {
			continue
		}
		id, onCard := strings.CutPrefix(p.Key, "ask/")
		on := activate.On{Card: onCard, Run: !onCard}
		if b.Asker(ctx, p.Thread, e.By.ID) {
			on.Sender = e.By.ID
		}
		switch order := activate.Ordered(ev, on, room.Agent{User: me.ID}); order {
		case activate.Approve, activate.Deny:
			if said := b.decide(ctx, id, b.Principal(e.By), order == activate.Approve, "by reaction"); said != "" {
				b.Log.Info("a reaction did not answer an approval", "event", "reaction_refused", "why", said)
			}
		case activate.Abort:
			if _, err := b.Backend.Abort(ctx, p.Thread, b.Principal(e.By).String(), false); err != nil {
				return fmt.Errorf("stop by reaction: %w", err)
			}
		}
	}
	return nil
}

// recordReaction writes a change of a message's reactions into every thread that knows the
// message. Only changes are written: versions count them, so an odd one is on and an even one
// is off. Reactions of programs, including ours, mean nothing.
func (b *Bot) recordReaction(ctx context.Context, r reaction) error {
	if r.emoji == "" || r.by.ID == b.Self().ID || r.by.Program() {
		return nil
	}
	if r.added && window.IsFace(r.emoji) {
		if err := b.hideRead(ctx, r); err != nil {
			return err
		}
	}
	places, err := b.Backend.Places(ctx, b.transport, r.message)
	if err != nil || len(places) == 0 {
		return err
	}
	known, err := b.Backend.ArrivalsUnder(ctx, b.transport, b.Name, string(room.Reacted), r.id())
	if err != nil {
		return err
	}
	version := known[r.id()]
	if r.added == (version%2 == 1) {
		return nil
	}
	version++
	a := journal.Arrival{Platform: b.transport, Bot: b.Name, What: string(room.Reacted), PlatformID: r.id(), Version: version}
	done := map[chat.ThreadID]bool{}
	for _, p := range places {
		if done[p.Thread] || !b.Backend.Serves(b.Name, p.Thread) {
			continue
		}
		seq, err := b.wordsOf(ctx, p)
		if err != nil {
			return err
		}
		if seq == 0 {
			continue
		}
		done[p.Thread] = true
		body := chat.Reacted{Seq: seq, By: chat.Participant{ID: r.by.ID, Name: cmp.Or(r.by.Display, r.by.Name), Kind: r.by.Participant().Kind}, Emoji: r.emoji, Added: r.added}
		a.Commits = append(a.Commits, journal.Commit{Thread: p.Thread, Events: []chat.Event{{Thread: p.Thread, Who: b.Principal(r.by).String(), Body: body,
			Platform: b.transport, PlatformID: r.id(), Version: version}}})
	}
	if len(a.Commits) == 0 {
		return nil
	}
	_, err = b.Backend.Arrive(ctx, a)
	return err
}

// hideRead hides a message that was read in a channel's history. Removing
// the reaction does not bring it back.
func (b *Bot) hideRead(ctx context.Context, r reaction) error {
	threads, err := b.readIn(ctx, r.message)
	if err != nil || len(threads) == 0 {
		return err
	}
	a := journal.Arrival{Platform: b.transport, Bot: b.Name, What: "hidden", PlatformID: r.message}
	for _, thread := range threads {
		a.Commits = append(a.Commits, journal.Commit{Thread: thread, Events: []chat.Event{{Thread: thread, Who: b.Principal(r.by).String(),
			Body: chat.Deleted{Message: r.message}, Platform: b.transport, PlatformID: r.message}}})
	}
	_, err = b.Backend.Arrive(ctx, a)
	return err
}

// maxBack is the maximum number of events between an answer and the message that shows it.
const maxBack = 20

// wordsOf is the event whose text a message shows: the received one, or the answer.
// It is 0 if there is none (a card, a note).
func (b *Bot) wordsOf(ctx context.Context, p journal.Place) (int64, error) {
	if !p.Ours {
		return p.Seq, nil
	}
	if what, part, ok := strings.Cut(p.Key, "/"); !ok || what == "" || strings.Trim(part, "0123456789") != "" || what == "ask" || what == "refused" {
		return 0, nil
	}
	for seq := p.Seq; seq > max(0, p.Seq-maxBack); seq-- {
		ev, err := b.Backend.Event(ctx, p.Thread, seq)
		if errors.Is(err, journal.ErrUnknown) {
			return 0, nil
		}
		if err != nil {
			return 0, err
		}
		if said, ok := ev.Body.(chat.Said); ok && said.Error == nil && len(said.Blocks.Calls()) == 0 {
			return seq, nil
		}
	}
	return 0, nil
}

// answerDeleted informs a conversation that somebody deleted an answer of its agent: it is no
// longer part of the conversation. Deleting one of several messages of an answer changes nothing.
func (b *Bot) answerDeleted(ctx context.Context, message string) error {
	places, err := b.Backend.Places(ctx, b.transport, message)
	if err != nil {
		return err
	}
	a := journal.Arrival{Platform: b.transport, Bot: b.Name, What: string(room.Deleted), PlatformID: message}
	for _, p := range places {
		if !p.Ours || !b.Backend.Serves(b.Name, p.Thread) {
			continue
		}
		run, part, _ := strings.Cut(p.Key, "/")
		if part == render.StatusPart {
			continue // it shows progress, and nothing of the answer
		}
		if row, err := b.Backend.Outgoing(ctx, p.Lane, p.Key); err != nil || row.Gone {
			continue // we deleted it ourselves
		}
		if _, err := b.Backend.Outgoing(ctx, p.Lane, run+"/1"); err == nil {
			continue
		}
		seq, err := b.wordsOf(ctx, p)
		if err != nil {
			return err
		}
		if seq > 0 {
			a.Commits = append(a.Commits, journal.Commit{Thread: p.Thread, Events: []chat.Event{{Thread: p.Thread, Body: chat.Deleted{Seq: seq},
				Platform: b.transport, PlatformID: message}}})
		}
	}
	if len(a.Commits) == 0 {
		return nil
	}
	b.retain(a.Commits)
	_, err = b.Backend.Arrive(ctx, a)
	return err
}
