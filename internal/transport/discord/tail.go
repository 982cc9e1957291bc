package discord

import (
	"context"
	"slices"
	"strings"
	"sync"

	"github.com/disgoorg/disgo/discord"
	"github.com/disgoorg/disgo/rest"

	"chorus/internal/connector"
	"chorus/internal/room"
)

// tailLength is how many of a room's last messages are kept in mind: enough for a chain of
// programs to be counted.
const tailLength = 32

// remark is a message as far as chains are concerned.
type remark struct {
	id, replyTo string
	author      room.Author
	aside       bool // no words of the conversation: a dot, a notice
}

// tails are the last messages of rooms. What they do not know is asked for.
type tails struct {
	mu sync.Mutex
	of map[string]*tail
}

type tail struct {
	list   []remark // the oldest first
	read   bool     // what was before us has been asked for
	orders []string // messages that were .history orders, the oldest first
}

func newTails() *tails { return &tails{of: map[string]*tail{}} }

func (t *tails) channel(id string) *tail {
	if t.of[id] == nil {
		t.of[id] = &tail{}
	}
	return t.of[id]
}

func (t *tails) add(channel string, list ...remark) {
	t.mu.Lock()
	defer t.mu.Unlock()
	at := t.channel(channel)
	for _, s := range list {
		s.author.Roles = nil
		i, there := slices.BinarySearchFunc(at.list, s.id, func(o remark, id string) int {
			switch {
			case room.Older(o.id, id):
				return -1
			case room.Older(id, o.id):
				return 1
			}
			return 0
		})
		if !there {
			at.list = slices.Insert(at.list, i, s)
		}
	}
	if over := len(at.list) - tailLength; over > 0 {
		at.list = slices.Clone(at.list[over:])
	}
}

// spoke notes something of our own, in rooms that are kept in mind.
func (t *tails) spoke(channel string, s remark) {
	t.mu.Lock()
	known := t.of[channel] != nil
	t.mu.Unlock()
	if known {
		t.add(channel, s)
	}
}

// before are the messages before one, the newest first, and whether older ones were asked for.
func (t *tails) before(channel, id string) (list []remark, read bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	at := t.channel(channel)
	for _, s := range slices.Backward(at.list) {
		if room.Older(s.id, id) {
			list = append(list, s)
		}
	}
	return list, at.read
}

func (t *tails) find(channel, id string) (remark, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, s := range t.channel(channel).list {
		if s.id == id {
			return s, true
		}
	}
	return remark{}, false
}

// order notes that a message was an order; ordered reports it.
func (t *tails) order(channel, id string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	at := t.channel(channel)
	at.orders = append(at.orders, id)
	at.orders = at.orders[max(0, len(at.orders)-tailLength):]
}

func (t *tails) ordered(channel, id string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	at := t.of[channel]
	return at != nil && slices.Contains(at.orders, id)
}

// newest is the id of the last message that was heard in a room; "" if there is none.
func (t *tails) newest(channel string) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	if at := t.of[channel]; at != nil && len(at.list) > 0 {
		return at.list[len(at.list)-1].id
	}
	return ""
}

func (t *tails) wasRead(channel string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.channel(channel).read = true
}

// remarkOf is a message for the tail.
func remarkOf(m room.Message) remark {
	return remark{id: m.ID, replyTo: m.ReplyTo, author: m.Author, aside: m.System || strings.HasPrefix(strings.TrimSpace(m.Text), ".")}
}

// last are the room's messages before one, the newest first. Where the tail does not
// reach back to a person, older ones are read, once.
func (b *Bot) last(ctx context.Context, in room.Channel, id string) []remark {
	list, read := b.tails.before(in.ID, id)
	if read || slices.ContainsFunc(list, func(s remark) bool { return !s.aside && !s.author.Program() }) {
		return list
	}
	got, err := b.rest.GetMessages(number(in.ID), 0, number(id), 0, tailLength, rest.WithCtx(ctx))
	if err != nil {
		b.Log.Warn("the last messages of a room could not be read", "event", "tail_failed", "channel", in.ID, "error", err)
		return list
	}
	b.tails.wasRead(in.ID)
	for _, m := range got {
		b.tails.add(in.ID, remarkOf(b.converted(m, in)))
	}
	list, _ = b.tails.before(in.ID, id)
	return list
}

// recent are the room's last speakers: the message's author, the one before, and so on, up to a person.
func (b *Bot) recent(ctx context.Context, m room.Message) []room.Author {
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

// manyAsked bounds how much of a chain is asked for, whatever is configured.
const manyAsked = 50

// chain are the authors of a chain of replies, the newest first, up to a person, its
// beginning, or as deep as a decision needs.
func (b *Bot) chain(ctx context.Context, m room.Message, answered *discord.Message, deepest int) []room.Author {
	out := []room.Author{m.Author}
	next := m.ReplyTo
	for range min(deepest, manyAsked) {
		if next == "" || !out[len(out)-1].Program() {
			return out
		}
		s, known := b.tails.find(m.In.ID, next)
		if !known && answered != nil && answered.ID.String() == next {
			s, known = remarkOf(b.converted(*answered, m.In)), true
		}
		if !known {
			got, err := b.rest.GetMessage(number(m.In.ID), number(next), rest.WithCtx(ctx))
			if err != nil {
				return out // it is gone, or not to be had: the chain ends here
			}
			s = remarkOf(b.converted(*got, m.In))
			b.tails.add(m.In.ID, s)
		}
		out, next = append(out, s.author), s.replyTo
	}
	return out
}

// turn reports whether an agent spoke last among those of the room, or is the only one.
func (b *Bot) turn(ctx context.Context, m room.Message, l connector.Listener, all []connector.Listener) bool {
	rooms := slices.DeleteFunc(slices.Clone(all), func(o connector.Listener) bool { return !o.IsRoom() })
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
