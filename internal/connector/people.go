package connector

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"
	"sync"

	"chorus/internal/chat"
	"chorus/internal/room"
	"chorus/internal/room/mention"
)

// maxPeople is how many of a guild can be mentioned by name.
const maxPeople = 200

// people remembers who is in each guild and what they are called, so that a model knows them
// apart and can mention them by name.
type people struct {
	mu     sync.Mutex
	in     map[string][]room.Author // who spoke last first
	agents map[string]room.Agent    // of ours, by the id of their user
}

func newPeople() *people {
	return &people{in: map[string][]room.Author{}, agents: map[string]room.Agent{}}
}

// spoke notes somebody who has just spoken.
func (p *people) spoke(guild string, a room.Author) {
	if a.ID == "" || a.Webhook != "" {
		return
	}
	a.Roles = nil
	p.mu.Lock()
	defer p.mu.Unlock()
	list := p.in[guild]
	if i := slices.IndexFunc(list, func(o room.Author) bool { return o.ID == a.ID }); i >= 0 {
		if !a.Member && list[i].Member {
			a = list[i] // what they are called in the guild was not told this time
		}
		list = slices.Delete(list, i, i+1)
	}
	list = append([]room.Author{a}, list...)
	p.in[guild] = list[:min(len(list), maxPeople)]
}

// mentioned notes somebody whom a message names and who may never have spoken.
func (p *people) mentioned(guild string, a room.Author) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !slices.ContainsFunc(p.in[guild], func(o room.Author) bool { return o.ID == a.ID }) && len(p.in[guild]) < maxPeople {
		p.in[guild] = append(p.in[guild], a)
	}
}

// listen notes agents of ours.
func (p *people) listen(list []Listener) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, l := range list {
		if l.User != "" {
			p.agents[l.User] = l.Agent
		}
	}
}

// knows reports whether it is known what somebody is called in the guild.
func (p *people) knows(guild, user string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.ContainsFunc(p.in[guild], func(o room.Author) bool { return o.ID == user && o.Member })
}

// isProgram reports whether a user is a bot, ours or not.
func (p *people) isProgram(guild, user string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	_, ours := p.agents[user]
	return ours || slices.ContainsFunc(p.in[guild], func(o room.Author) bool { return o.ID == user && o.Bot })
}

// name is what somebody is called in the guild; "" if they are not known.
func (p *people) name(guild, user string) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, a := range p.in[guild] {
		if a.ID == user {
			return p.label(guild, a)
		}
	}
	return ""
}

// label is what an author is called: as they are shown, with the user name behind it where
// another one, or an agent of ours, is called like that.
func (p *people) label(guild string, a room.Author) string {
	name := a.Participant().Name
	alike := func(other string) bool { return strings.EqualFold(strings.TrimSpace(other), strings.TrimSpace(name)) }
	twice := slices.ContainsFunc(p.in[guild], func(o room.Author) bool { return o.ID != a.ID && alike(o.Participant().Name) })
	for user, agent := range p.agents {
		twice = twice || user != a.ID && slices.ContainsFunc(agent.Names(), alike)
	}
	if twice && a.Name != "" && !strings.EqualFold(a.Name, name) {
		return name + " (" + a.Name + ")"
	}
	return name
}

// list is everybody by name: people before programs, and all under their user name too.
func (p *people) list(guild string) []mention.Named {
	p.mu.Lock()
	defer p.mu.Unlock()
	var persons, programs, others []mention.Named
	for _, a := range p.in[guild] {
		n := mention.Named{ID: a.ID, Name: p.label(guild, a)}
		if _, ours := p.agents[a.ID]; ours {
			continue
		}
		if a.Program() {
			programs = append(programs, n)
		} else {
			persons = append(persons, n)
		}
		others = append(others, mention.Named{ID: a.ID, Name: a.Name})
	}
	for _, user := range slices.Sorted(maps.Keys(p.agents)) {
		for _, name := range p.agents[user].Names() {
			programs = append(programs, mention.Named{ID: user, Name: name})
		}
	}
	return slices.Concat(persons, programs, others)
}

// participant is an author as the conversations of a guild know them.
func (b *Bot) participant(guild string, a room.Author) chat.Participant {
	p := a.Participant()
	if a.Webhook != "" {
		return p
	}
	p.Name = cmp.Or(b.people.name(guild, a.ID), p.Name)
	return p
}

// maxAsked is how many authors of a history are asked for what they are called in the guild.
const maxAsked = 25

// learnNames finds out what the authors of messages are called in the guild, which a history
// does not say.
func (b *Bot) learnNames(ctx context.Context, guild string, list []room.Message) {
	asked := 0
	for _, m := range list {
		if m.Own || m.Author.Webhook != "" || b.people.knows(guild, m.Author.ID) {
			continue
		}
		if asked++; asked > maxAsked {
			return
		}
		b.people.spoke(guild, b.member(ctx, guild, m.Author))
	}
}

// directory is who and what can be named in a guild.
func (b *Bot) directory(guild string) mention.Directory {
	d := b.Platform.Directory(guild)
	d.People = append(b.people.list(guild), d.People...)
	return d
}

// directoryFor is the same for one agent, which is known by its inner name.
func (b *Bot) directoryFor(guild string, l Listener) mention.Directory {
	d := b.directory(guild)
	if l.User != "" {
		d.People = append([]mention.Named{{ID: l.User, Name: cmp.Or(l.InnerName, l.Username)}}, d.People...)
	}
	return d
}

// notifies are those whom a post mentions and who shall notice: programs, and people where the
// agent's settings say so.
func (b *Bot) notifies(guild, text string, people bool) (users []string) {
	for _, id := range mention.Users(text) {
		if people || b.people.isProgram(guild, id) {
			users = append(users, id)
		}
	}
	return users
}
