package discord

import (
	"context"
	"errors"
	"strings"

	"github.com/disgoorg/disgo/discord"
	"github.com/disgoorg/disgo/gateway"
	"github.com/disgoorg/snowflake/v2"

	"chorus/internal/chat"
	"chorus/internal/journal"
	"chorus/internal/room"
)

// reaction is a sign that somebody put on a message, or took off.
type reaction struct {
	message, emoji string
	by             room.Author
	added          bool
}

// id names the member of the set of a message's reactions.
func (r reaction) id() string { return r.message + "/" + r.by.ID + "/" + r.emoji }

func (b *Bot) reactionAdded(ctx context.Context, e gateway.EventMessageReactionAdd) error {
	by := room.Author{ID: e.UserID.String()}
	if err := b.learnRoles(ctx, guildOf(e.GuildID)); err != nil {
		return err
	}
	if e.Member != nil {
		by = b.author(guildOf(e.GuildID), e.Member.User, e.Member, "")
	}
	err := b.journalled(ctx, reaction{e.MessageID.String(), signOf(e.Emoji), by, true})
	return errors.Join(err, b.reacted(ctx, e))
}

func (b *Bot) reactionRemoved(ctx context.Context, e gateway.EventMessageReactionRemove) error {
	by := room.Author{ID: e.UserID.String(), Name: b.world.nameOf(guildOf(e.GuildID), e.UserID.String())}
	return b.journalled(ctx, reaction{e.MessageID.String(), signOf(e.Emoji), by, false})
}

// reactionsRemoved takes off all that we know of on a message, or all of one sign.
func (b *Bot) reactionsRemoved(ctx context.Context, guild *snowflake.ID, message, emoji string) error {
	known, err := b.Backend.ArrivalsUnder(ctx, room.Transport, b.Name, string(room.Reacted), message+"/")
	if err != nil {
		return err
	}
	for id := range known {
		part := strings.SplitN(id, "/", 3)
		if len(part) != 3 || emoji != "" && part[2] != emoji {
			continue
		}
		by := room.Author{ID: part[1], Name: b.world.nameOf(guildOf(guild), part[1])}
		if err := b.journalled(ctx, reaction{message, part[2], by, false}); err != nil {
			return err
		}
	}
	return nil
}

func guildOf(id *snowflake.ID) string {
	if id == nil {
		return room.Direct
	}
	return id.String()
}

func signOf(e discord.PartialEmoji) string {
	if e.Name == nil {
		return ""
	}
	return *e.Name
}

// journalled writes a change of a message's reactions into every thread that knows the
// message. Only a change is one: the versions count them, so an odd one is on and an even one is
// off. Signs of programs, ours first of all, say nothing to anybody.
func (b *Bot) journalled(ctx context.Context, r reaction) error {
	if r.emoji == "" || r.by.ID == b.me().ID || r.by.Program() {
		return nil
	}
	places, err := b.Backend.Places(ctx, room.Transport, r.message)
	if err != nil || len(places) == 0 {
		return err
	}
	known, err := b.Backend.ArrivalsUnder(ctx, room.Transport, b.Name, string(room.Reacted), r.id())
	if err != nil {
		return err
	}
	version := known[r.id()]
	if r.added == (version%2 == 1) {
		return nil
	}
	version++
	a := journal.Arrival{Platform: room.Transport, Bot: b.Name, What: string(room.Reacted), PlatformID: r.id(), Version: version}
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
		body := chat.Reacted{Seq: seq, By: r.by.Participant(), Emoji: r.emoji, Added: r.added}
		a.Commits = append(a.Commits, journal.Commit{Thread: p.Thread, Events: []chat.Event{{Thread: p.Thread, Who: principal(r.by).String(), Body: body,
			Platform: room.Transport, PlatformID: r.id(), Version: version}}})
	}
	if len(a.Commits) == 0 {
		return nil
	}
	_, err = b.Backend.Arrive(ctx, a)
	return err
}

// farBack is how many events lie between an answer and the message that shows it.
const farBack = 20

// wordsOf is the event whose words a message shows: the one that was heard, or the answer.
// 0: it shows no words (a card, a note).
func (b *Bot) wordsOf(ctx context.Context, p journal.Place) (int64, error) {
	if !p.Ours {
		return p.Seq, nil
	}
	if what, part, ok := strings.Cut(p.Key, "/"); !ok || what == "" || strings.Trim(part, "0123456789") != "" || what == "ask" || what == "refused" {
		return 0, nil
	}
	for seq := p.Seq; seq > max(0, p.Seq-farBack); seq-- {
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

// unsaid tells a room that an answer of its agent was taken away by somebody: it is no
// longer part of what was said there. One of several messages of an answer takes nothing away.
func (b *Bot) unsaid(ctx context.Context, message string) error {
	places, err := b.Backend.Places(ctx, room.Transport, message)
	if err != nil {
		return err
	}
	a := journal.Arrival{Platform: room.Transport, Bot: b.Name, What: string(room.Deleted), PlatformID: message}
	for _, p := range places {
		if !p.Ours || !b.Backend.Serves(b.Name, p.Thread) || !b.Backend.Display(p.Thread).Room {
			continue
		}
		run, _, _ := strings.Cut(p.Key, "/")
		if row, err := b.Backend.Outgoing(ctx, p.Lane, p.Key); err != nil || row.Gone {
			continue // we took it away ourselves
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
				Platform: room.Transport, PlatformID: message}}})
		}
	}
	if len(a.Commits) == 0 {
		return nil
	}
	_, err = b.Backend.Arrive(ctx, a)
	return err
}
