package connector

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"chorus/internal/chat"
	"chorus/internal/journal"
	"chorus/internal/platform"
	"chorus/internal/room"
	"chorus/internal/room/activate"
	"chorus/internal/room/mention"
	"chorus/internal/room/route"
	"chorus/internal/room/split"
)

const (
	// goOn is the journal entry when nobody said anything to make an agent speak.
	goOn = "(go on)"
	// roomWaiting is how many prompts may wait in a room. They are answered together, so it is practically unlimited.
	roomWaiting = 10_000
)

// unmarked replaces the platform's name if there is no message to answer or
// mark: a deleted command, a timer.
func (b *Bot) unmarked() string { return b.transport + "/order" }

// listeners are the agents that read a channel, with what only a connector knows of them.
func (b *Bot) listeners(ctx context.Context, in room.Channel) ([]Listener, error) {
	b.pinned(ctx, in) // pins may configure the channel
	list, err := b.Backend.Listeners(ctx, b.Name, b.Self(), in)
	ours := map[string]room.Agent{}
	for _, l := range list {
		if l.User != "" {
			ours[l.User] = l.Agent
		}
	}
	b.people.Ours(ours)
	roles, ok := b.Platform.(platform.BotRoles)
	for i := range list {
		if ok {
			list[i].Role = roles.BotRole(in.Guild, list[i].User)
		}
	}
	return list, err
}

// delivery is a message on its way to one thread.
type delivery struct {
	msg     room.Message
	target  route.Heard
	to      Listener
	command bool // it was a command: the agent continues, and the model is not told why
}

// decideInRoom decides whether the agent of a room answers. A command is deleted from the
// channel and is not a message: the agent continues from the last one.
func (b *Bot) decideInRoom(ctx context.Context, d *delivery, all []Listener, k *known) (activate.Decision, error) {
	m, l := d.msg, d.to
	seen := activate.Seen{Chain: b.chain(ctx, m, l.Rules.Deepest()), Recent: b.lastSpeakers(ctx, m)}
	for _, p := range k.places(m.ReplyTo) {
		seen.Replied = seen.Replied || p.Ours && p.Thread.Agent() == l.Name
	}
	if m.Quoted != nil && m.ReplyTo != "" && len(all) == 1 {
		// A message of ours that the store does not know: posted before this home existed.
		seen.Replied = seen.Replied || m.Quoted.Author.ID == l.User && m.Quoted.Author.Webhook == ""
	}
	if strings.Contains(strings.ToLower(m.Text), "continue") {
		seen.Turn = b.spokeLast(ctx, m, l, all)
	}
	decision := activate.Decide(room.Event{Kind: room.Said, Message: m}, l.Agent, l.Rules, seen, diceOf(m.ID, l.Name))
	d.target.Prompt = decision.Answer
	d.command = decision.Answer && decision.Drop
	var desired []journal.Desired
	if decision.Delete {
		desired = append(desired, journal.Desired{Lane: b.Lane(m.In.ID), Key: "delete/" + m.ID, Target: m.ID, Gone: true, Final: true})
	}
	if decision.React != "" {
		desired = append(desired, b.reactionTo(m.In.ID, m.ID, decision.React))
	}
	if decision.Why != activate.NotAsked && decision.Why != activate.NotWords {
		b.Log.Info("an agent decided in a room", "event", "activation", "agent", l.Name, "channel", m.In.ID, "message", m.ID, "decision", decision.String())
	}
	return decision, b.SetDesired(ctx, desired...)
}

// reactionTo is a reaction of ours to somebody's message.
func (b *Bot) reactionTo(channel, message, emoji string) journal.Desired {
	return journal.Desired{Lane: b.Lane(channel), Key: "sign/" + message + "/" + emoji, Thing: journal.Reaction, Target: message,
		Body: platform.Post{Emoji: emoji}.Body(), Final: true}
}

// react adds a reaction of ours to a message, once.
func (b *Bot) react(ctx context.Context, channel, message, emoji string) error {
	return b.SetDesired(ctx, b.reactionTo(channel, message, emoji))
}

// Lane is the queue of a channel's messages.
func (b *Bot) Lane(channel string) journal.Lane {
	return journal.Lane{Platform: b.transport, Bot: b.Name, Channel: channel}
}

// SetDesired requests messages or reactions, and wakes the sender. It omits reactions
// if the platform has none.
func (b *Bot) SetDesired(ctx context.Context, desired ...journal.Desired) error {
	if !b.caps.Reactions {
		desired = slices.DeleteFunc(desired, func(w journal.Desired) bool { return w.Thing == journal.Reaction })
	}
	if len(desired) == 0 {
		return nil
	}
	if err := b.Backend.SetDesired(ctx, desired...); err != nil {
		return err
	}
	for _, w := range desired {
		b.outbox.Wake(w.Lane)
	}
	return nil
}

// commit is what a thread is told of a message.
func (b *Bot) commit(ctx context.Context, d delivery) (journal.Commit, error) {
	msg, h, l := d.msg, d.target, d.to
	inRoom := h.Way == route.InRoom
	who := b.Principal(msg.Author)
	text := mention.Read(msg.Text, b.directoryFor(msg.In.Guild, l))
	title := split.Clip(text, 80)
	if inRoom {
		title, text = roomTitle(msg.In), b.replyMark(msg, l)+text
	}
	if l.MaxChars > 0 {
		text = split.Clip(text, l.MaxChars)
	}
	blocks := chat.Blocks{}
	if text != "" {
		blocks = append(blocks, chat.Text{Text: text})
	}
	blocks = append(blocks, embedded(msg)...)
	blocks = append(blocks, announced(msg)...)
	if len(blocks) == 0 {
		blocks = chat.TextBlocks("(a message without text)")
	}
	body := chat.Received{From: b.participant(msg.In.Guild, msg.Author), Silent: d.command, Principal: who, Blocks: blocks, ReplyTo: msg.ReplyTo, Intake: h.Intake, Prompt: h.Prompt,
		Channel: msg.In.ID, Together: inRoom}
	if h.Post != msg.In.ID {
		body.Post = h.Post
	}
	row, err := b.Backend.NewThread(ctx, h.Thread, who, title)
	if err != nil {
		return journal.Commit{}, err
	}
	event := chat.Event{Thread: h.Thread, Who: who.String(), Body: body, Platform: b.transport, PlatformID: msg.ID}
	if d.command {
		event.Platform = b.unmarked()
	}
	c := journal.Commit{Thread: h.Thread, Create: &row, MaxWaiting: l.Waiting}
	if inRoom {
		c.MaxWaiting = roomWaiting
		if err := b.introduce(ctx, &c, msg, l); err != nil {
			return c, err
		}
	}
	c.Events = append(c.Events, event)
	return c, nil
}

// embedded is the text of a message's embeds, as a separate block.
func embedded(m room.Message) chat.Blocks {
	if m.Embeds == "" {
		return nil
	}
	return chat.TextBlocks("\n" + m.Embeds)
}

// replyMark names the person that a message answers, as the conversation knows them.
func (b *Bot) replyMark(m room.Message, l Listener) string {
	if m.ReplyTo == "" || m.Author.Program() {
		return ""
	}
	name := m.Answers
	switch {
	case name == l.Username || m.Quoted != nil && l.Wrote(m.Quoted.Author):
		name = cmp.Or(l.InnerName, name)
	case m.Quoted != nil:
		name = b.participant(m.In.Guild, m.Quoted.Author).Name
	}
	return mention.Reply(name)
}
