package connector

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"chorus/internal/connector/slash"
	"chorus/internal/journal"
	"chorus/internal/platform"
	"chorus/internal/room"
)

// On a platform without a list of commands, people write them as messages: "/context save
// description=before the change", or "/context save before the change". The answer is a reply
// that everybody sees.

// textCommand runs a message that is a command; false: it is an ordinary message. It
// runs once, in one of our bots. A command that was running when the program ended is lost.
func (b *Bot) textCommand(ctx context.Context, m room.Message) (bool, error) {
	words, isCommand := strings.CutPrefix(strings.TrimSpace(m.Text), "/")
	if !b.WritesCommands() || !isCommand || m.System || m.Author.Program() {
		return false, nil
	}
	c, path, rest := slash.Find(b.Offers(), words)
	if c == nil || c.Speaks {
		return false, nil
	}
	done, err := b.Backend.Arrive(ctx, journal.Arrival{Platform: b.transport, What: "command", PlatformID: m.ID, Decision: path})
	if err != nil || done.Again {
		return true, err
	}
	b.inBackground(func(ctx context.Context) {
		a := b.invokeText(ctx, m, path, c.Options, rest)
		err := b.SetDesired(ctx, journal.Desired{Lane: b.Lane(m.In.ID), Key: "told/" + m.ID, Final: true,
			Body: platform.Post{Text: a.Text, ReplyTo: m.ID, File: a.File.Name, Content: b.Backend.Redact(a.File.Text)}.Body()})
		if err != nil && ctx.Err() == nil {
			b.Log.Warn("a command could not be answered", "event", "answer_failed", "command", path, "error", err)
		}
	})
	return true, nil
}

// invokeText runs a command with the words that follow it.
func (b *Bot) invokeText(ctx context.Context, m room.Message, path string, options []platform.Option, words string) platform.Answer {
	i := platform.Invocation{ID: m.ID, Path: path, By: m.Author, In: m.In, Text: map[string]string{}, Flag: map[string]bool{}, Person: map[string]room.Author{},
		Allowed: platform.Allowed{Write: true, OpenThreads: b.can.threads != nil}}
	if wrong := cmp.Or(slash.Read(&i, options, words), b.readPersons(ctx, &i, options)); wrong != "" {
		return says(wrong)
	}
	return b.Invoke(ctx, i)
}

// spoken is a message without its leading command, if that command only says that the words are for
// this bot: "/ask what is new?" is a question that mentions it, "/skill run deploy" calls a skill as "/deploy" does.
func (b *Bot) spoken(m room.Message) room.Message {
	words, isCommand := strings.CutPrefix(strings.TrimSpace(m.Text), "/")
	if !b.WritesCommands() || !isCommand || b.Self().ID == "" {
		return m
	}
	c, path, rest := slash.Find(b.Offers(), words)
	if rest = strings.TrimSpace(rest); c == nil || !c.Speaks || rest == "" {
		return m
	}
	if strings.Contains(path, "/") {
		rest = "/" + rest
	}
	m.Text, m.Mentions = rest, append(slices.Clone(m.Mentions), b.Self().ID)
	return m
}

// readPersons looks up the people named in a command's options. It returns who was not found.
func (b *Bot) readPersons(ctx context.Context, i *platform.Invocation, options []platform.Option) string {
	for _, o := range options {
		value, has := i.Text[o.Name]
		if o.Kind != platform.Person || !has {
			continue
		}
		delete(i.Text, o.Name)
		who, err := b.Platform.Member(ctx, i.In.Guild, room.Author{ID: strings.TrimPrefix(value, "@")})
		if err != nil || !who.Member {
			return value + " is not here."
		}
		i.Person[o.Name] = who
	}
	return ""
}
