// Package commands contains the commands that people give on a chat platform: about agents,
// settings, runs, conversations and their history.
//
// It promises that each is checked against our own rights, whatever the platform allows; that
// information about a channel stays in it; and that no answer contains a secret.
package commands

import (
	"cmp"
	"context"
	"sync"

	"chorus/internal/chat"
	"chorus/internal/connector"
	"chorus/internal/platform"
	"chorus/internal/room"
)

// Set is the commands of one bot.
type Set struct {
	*connector.Bot
	opens    platform.Threads  // nil: the platform has none
	channels platform.Channels // nil: it cannot create any

	creating sync.Mutex // one agent is created at a time
}

var _ connector.Commands = (*Set)(nil)

// New makes the commands of a bot.
func New(b *connector.Bot) *Set {
	s := &Set{Bot: b}
	s.opens, _ = b.Platform.(platform.Threads)
	s.channels, _ = b.Platform.(platform.Channels)
	return s
}

// List implements connector.Commands.
func (*Set) List() []platform.Command { return list() }

// Invoke implements connector.Commands.
func (b *Set) Invoke(ctx context.Context, i platform.Invocation) (platform.Answer, bool) {
	h := handlers()[i.Path]
	if h == nil {
		return platform.Answer{}, false
	}
	return h(b, ctx, b.request(i)), true
}

// Complete implements connector.Commands.
func (b *Set) Complete(ctx context.Context, i platform.Invocation, option string) ([]platform.Choice, bool) {
	c := completers()[i.Path]
	if c == nil {
		return nil, false
	}
	return c(b, ctx, b.request(i), option), true
}

// Press implements connector.Commands.
func (b *Set) Press(ctx context.Context, p platform.Press) (platform.Answer, bool) {
	action, id, _ := platform.ReadButton(p.Value)
	switch action {
	case platform.PressHalt:
		return b.stopped(ctx, p, cmp.Or(p.Chosen, id)), true
	case pressTopic:
		a := b.helpAbout(ctx, request{platform.Invocation{By: p.By, In: p.In, Absent: p.Absent, Allowed: p.Allowed}, b.Principal(p.By), p.In}, p.Chosen)
		a.Replace = p.Chosen != "" // otherwise the button is below a message that stays
		return a, true
	case pressSet:
		return b.choose(ctx, p, id), true
	case pressAgent:
		return b.chosenAgent(ctx, connector.Caller{By: b.Principal(p.By), Guild: p.In.Guild}, p.Chosen, ""), true
	case platform.PressRetire:
		return b.retire(ctx, p, id), true
	default:
		return platform.Answer{}, false
	}
}

// handler runs a command. Only the person who gave it sees the answer.
type handler func(b *Set, ctx context.Context, o request) platform.Answer

// completer suggests values for the option that somebody is typing.
type completer func(b *Set, ctx context.Context, o request, option string) []platform.Choice

// request is a command that somebody gave.
type request struct {
	platform.Invocation
	by chat.Principal
	in room.Channel
}

func (b *Set) request(i platform.Invocation) request {
	return request{i, b.Principal(i.By), i.In}
}

// caller is the person who makes a request; false: it was made in a direct message, which has no guild.
func (o request) caller() (connector.Caller, bool) {
	return connector.Caller{By: o.by, Guild: o.in.Guild}, o.in.Guild != "" && o.in.Guild != room.Direct
}

func says(text string) platform.Answer { return platform.Answer{Text: text} }

// forWriters is a handler for people who may write in this place: their
// command costs something, or counts as their words.
func forWriters(h handler) handler {
	return func(b *Set, ctx context.Context, o request) platform.Answer {
		if !o.Allowed.Write {
			return says("You may not write here, so you cannot do this here.")
		}
		return h(b, ctx, o)
	}
}
