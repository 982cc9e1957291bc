package connector

import (
	"context"
	"slices"
	"strings"
	"sync"

	"chorus/internal/room"
)

// maxRecent is how many of a room's last messages are remembered: enough to count a chain of
// programs that answer each other.
const maxRecent = 32

// recentMessage is a message as far as chains need it.
type recentMessage struct {
	id, replyTo string
	author      room.Author
	aside       bool // not part of the conversation: a dot message, a notice
}

// recent holds the last messages of rooms. Missing ones are fetched.
type recent struct {
	older func(a, b string) bool
	mu    sync.Mutex
	of    map[string]*channelRecent
}

type channelRecent struct {
	list     []recentMessage // oldest first
	read     bool            // the messages before us have been fetched
	commands []string        // messages that were .history commands, oldest first
}

func newRecent(older func(a, b string) bool) *recent {
	return &recent{older: older, of: map[string]*channelRecent{}}
}

func (t *recent) channel(id string) *channelRecent {
	if t.of[id] == nil {
		t.of[id] = &channelRecent{}
	}
	return t.of[id]
}

func (t *recent) add(channel string, list ...recentMessage) {
	t.mu.Lock()
	defer t.mu.Unlock()
	at := t.channel(channel)
	for _, s := range list {
		s.author.Roles = nil
		i, there := slices.BinarySearchFunc(at.list, s.id, func(o recentMessage, id string) int {
			switch {
			case t.older(o.id, id):
				return -1
			case t.older(id, o.id):
				return 1
			}
			return 0
		})
		if !there {
			at.list = slices.Insert(at.list, i, s)
		}
	}
	if over := len(at.list) - maxRecent; over > 0 {
		at.list = slices.Clone(at.list[over:])
	}
}

// spoke records a message of our own, in rooms that are remembered.
func (t *recent) spoke(channel string, s recentMessage) {
	t.mu.Lock()
	known := t.of[channel] != nil
	t.mu.Unlock()
	if known {
		t.add(channel, s)
	}
}

// before returns the messages before one, newest first, and whether older ones were fetched.
func (t *recent) before(channel, id string) (list []recentMessage, read bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	at := t.channel(channel)
	for _, s := range slices.Backward(at.list) {
		if t.older(s.id, id) {
			list = append(list, s)
		}
	}
	return list, at.read
}

func (t *recent) find(channel, id string) (recentMessage, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, s := range t.channel(channel).list {
		if s.id == id {
			return s, true
		}
	}
	return recentMessage{}, false
}

// command records that a message was a .history command; isCommand reports it.
func (t *recent) command(channel, id string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	at := t.channel(channel)
	at.commands = append(at.commands, id)
	at.commands = at.commands[max(0, len(at.commands)-maxRecent):]
}

func (t *recent) isCommand(channel, id string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	at := t.of[channel]
	return at != nil && slices.Contains(at.commands, id)
}

// newest is the id of the last message received in a room; "" if there is none.
func (t *recent) newest(channel string) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	if at := t.of[channel]; at != nil && len(at.list) > 0 {
		return at.list[len(at.list)-1].id
	}
	return ""
}

func (t *recent) wasRead(channel string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.channel(channel).read = true
}

// recentOf is a message as it is remembered.
func recentOf(m room.Message) recentMessage {
	return recentMessage{id: m.ID, replyTo: m.ReplyTo, author: m.Author, aside: m.System || strings.HasPrefix(strings.TrimSpace(m.Text), ".")}
}

// last returns the room's messages before one, newest first. If the remembered ones do not
// reach back to a person, it reads older ones, once.
func (b *Bot) last(ctx context.Context, in room.Channel, id string) []recentMessage {
	list, read := b.recent.before(in.ID, id)
	if read || b.can.history == nil || slices.ContainsFunc(list, func(s recentMessage) bool { return !s.aside && !s.author.Program() }) {
		return list
	}
	got, _, err := b.can.history.ReadBefore(ctx, in.ID, id, maxRecent)
	if err != nil {
		b.Log.Warn("the last messages of a room could not be read", "event", "recent_failed", "channel", in.ID, "error", err)
		return list
	}
	b.recent.wasRead(in.ID)
	for _, m := range got {
		b.recent.add(in.ID, recentOf(m))
	}
	list, _ = b.recent.before(in.ID, id)
	return list
}

// lastSpeakers are the message's author, the speaker before, and so on, up to a person.
func (b *Bot) lastSpeakers(ctx context.Context, m room.Message) []room.Author {
	out := []room.Author{m.Author}
	if !m.Author.Program() {
		return out
	}
	for _, s := range b.last(ctx, m.In, m.ID) {
		if s.aside {
			continue
		}
		out = append(out, s.author)
		if !s.author.Program() {
			break
		}
	}
	return out
}

// maxChain limits how much of a chain of replies is read, whatever is configured.
const maxChain = 50

// chain returns the authors of a chain of replies, newest first, up to a person, its
// start, or as deep as a decision needs.
func (b *Bot) chain(ctx context.Context, m room.Message, deepest int) []room.Author {
	out := []room.Author{m.Author}
	next := m.ReplyTo
	for range min(deepest, maxChain) {
		if next == "" || !out[len(out)-1].Program() {
			return out
		}
		s, known := b.recent.find(m.In.ID, next)
		if !known && m.Quoted != nil && m.Quoted.ID == next {
			s, known = recentOf(*m.Quoted), true
		}
		if !known {
			if b.can.history == nil {
				return out
			}
			got, err := b.can.history.Message(ctx, m.In.ID, next)
			if err != nil {
				return out // deleted, or hidden from us: the chain ends here
			}
			s = recentOf(got)
			b.recent.add(m.In.ID, s)
		}
		out, next = append(out, s.author), s.replyTo
	}
	return out
}

// spokeLast reports whether an agent spoke last among those of the room, or is the only one.
func (b *Bot) spokeLast(ctx context.Context, m room.Message, l Listener, all []Listener) bool {
	rooms := slices.DeleteFunc(slices.Clone(all), func(o Listener) bool { return !o.IsRoom() })
	if len(rooms) == 1 {
		return rooms[0].Name == l.Name
	}
	for _, s := range b.last(ctx, m.In, m.ID) {
		for _, o := range rooms {
			if !s.aside && o.Wrote(s.author) {
				return o.Name == l.Name
			}
		}
	}
	return false
}
