package discord

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/disgoorg/disgo/discord"

	"chorus/internal/chat"
	"chorus/internal/connector"
	"chorus/internal/journal"
	"chorus/internal/room"
	"chorus/internal/room/activate"
	"chorus/internal/room/mention"
	"chorus/internal/room/render"
	"chorus/internal/room/route"
	"chorus/internal/room/split"
)

const (
	// goOn is what an agent is told by a command that has no words of its own.
	goOn = "(go on)"
	// roomWaiting is how many prompts may wait in a room. They are answered together, so it is as good as none.
	roomWaiting = 10_000
	// orderPlatform stands in the place of the platform's name for what has no message that
	// could be answered or marked: a command that was taken away, a timer.
	orderPlatform = room.Transport + "/order"
)

// listeners are those who hear in a channel, with what only a connector knows of them.
func (b *Bot) listeners(ctx context.Context, in room.Channel) ([]connector.Listener, error) {
	b.pinned(ctx, in) // they may say how things are done here
	list, err := b.Backend.Listeners(ctx, b.Name, b.me(), in)
	for i := range list {
		list[i].Role = b.world.botRole(in.Guild, list[i].User)
	}
	return list, err
}

// saying is a message on its way to one thread.
type saying struct {
	said  discord.Message
	msg   room.Message
	heard route.Heard
	to    connector.Listener
	order bool // it was a command: what the agent hears of it is that it shall go on
}

// speaks decides in a room whether the agent answers. A command is taken away from the
// channel, and the agent is told to go on in its place.
func (b *Bot) speaks(ctx context.Context, s *saying, all []connector.Listener, k *known) (activate.Decision, error) {
	m, l := s.msg, s.to
	seen := activate.Seen{Chain: b.chain(ctx, m, s.said.ReferencedMessage, l.Rules.Deepest()), Recent: b.recent(ctx, m)}
	for _, p := range k.places(m.ReplyTo) {
		seen.Replied = seen.Replied || p.Ours && p.Thread.Agent() == l.Name
	}
	if answered := s.said.ReferencedMessage; answered != nil && m.ReplyTo != "" && len(all) == 1 {
		// Something of ours that the store does not know: said before this home was made.
		seen.Replied = seen.Replied || answered.Author.ID.String() == l.User && answered.WebhookID == nil
	}
	if strings.Contains(strings.ToLower(m.Text), "continue") {
		seen.Turn = b.turn(ctx, m, l, all)
	}
	d := activate.Decide(room.Event{Kind: room.Said, Message: m}, l.Agent, l.Rules, seen, diceOf(m.ID, l.Name))
	s.heard.Prompt = d.Answer
	s.order = d.Answer && d.Drop
	var wishes []journal.Desired
	if d.Delete {
		wishes = append(wishes, journal.Desired{Lane: b.lane(m.In.ID), Key: "delete/" + m.ID, Target: m.ID, Gone: true, Final: true})
	}
	if d.React != "" {
		wishes = append(wishes, b.mark(m.In.ID, m.ID, d.React))
	}
	if d.Why != activate.NotAsked && d.Why != activate.NotWords {
		b.Log.Info("an agent decided in a room", "event", "activation", "agent", l.Name, "channel", m.In.ID, "message", m.ID, "decision", d.String())
	}
	return d, b.wish(ctx, m.In.ID, wishes...)
}

// mark is the wish for a reaction of ours on somebody's message.
func (b *Bot) mark(channel, message, emoji string) journal.Desired {
	body, _ := json.Marshal(post{Emoji: emoji}) // strings only
	return journal.Desired{Lane: b.lane(channel), Key: "sign/" + message + "/" + emoji, Thing: journal.Reaction, Target: message, Body: body, Final: true}
}

func (b *Bot) wish(ctx context.Context, channel string, wishes ...journal.Desired) error {
	if len(wishes) == 0 {
		return nil
	}
	if err := b.Backend.Wish(ctx, wishes...); err != nil {
		return err
	}
	b.outbox.Wake(b.lane(channel))
	return nil
}

// commit is what a thread is told of a message.
func (b *Bot) commit(ctx context.Context, s saying) (journal.Commit, error) {
	msg, h, l := s.msg, s.heard, s.to
	inRoom := h.Way == route.InRoom
	who := principal(msg.Author)
	text := mention.Read(msg.Text, b.directory(msg.In.Guild, l))
	title := split.Clip(text, 80)
	if inRoom {
		title, text = roomTitle(msg.In), replyMark(msg, l)+text
	}
	if l.MaxChars > 0 {
		text = split.Clip(text, l.MaxChars)
	}
	if s.order {
		text = goOn
	}
	blocks := chat.Blocks{}
	if text != "" {
		blocks = append(blocks, chat.Text{Text: text})
	}
	if !s.order {
		blocks = append(blocks, embedded(s.said)...)
		blocks = append(blocks, announced(s.said)...)
	}
	if len(blocks) == 0 {
		blocks = chat.TextBlocks("(a message without words)")
	}
	body := chat.Received{From: msg.Author.Participant(), Principal: who, Blocks: blocks, ReplyTo: msg.ReplyTo, Intake: h.Intake, Prompt: h.Prompt,
		Channel: msg.In.ID, Together: inRoom}
	if h.Post != msg.In.ID {
		body.Post = h.Post
	}
	row, err := b.Backend.NewThread(ctx, h.Thread, who, title)
	if err != nil {
		return journal.Commit{}, err
	}
	event := chat.Event{Thread: h.Thread, Who: who.String(), Body: body, Platform: room.Transport, PlatformID: msg.ID}
	if s.order {
		event.Platform = orderPlatform
	}
	c := journal.Commit{Thread: h.Thread, Create: &row, MaxWaiting: l.Waiting}
	if inRoom {
		c.MaxWaiting = roomWaiting
		if err := b.meet(ctx, &c, msg, l); err != nil {
			return c, err
		}
	}
	c.Events = append(c.Events, event)
	return c, nil
}

// replyMark says whom a person answers, as the conversation knows them.
func replyMark(m room.Message, l connector.Listener) string {
	if m.ReplyTo == "" || m.Author.Program() {
		return ""
	}
	name := m.Answers
	if name == l.Username {
		name = first(l.InnerName, name)
	}
	return mention.Reply(name)
}

// directory is who can be named to an agent: everybody, and the agent by its inner name.
func (b *Bot) directory(guild string, l connector.Listener) mention.Directory {
	d := b.world.directory(guild)
	if l.User != "" {
		d.People = append([]mention.Named{{ID: l.User, Name: first(l.InnerName, l.Username)}}, d.People...)
	}
	return d
}

// pressable reports a message with buttons of ours under it: a question to people, no words
// of a conversation.
func pressable(m discord.Message) bool {
	for _, c := range m.Components {
		row, ok := c.(discord.ActionRowComponent)
		if !ok {
			continue
		}
		for _, inner := range row.Components {
			if strings.HasPrefix(inner.GetCustomID(), version+":") {
				return true
			}
		}
	}
	return false
}

// inManner shows a conversation as its agent's settings say. In a room there is no status:
// others would hear it as words, and answer it.
func (b *Bot) inManner(o *render.Options, thread chat.ThreadID) {
	m := b.Backend.Display(thread)
	o.Status, o.Newest = o.Status && !m.Room, m.Room
	o.ToolOutput, o.Thinking, o.Name = m.ToolOutput, m.Thinking, first(m.Name, o.Name)
	o.Footer, o.Brief, o.Price = m.Footer != "" && m.Footer != "off", m.Footer == "short", m.Price
}
