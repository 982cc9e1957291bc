package connector

import (
	"slices"
	"sync"

	"chorus/internal/room/mention"
)

// maxPeople is how many of a guild can be mentioned by name.
const maxPeople = 200

// people remembers who spoke in each guild, so that a model can mention them by name.
type people struct {
	mu sync.Mutex
	in map[string][]mention.Named // who spoke last first
}

func newPeople() *people { return &people{in: map[string][]mention.Named{}} }

func (p *people) spoke(guild string, n mention.Named) {
	p.mu.Lock()
	defer p.mu.Unlock()
	list := slices.DeleteFunc(p.in[guild], func(o mention.Named) bool { return o.ID == n.ID })
	list = append([]mention.Named{n}, list...)
	p.in[guild] = list[:min(len(list), maxPeople)]
}

// name is what somebody who has spoken is called; "" if they have not.
func (p *people) name(guild, user string) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, n := range p.in[guild] {
		if n.ID == user {
			return n.Name
		}
	}
	return ""
}

func (p *people) list(guild string) []mention.Named {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.in[guild])
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
		d.People = append([]mention.Named{{ID: l.User, Name: first(l.InnerName, l.Username)}}, d.People...)
	}
	return d
}
