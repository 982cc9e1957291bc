// Package people remembers who is in the guilds of a platform and what they are called there.
package people

import (
	"maps"
	"slices"
	"strings"
	"sync"

	"chorus/internal/room"
	"chorus/internal/room/mention"
)

// maxPeople is how many people of a guild can be mentioned by name.
const maxPeople = 200

// People remembers who is in each guild and what they are called, so that a
// model can tell them apart and mention them by name.
type People struct {
	mu     sync.Mutex
	in     map[string][]room.Author // most recent speaker first
	agents map[string]room.Agent    // our agents, by the id of their user
}

// New returns an empty People.
func New() *People {
	return &People{in: map[string][]room.Author{}, agents: map[string]room.Agent{}}
}

// Spoke records that somebody has just spoken.
func (p *People) Spoke(guild string, a room.Author) {
	if a.ID == "" || a.Webhook != "" {
		return
	}
	a.Roles = nil
	p.mu.Lock()
	defer p.mu.Unlock()
	list := p.in[guild]
	if i := slices.IndexFunc(list, func(o room.Author) bool { return o.ID == a.ID }); i >= 0 {
		if !a.Member && list[i].Member {
			a = list[i] // their name in the guild was not included this time
		}
		list = slices.Delete(list, i, i+1)
	}
	list = append([]room.Author{a}, list...)
	p.in[guild] = list[:min(len(list), maxPeople)]
}

// Mentioned records somebody whom a message names, who may never have spoken.
func (p *People) Mentioned(guild string, a room.Author) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !slices.ContainsFunc(p.in[guild], func(o room.Author) bool { return o.ID == a.ID }) && len(p.in[guild]) < maxPeople {
		p.in[guild] = append(p.in[guild], a)
	}
}

// Ours records our agents, by the id of their user.
func (p *People) Ours(agents map[string]room.Agent) {
	p.mu.Lock()
	defer p.mu.Unlock()
	maps.Copy(p.agents, agents)
}

// Knows reports whether somebody's name in the guild is known.
func (p *People) Knows(guild, user string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.ContainsFunc(p.in[guild], func(o room.Author) bool { return o.ID == user && o.Member })
}

// IsProgram reports whether a user is a bot, ours or not.
func (p *People) IsProgram(guild, user string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	_, ours := p.agents[user]
	return ours || slices.ContainsFunc(p.in[guild], func(o room.Author) bool { return o.ID == user && o.Bot })
}

// Name returns somebody's name in the guild, or "" if they are not known.
func (p *People) Name(guild, user string) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, a := range p.in[guild] {
		if a.ID == user {
			return p.label(guild, a)
		}
	}
	return ""
}

// label returns an author's display name. If another person or one of our
// agents has the same name, the user name is appended.
func (p *People) label(guild string, a room.Author) string {
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

// List returns everybody by name: people before programs, and each also by user name.
func (p *People) List(guild string) []mention.Named {
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
