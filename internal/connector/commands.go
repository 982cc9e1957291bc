package connector

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"chorus/internal/approval"
	"chorus/internal/chat"
	"chorus/internal/connector/approvalcard"
	"chorus/internal/connector/slash"
	"chorus/internal/journal"
	"chorus/internal/operation"
	"chorus/internal/outbox"
	"chorus/internal/platform"
	"chorus/internal/room/render"
	"chorus/internal/room/split"
)

// Commands are what people can command on a platform, as data, with the code that runs them.
type Commands interface {
	List() []platform.Command
	// Invoke, Complete and Press return false for other sets' commands.
	Invoke(ctx context.Context, i platform.Invocation) (platform.Answer, bool)
	Complete(ctx context.Context, i platform.Invocation, option string) ([]platform.Choice, bool)
	Press(ctx context.Context, p platform.Press) (platform.Answer, bool)
}

func says(text string) platform.Answer { return platform.Answer{Text: text} }

// register registers the commands with the platform. Repeating it changes nothing. Of
// two commands with one name the first counts.
func (b *Bot) register(ctx context.Context) {
	list := b.Offers()
	for i, c := range list {
		list[i] = translated(c)
		list[i].Name, list[i].Names = b.CommandName(c), map[string]string{}
		for language, name := range translated(c).Names {
			list[i].Names[language] = b.CommandName(platform.Command{Name: name, Menu: c.Menu})
		}
	}
	_, err := Again(ctx, b, "register commands", func(ctx context.Context) (struct{}, error) {
		return struct{}{}, b.can.commands.Register(ctx, list)
	})
	if err != nil && ctx.Err() == nil {
		b.Log.Warn("the commands could not be registered", "event", "commands_failed", "error", err)
	}
}

// Offers are the commands of all sets, each once. If they are written as messages, it omits commands
// for which the platform should check a right, because a message does not tell its author's rights.
func (b *Bot) Offers() (list []platform.Command) {
	for _, set := range b.commands {
		for _, c := range set.List() {
			if !b.WritesCommands() || !c.Menu && c.Needs == platform.Everyone {
				list = offer(list, c, !b.WritesCommands())
			}
		}
	}
	return list
}

// offer adds a command to a list, or its subcommands to the group of its name. Of two with one name the first counts. If everybody sees
// the answers to commands (private is false), it omits commands whose answers are private.
func offer(list []platform.Command, c platform.Command, private bool) []platform.Command {
	if c.Private && !private {
		return list
	}
	at := slices.IndexFunc(list, func(o platform.Command) bool { return o.Name == c.Name })
	if at < 0 {
		list, at = append(list, c), len(list)
		list[at].Sub = nil
	} else if len(list[at].Sub) == 0 || len(c.Sub) == 0 {
		return list
	}
	for _, sub := range c.Sub {
		list[at].Sub = offer(list[at].Sub, sub, private)
	}
	return list
}

// WritesCommands reports whether the platform has no list of commands, so people write them.
func (b *Bot) WritesCommands() bool { return b.can.commands == nil }

// maxCommandName is the maximum length of a command's name on platforms.
const maxCommandName = 32

// CommandName is a command's name here. If there are several bots, all but the first add their
// names, because a list with identical names is useless.
func (b *Bot) CommandName(c platform.Command) string {
	switch who := b.CommandPrefix; {
	case who == "":
		return c.Name
	case c.Menu:
		return split.Clip(c.Name+" ("+who+")", maxCommandName)
	default:
		return who[:min(len(who), maxCommandName-1-split.Length(c.Name))] + "-" + c.Name
	}
}

// plainPath is a command's path without the bot's name.
func (b *Bot) plainPath(path string) string {
	if b.CommandPrefix == "" {
		return path
	}
	name, rest, sub := strings.Cut(path, "/")
	for _, c := range b.Offers() {
		if b.CommandName(c) == name {
			if name = c.Name; sub {
				name += "/" + rest
			}
			return name
		}
	}
	return path
}

