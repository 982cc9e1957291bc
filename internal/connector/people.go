package connector

import (
	"cmp"
	"context"

	"chorus/internal/chat"
	"chorus/internal/room"
	"chorus/internal/room/mention"
)

// participant is an author as the conversations of a guild know them.
func (b *Bot) participant(guild string, a room.Author) chat.Participant {
	p := a.Participant()
	if a.Webhook != "" {
		return p
	}
	p.Name = cmp.Or(b.people.Name(guild, a.ID), p.Name)
	return p
}

// maxAsked limits how many authors of a history are looked up for their names in the guild.
const maxAsked = 25

// learnNames finds out the names of the authors of messages in the guild, which a history
// does not contain.
func (b *Bot) learnNames(ctx context.Context, guild string, list []room.Message) {
	asked := 0
	for _, m := range list {
		if m.Own || m.Author.Webhook != "" || b.people.Knows(guild, m.Author.ID) {
			continue
		}
		if asked++; asked > maxAsked {
			return
		}
		b.people.Spoke(guild, b.member(ctx, guild, m.Author))
	}
}

// directory returns who and what can be named in a guild.
func (b *Bot) directory(guild string) mention.Directory {
	d := b.Platform.Directory(guild)
	d.People = append(b.people.List(guild), d.People...)
	return d
}

// directoryFor is directory for one agent, which is known by its inner name.
func (b *Bot) directoryFor(guild string, l Listener) mention.Directory {
	d := b.directory(guild)
	if l.User != "" {
		d.People = append([]mention.Named{{ID: l.User, Name: cmp.Or(l.InnerName, l.Username)}}, d.People...)
	}
	return d
}

// notifies returns whom a post mentions and notifies: programs, and people if the
// agent's settings say so.
func (b *Bot) notifies(guild, text string, people bool) (users []string) {
	for _, id := range mention.Users(text) {
		if people || b.people.IsProgram(guild, id) {
			users = append(users, id)
		}
	}
	return users
}
