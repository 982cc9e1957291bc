package connector

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"chorus/internal/approval"
	"chorus/internal/chat"
	"chorus/internal/command"
	"chorus/internal/journal"
	"chorus/internal/outbox"
	"chorus/internal/platform"
	"chorus/internal/room"
	"chorus/internal/room/render"
	"chorus/internal/room/split"
)

// Commands are further commands that people can give, as data and with whoever carries them
// out. Theirs come behind our own; of two with one name the first counts.
type Commands interface {
	List() []platform.Command
	Invoke(ctx context.Context, by Caller, i platform.Invocation) platform.Answer
	Complete(ctx context.Context, by Caller, i platform.Invocation, option string) []platform.Choice
}

// handler carries out a command; what it gives is shown to whoever gave it.
type handler func(b *Bot, ctx context.Context, o request) platform.Answer

// completer proposes values for the option that somebody is typing.
type completer func(b *Bot, ctx context.Context, o request, option string) []platform.Choice

// request is a command that somebody gave.
type request struct {
	platform.Invocation
	by chat.Principal
	in room.Channel
}

func (b *Bot) request(i platform.Invocation) request {
	return request{i, b.principal(i.By), i.In}
}

// caller is who makes a request; false: it was made in a direct message, where there is no guild.
func (o request) caller() (Caller, bool) {
	return Caller{By: o.by, Guild: o.in.Guild}, o.in.Guild != "" && o.in.Guild != room.Direct
}

func says(text string) platform.Answer { return platform.Answer{Text: text} }

// register tells the platform which commands there are. Doing it again changes nothing.
func (b *Bot) register(ctx context.Context) {
	list := ownCommands()
	if b.Commands != nil {
		for _, c := range b.Commands.List() {
			if !slices.ContainsFunc(list, func(o platform.Command) bool { return o.Name == c.Name }) {
				list = append(list, c)
			}
		}
	}
	_, err := again(ctx, b, "register commands", func(ctx context.Context) (struct{}, error) {
		return struct{}{}, b.can.commands.Register(ctx, list)
	})
	if err != nil && ctx.Err() == nil {
		b.Log.Warn("the commands could not be registered", "event", "commands_failed", "error", err)
	}
}

// Invoke implements platform.Sink.
func (b *Bot) Invoke(ctx context.Context, i platform.Invocation) platform.Answer {
	o := b.request(i)
	var a platform.Answer
	switch h := handlers()[i.Path]; {
	case h != nil:
		a = h(b, ctx, o)
	case b.Commands != nil:
		by, _ := o.caller()
		a = b.Commands.Invoke(ctx, by, i)
	default:
		a = says("There is no such command.")
	}
	return b.whole(a)
}

// maxAnswer leaves room in a message for what a platform adds.
const maxAnswer = 1900

// whole removes secrets from an answer, and sends what does not fit into a message as a file.
func (b *Bot) whole(a platform.Answer) platform.Answer {
	a.Text = b.Backend.Redact(first(a.Text, "done"))
	most := min(maxAnswer, b.maxText()*19/20)
	if a.File.Name == "" && split.Length(a.Text) > most {
		a.File = platform.File{Name: "whole.md", Text: a.Text}
	}
	a.Text = split.Clip(a.Text, most)
	return a
}

// Complete implements platform.Sink.
func (b *Bot) Complete(ctx context.Context, i platform.Invocation, option string) []platform.Choice {
	o := b.request(i)
	switch c := completers()[i.Path]; {
	case c != nil:
		return c(b, ctx, o, option)
	case b.Commands != nil:
		by, _ := o.caller()
		return b.Commands.Complete(ctx, by, i, option)
	default:
		return nil
	}
}

// Press implements platform.Sink. What it gives is shown to the one who pressed.
func (b *Bot) Press(ctx context.Context, p platform.Press) platform.Answer {
	a := b.pressed(ctx, p)
	if a.Text != "" {
		a.Text = split.Clip(b.Backend.Redact(a.Text), min(maxAnswer, b.maxText()*19/20))
	}
	return a
}

func (b *Bot) pressed(ctx context.Context, p platform.Press) platform.Answer {
	action, id, _ := platform.ReadButton(p.Value)
	by := b.principal(p.By)
	switch action {
	case platform.PressYes, platform.PressNo:
		return says(b.decide(ctx, id, by, action == platform.PressYes, ""))
	case platform.PressDetails:
		return b.details(ctx, id)
	case platform.PressStop:
		return says(b.stopRun(ctx, p.Message, by, p.Allowed.ManageMessages))
	case platform.PressHalt:
		return says(b.halt(ctx, p.In, id, by, p.Allowed.ManageMessages))
	case platform.PressRetire:
		return b.retire(ctx, p, id)
	default:
		return says("This button is of another version of Chorus and does nothing any more.")
	}
}

// decide answers an approval and has its card shown again, whoever asked and whenever.
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
		return b.mayNot(a, by)
	case err != nil:
		return b.userMessage(err)
	}
	return ""
}

// userMessage is an error for people: what is wrong with their request, what the platform
// refused, or that it was neither and may go well the next time.
func (b *Bot) userMessage(err error) string {
	var ours *command.Error
	var refused Refusal
	var theirs *outbox.Trouble
	text := ""
	switch {
	case errors.As(err, &ours):
		text = ours.Message
	case errors.As(err, &refused):
		text = refused.Error()
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		text = "it took too long and was given up; say it again in a moment"
	case errors.As(err, &theirs) && !platform.Passing(err):
		text = fmt.Sprintf("%s refused it: %s; perhaps my role lacks a permission here", b.caps.Label, first(theirs.Said, string(theirs.Why)))
	case errors.As(err, &theirs):
		text = b.caps.Label + " does not answer as it should; say it again in a moment"
	default:
		text = "something failed inside Chorus (" + split.Clip(err.Error(), 300) + "); say it again in a moment"
	}
	return render.SignNot + " " + split.Clip(text, 500)
}

// forWriters is a handler for those who may write where they give the command: what they
// order costs something, or is taken as their words.
func forWriters(h handler) handler {
	return func(b *Bot, ctx context.Context, o request) platform.Answer {
		if !o.Allowed.Write {
			return says("You may not write here, so you cannot do this here either.")
		}
		return h(b, ctx, o)
	}
}

// stopRun ends the run that a message of ours belongs to, on the word of whoever asked for
// it, or of somebody who may manage messages in the channel.
func (b *Bot) stopRun(ctx context.Context, message string, by chat.Principal, manager bool) string {
	places, err := b.Backend.Places(ctx, b.transport, message)
	if err != nil {
		return b.userMessage(err)
	}
	for _, p := range places {
		if !manager && !b.asker(ctx, p.Thread, by.ID) {
			return "Only whoever asked can stop this, or somebody who may manage messages here."
		}
		ended, err := b.Backend.Abort(ctx, p.Thread, by.String(), false)
		if err != nil {
			return b.userMessage(err)
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
	t := b.publishers[thread]
	b.mu.Unlock()
	if t != nil && t.askedBy(user) {
		return true
	}
	row, err := b.Backend.Thread(ctx, thread)
	if err != nil || string(row.Owner.Kind) != b.transport || row.Owner.ID != user {
		return false
	}
	return !b.Backend.Display(thread).Room // which is not its first speaker's
}