// Speaks implements platform.Sink.
func (b *Bot) Speaks(path string) bool {
	c, _, rest := slash.Find(b.Offers(), strings.ReplaceAll(b.plainPath(path), "/", " "))
	return c != nil && c.Speaks && rest == ""
}

// Invoke implements platform.Sink.
func (b *Bot) Invoke(ctx context.Context, i platform.Invocation) platform.Answer {
	i.Path = b.plainPath(i.Path)
	for _, set := range b.commands {
		if a, ok := set.Invoke(ctx, i); ok {
			return b.whole(a)
		}
	}
	return says("This command does not exist.")
}

// maxAnswer leaves room in a message for a platform's additions.
const maxAnswer = 1900

// whole removes secrets from an answer, and sends text that is too long for a message as a file.
func (b *Bot) whole(a platform.Answer) platform.Answer {
	if a.Say != "" {
		return a // a person's own words
	}
	a.Text = b.Backend.Redact(cmp.Or(a.Text, "done"))
	most := min(maxAnswer, b.maxText()*19/20)
	if a.Panel = a.Panel && b.caps.MaxPanel > 0; a.Panel {
		most = b.caps.MaxPanel * 19 / 20
	}
	if a.File.Name == "" && split.Length(a.Text) > most {
		a.File = platform.File{Name: "whole.md", Text: a.Text}
	}
	a.Text = split.Clip(a.Text, most)
	a.Panel = a.Panel && a.File.Name == "" // a panel would hide the file
	return a
}

// Complete implements platform.Sink.
func (b *Bot) Complete(ctx context.Context, i platform.Invocation, option string) []platform.Choice {
	i.Path = b.plainPath(i.Path)
	for _, set := range b.commands {
		if list, ok := set.Complete(ctx, i, option); ok {
			return list
		}
	}
	return nil
}

// Fills are commands that know the current values of a form; false: the form is not theirs.
type Fills interface {
	Fill(ctx context.Context, p platform.Press, f platform.Form) (platform.Form, bool)
}

// Form implements platform.Sink.
func (b *Bot) Form(ctx context.Context, p platform.Press) (platform.Form, bool) {
	f, ok := platform.FormOf(p.Value)
	if !ok {
		return f, false
	}
	if action, id, _ := platform.ReadButton(p.Value); action == platform.PressWords {
		return b.questionForm(ctx, p, id, f), true
	}
	for _, set := range b.commands {
		if fills, is := set.(Fills); is {
			if filled, theirs := fills.Fill(ctx, p, f); theirs {
				return filled, true
			}
		}
	}
	return f, true
}

// Press implements platform.Sink. Only the person who pressed sees the answer.
func (b *Bot) Press(ctx context.Context, p platform.Press) platform.Answer {
	a := b.pressed(ctx, p)
	if a.Text == "" {
		return a
	}
	return b.whole(a)
}

func (b *Bot) pressed(ctx context.Context, p platform.Press) platform.Answer {
	action, id, _ := platform.ReadButton(p.Value)
	by := b.Principal(p.By)
	switch action {
	case platform.PressYes, platform.PressNo, platform.PressBecause:
		return says(b.decide(ctx, id, by, action == platform.PressYes, strings.TrimSpace(p.Text)))
	case platform.PressWords:
		words := strings.TrimSpace(p.Text)
		if len(p.Fields) > 0 {
			words = approval.AnswerText(p.Fields)
		}
		return says(b.decide(ctx, id, by, true, words))
	case platform.PressAlways:
		return b.proposeAlways(ctx, id, by)
	case pressKeep:
		return b.answerAlways(ctx, id, by, p.Chosen)
	case platform.PressDetails:
		a, err := b.Backend.ApprovalDetails(ctx, id)
		if err != nil {
			return says(b.UserMessage(err))
		}
		return approvalcard.Details(a)
	case platform.PressStop:
		return says(b.stopRun(ctx, p.Message, by, p.Allowed.ManageMessages))
	}
	for _, set := range b.commands {
		if a, ok := set.Press(ctx, p); ok {
			return a
		}
	}
	return says("This button is from another version of Chorus and no longer works.")
}

