package discord

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/disgoorg/disgo/discord"
	"github.com/disgoorg/disgo/gateway"
	"github.com/disgoorg/disgo/rest"

	"chorus/internal/approval"
	"chorus/internal/chat"
	"chorus/internal/command"
	"chorus/internal/connector"
	"chorus/internal/journal"
	"chorus/internal/room"
	"chorus/internal/room/activate"
	"chorus/internal/room/render"
	"chorus/internal/room/split"
)

// Discord loses patience after three seconds, and forgets after fifteen minutes.
const (
	deferTime  = 2500 * time.Millisecond
	answerTime = 5 * time.Minute
)

// interact answers a click or a command. The first thing is always to say that it was
// heard, whatever it takes to carry it out.
func (b *Bot) interact(ctx context.Context, i discord.Interaction) {
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	switch i := i.(type) {
	case discord.ComponentInteraction:
		if !b.acknowledge(ctx, i, discord.InteractionResponse{Type: discord.InteractionResponseTypeDeferredUpdateMessage}) {
			return
		}
		if said := b.press(ctx, i); said.text != "" {
			b.followUp(ctx, i, said)
		}
	case discord.ApplicationCommandInteraction:
		hidden := discord.InteractionResponse{Type: discord.InteractionResponseTypeDeferredCreateMessage, Data: discord.MessageCreate{Flags: discord.MessageFlagEphemeral}}
		if !b.acknowledge(ctx, i, hidden) {
			return
		}
		b.respond(ctx, i, b.order(ctx, i))
	case discord.AutocompleteInteraction:
		b.propose(ctx, i)
	}
}

func (b *Bot) acknowledge(ctx context.Context, i discord.Interaction, how discord.InteractionResponse) bool {
	ctx, cancel := context.WithTimeout(ctx, deferTime)
	defer cancel()
	_, err := again(ctx, b.rest, "acknowledge", func(ctx context.Context) (struct{}, error) {
		return struct{}{}, b.rest.CreateInteractionResponse(i.ID(), i.Token(), how, rest.WithCtx(ctx))
	})
	if err != nil && !rest.IsJSONErrorCode(err, rest.JSONErrorCodeInteractionAlreadyAcknowledged) { // by the try before
		b.Log.Warn("a click or command could not be acknowledged in time", "event", "defer_failed", "error", err)
		return false
	}
	return true
}

// respond fills in what was deferred.
func (b *Bot) respond(ctx context.Context, i discord.Interaction, a answer) {
	a.text = b.Backend.Redact(a.text)
	text := split.Clip(first(a.text, "done"), 1900)
	update := discord.MessageUpdate{Content: &text, AllowedMentions: nobody()}
	if len(a.buttons) > 0 {
		update.Components = &a.buttons
	}
	if a.file.name == "" && split.Length(a.text) > 1900 {
		a.file = attached{"whole.md", a.text} // all of it goes along
	}
	_, err := again(ctx, b.rest, "answer a command", func(ctx context.Context) (*discord.Message, error) {
		update.Files = a.file.files()
		return b.rest.UpdateInteractionResponse(i.ApplicationID(), i.Token(), update, rest.WithCtx(ctx))
	})
	if err != nil {
		b.Log.Warn("a command could not be answered", "event", "answer_failed", "error", err)
	}
}

// followUp says something to whoever clicked, and to nobody else.
func (b *Bot) followUp(ctx context.Context, i discord.Interaction, said answer) {
	m := discord.MessageCreate{Content: split.Clip(b.Backend.Redact(said.text), 1900), Flags: discord.MessageFlagEphemeral, AllowedMentions: nobody()}
	_, err := again(ctx, b.rest, "answer a click", func(ctx context.Context) (*discord.Message, error) {
		m.Files = said.file.files()
		return b.rest.CreateFollowupMessage(i.ApplicationID(), i.Token(), m, rest.WithCtx(ctx))
	})
	if err != nil {
		b.Log.Warn("a click could not be answered", "event", "answer_failed", "error", err)
	}
}

// clicker is who gives an order, with the roles they have in the guild.
func (b *Bot) clicker(ctx context.Context, i discord.Interaction) chat.Principal {
	guild := guildOf(i.GuildID())
	if err := b.learnRoles(ctx, guild); err != nil {
		b.Log.Warn("the roles of a guild are not known; somebody there has none for now", "event", "roles_unknown", "guild", guild, "error", err)
	}
	var member *discord.Member
	if m := i.Member(); m != nil {
		member = &m.Member
	}
	return principal(b.author(guild, i.User(), member, ""))
}

// press carries out a click; what it gives is told to the one who clicked.
func (b *Bot) press(ctx context.Context, i discord.ComponentInteraction) answer {
	what, id, ok := readPressed(i.Data.CustomID())
	if !ok {
		return says("This button is of another version of Chorus and does nothing any more.")
	}
	by := b.clicker(ctx, i)
	switch what {
	case pressYes, pressNo:
		return says(b.decide(ctx, id, by, what == pressYes, ""))
	case pressTell:
		return b.details(ctx, id)
	case pressStop:
		return says(b.stopped(ctx, i.Message.ID.String(), by, may(i)))
	case pressHalt:
		in, err := b.channelOf(ctx, i.Channel().ID().String())
		if err != nil {
			return says(plainly(err))
		}
		return says(b.halt(ctx, in, id, by, may(i)))
	case pressRetire:
		return says(b.retire(ctx, i, id))
	default:
		return says("This button is of another version of Chorus and does nothing any more.")
	}
}