// decide answers an approval and updates its card, whoever asked and whenever.
func (b *Bot) decide(ctx context.Context, id string, by chat.Principal, yes bool, note string) string {
	a, err := b.Backend.Approval(ctx, id)
	if errors.Is(err, journal.ErrUnknown) {
		return "This approval no longer exists."
	}
	if err == nil {
		if approval.IsQuestion(a.Actions) && !yes {
			note = "" // the answer would be taken from the note
		}
		err = b.Backend.Answer(ctx, id, by, yes, note)
		b.publisher.Wake(context.WithoutCancel(ctx), a.Thread)
	}
	if errors.Is(err, journal.ErrSettled) {
		if now, rerr := b.Backend.Approval(ctx, id); rerr == nil {
			return b.tooLate(now)
		}
	}
	switch {
	case errors.Is(err, approval.ErrMayNot):
		return b.mayNot(a, by)
	case err != nil:
		return b.UserMessage(err)
	}
	return ""
}

// mayNot explains why a person's answer does not count, and whose would.
func (b *Bot) mayNot(a approval.Approval, by chat.Principal) string {
	said, err := b.cards.MayNot(a, by)
	if err != nil {
		return b.UserMessage(err)
	}
	return said
}

// MentionPeople formats principals so that the platform shows the names of its own people.
func (b *Bot) MentionPeople(by string) string { return b.cards.People(by) }

// tooLate says how somebody else has already answered an approval.
func (b *Bot) tooLate(a approval.Approval) string {
	how := a.Ended()
	if a.AnsweredBy != "" {
		how = strings.ReplaceAll(how, a.AnsweredBy, b.MentionPeople(a.AnsweredBy))
	}
	return "Too late: " + how + "."
}

// UserMessage is an error for people: what is wrong with their request, what the platform
// refused, or that neither is the case and a retry may work.
func (b *Bot) UserMessage(err error) string {
	var ours *operation.Error
	var refused Refusal
	var theirs *outbox.Trouble
	text := ""
	switch {
	case errors.As(err, &ours):
		text = ours.Message
	case errors.As(err, &refused):
		text = refused.Error()
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		text = "it took too long; try again in a moment"
	case errors.As(err, &theirs) && !platform.Passing(err):
		text = fmt.Sprintf("%s refused: %s; my role may lack a permission here", b.caps.Label, cmp.Or(theirs.Said, string(theirs.Why)))
	case errors.As(err, &theirs):
		text = b.caps.Label + " is not answering properly; try again in a moment"
	default:
		b.Log.Error("what somebody asked for failed", "event", "request_failed", "error", err)
		text = "something failed inside Chorus, and its log says why; try again in a moment"
	}
	return render.SignNot + " " + split.Clip(text, 500)
}

// stopRun ends the run of one of our messages, if the person asked for
// it or may manage messages in the channel.
func (b *Bot) stopRun(ctx context.Context, message string, by chat.Principal, manager bool) string {
	places, err := b.Backend.Places(ctx, b.transport, message)
	if err != nil {
		return b.UserMessage(err)
	}
	for _, p := range places {
		if !manager && !b.Asker(ctx, p.Thread, by.ID) {
			return "Only the person who asked, or somebody who may manage messages here, can stop this."
		}
		ended, err := b.Backend.Abort(ctx, p.Thread, by.String(), false)
		if err != nil {
			return b.UserMessage(err)
		}
		if ended {
			return ""
		}
	}
	return "Nothing is running here."
}

// Asker reports whether the active run is for this person, or the thread is theirs.
func (b *Bot) Asker(ctx context.Context, thread chat.ThreadID, user string) bool {
	if b.publisher.AskedBy(thread, user) {
		return true
	}
	row, err := b.Backend.Thread(ctx, thread)
	if err != nil || string(row.Owner.Kind) != b.transport || row.Owner.ID != user {
		return false
	}
	return !b.Backend.Display(thread).Room // a room does not belong to its first speaker
}