// decide answers a question and has its card told anew, whoever asked and whenever.
func (b *Bot) decide(ctx context.Context, id string, by chat.Principal, yes bool, note string) string {
	a, err := b.Backend.Approval(ctx, id)
	if errors.Is(err, journal.ErrUnknown) {
		return "This question is not known any more."
	}
	if err == nil {
		err = b.Backend.Answer(ctx, id, by, yes, note)
		b.wake(context.WithoutCancel(ctx), a.Thread)
	}
	if errors.Is(err, journal.ErrSettled) {
		if now, rerr := b.Backend.Approval(ctx, id); rerr == nil {
			return "Too late: " + now.Ended() + "."
		}
	}
	switch {
	case errors.Is(err, approval.ErrMayNot):
		return mayNot(a, by)
	case err != nil:
		return plainly(err)
	}
	return ""
}

// plainly is an error for people on Discord: what is wrong with their order, what Discord
// refused, or that it was neither and may go well the next time.
func plainly(err error) string {
	var ours *command.Error
	var refused connector.Refusal
	var theirs *rest.Error
	text := ""
	switch {
	case errors.As(err, &ours):
		text = ours.Message
	case errors.As(err, &refused):
		text = refused.Error()
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		text = "it took too long and was given up; say it again in a moment"
	case errors.As(err, &theirs) && theirs.Response != nil && !passing(err):
		text = fmt.Sprintf("Discord refused it: %s; perhaps my role lacks a permission here", first(theirs.Message, theirs.Response.Status))
	case errors.As(err, &theirs):
		text = "Discord does not answer as it should; say it again in a moment"
	default:
		text = "something failed inside Chorus (" + split.Clip(err.Error(), 300) + "); say it again in a moment"
	}
	return render.SignNot + " " + split.Clip(text, 500)
}

// may reports whether Discord lets somebody order others about in this channel.
func may(i discord.Interaction) bool {
	m := i.Member()
	return m == nil || m.Permissions.Has(discord.PermissionManageMessages)
}

// speaks reports whether Discord lets somebody write in this channel: what they order then
// costs something, or is heard as theirs.
func (o order) speaks() bool {
	m := o.interaction.Member()
	need := discord.PermissionSendMessages
	if o.in.Parent != "" {
		need = discord.PermissionSendMessagesInThreads
	}
	return m == nil || m.Permissions.Has(need)
}

// forSpeakers is a handler for those who may write where they give the order.
func forSpeakers(h handler) handler {
	return func(b *Bot, ctx context.Context, o order) answer {
		if !o.speaks() {
			return says("You may not write here, so you cannot do this here either.")
		}
		return h(b, ctx, o)
	}
}

// keeps reports whether somebody keeps the server: they may see what concerns all of it.
// In a direct message nobody does.
func keeps(i discord.Interaction) bool {
	m := i.Member()
	return m != nil && m.Permissions.Has(discord.PermissionManageGuild)
}

// stopped ends the run that a message of ours belongs to, on the word of whoever asked
// for it, or of somebody who keeps order in the channel.
func (b *Bot) stopped(ctx context.Context, message string, by chat.Principal, keeper bool) string {
	places, err := b.Backend.Places(ctx, room.Transport, message)
	if err != nil {
		return plainly(err)
	}
	for _, p := range places {
		if !keeper && !b.asker(ctx, p.Thread, by.ID) {
			return "Only whoever asked can stop this, or somebody who may manage messages here."
		}
		ended, err := b.Backend.Abort(ctx, p.Thread, by.String(), false)
		if err != nil {
			return plainly(err)
		}
		if ended {
			return ""
		}
	}
	return "Nothing is running here any more."
}

// asker reports whether the run that is on is for this person, or the thread theirs.
func (b *Bot) asker(ctx context.Context, thread chat.ThreadID, user string) bool {
	b.mu.Lock()
	t := b.tellers[thread]
	b.mu.Unlock()
	if t != nil && t.askedBy(user) {
		return true
	}
	row, err := b.Backend.Thread(ctx, thread)
	if err != nil || row.Owner.Kind != chat.DiscordUser || row.Owner.ID != user {
		return false
	}
	return !b.Backend.Display(thread).Room // which is not its first speaker's
}

// reacted carries out what a reaction orders: a cross by the asker stops, on a card a
// check or a cross answers. Others are not orders.
func (b *Bot) reacted(ctx context.Context, e gateway.EventMessageReactionAdd) error {
	me := b.me()
	if e.UserID.String() == me.ID || e.Emoji.Name == nil {
		return nil
	}
	places, err := b.Backend.Places(ctx, room.Transport, e.MessageID.String())
	if err != nil || len(places) == 0 {
		return err
	}
	guild := room.Direct
	if e.GuildID != nil {
		guild = e.GuildID.String()
	}
	author := room.Author{ID: e.UserID.String()}
	if e.Member != nil {
		author = b.author(guild, e.Member.User, e.Member, "")
	}
	ev := room.Event{Kind: room.Reacted, Emoji: *e.Emoji.Name, Added: true, By: author}
	for _, p := range places {
		if !b.Backend.Serves(b.Name, p.Thread) {
			continue
		}
		id, onCard := strings.CutPrefix(p.Key, "ask/")
		on := activate.On{Card: onCard, Run: !onCard}
		if b.asker(ctx, p.Thread, author.ID) {
			on.Sender = author.ID
		}
		switch activate.Ordered(ev, on, room.Agent{User: me.ID}) {
		case activate.Approve, activate.Deny:
			yes := activate.Ordered(ev, on, room.Agent{User: me.ID}) == activate.Approve
			if said := b.decide(ctx, id, principal(author), yes, "by reaction"); said != "" {
				b.Log.Info("a reaction did not answer a question", "event", "reaction_refused", "why", said)
			}
		case activate.Abort:
			if _, err := b.Backend.Abort(ctx, p.Thread, principal(author).String(), false); err != nil {
				return fmt.Errorf("stop by reaction: %w", err)
			}
		}
	}
	return nil
}
