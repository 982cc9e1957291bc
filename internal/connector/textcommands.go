package connector

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"chorus/internal/journal"
	"chorus/internal/platform"
	"chorus/internal/room"
)

// Where a platform has no list of commands, people write them as messages: "/context save
// description=before the change", or "/context save before the change". The answer is a reply
// that everybody sees.

// textCommand carries out a message that is a command; false: it is words like any others. It
// is carried out once, by one of our bots: one that was begun when the program ended is lost.
func (b *Bot) textCommand(ctx context.Context, m room.Message) (bool, error) {
	words := strings.Fields(m.Text)
	if !b.WritesCommands() || len(words) == 0 || !strings.HasPrefix(words[0], "/") || m.System || m.Author.Program() {
		return false, nil
	}
	words[0] = words[0][1:]
	c, path, rest := findCommand(b.Offers(), words)
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

// invokeText carries out a command with the words that follow it.
func (b *Bot) invokeText(ctx context.Context, m room.Message, path string, options []platform.Option, words []string) platform.Answer {
	i := platform.Invocation{ID: m.ID, Path: path, By: m.Author, In: m.In, Text: map[string]string{}, Flag: map[string]bool{}, Person: map[string]room.Author{},
		Allowed: platform.Allowed{Write: true, OpenThreads: b.can.threads != nil}}
	if wrong := b.readOptions(ctx, &i, options, words); wrong != "" {
		return says(wrong)
	}
	return b.Invoke(ctx, i)
}

// spoken is a message without the command that it begins with, where that command only says
// that the words are for this bot: "/ask what is new?" is a question that mentions it.
func (b *Bot) spoken(m room.Message) room.Message {
	words, isCommand := strings.CutPrefix(strings.TrimSpace(m.Text), "/")
	name, rest, _ := strings.Cut(words, " ")
	if b.WritesCommands() && isCommand && strings.TrimSpace(rest) != "" && b.Speaks(name) && b.Self().ID != "" {
		m.Text, m.Mentions = strings.TrimSpace(rest), append(slices.Clone(m.Mentions), b.Self().ID)
	}
	return m
}

// findCommand finds the command that words begin with, and what follows; nil: there is none.
func findCommand(list []platform.Command, words []string) (found *platform.Command, path string, rest []string) {
	for len(words) > 0 {
		i := slices.IndexFunc(list, func(c platform.Command) bool { return c.Name == words[0] })
		if i < 0 {
			return nil, "", nil
		}
		path, words = strings.TrimPrefix(path+"/"+words[0], "/"), words[1:]
		if len(list[i].Sub) == 0 {
			return &list[i], path, words
		}
		list = list[i].Sub
	}
	return nil, "", nil
}

// readOptions fills in what follows a command: name=value, and what has no name for the first
// option that is left. It says what is wrong with it.
func (b *Bot) readOptions(ctx context.Context, i *platform.Invocation, options []platform.Option, words []string) string {
	given := map[string]string{}
	last := "" // the option that further words belong to
	for _, word := range words {
		name, value, named := strings.Cut(word, "=")
		at := slices.IndexFunc(options, func(o platform.Option) bool { return named && o.Name == name })
		if at < 0 {
			at, value = slices.IndexFunc(options, func(o platform.Option) bool { _, has := given[o.Name]; return o.Name == last || last == "" && !has }), word
		}
		if at < 0 {
			return fmt.Sprintf("%q is too much for /%s.", word, strings.ReplaceAll(i.Path, "/", " "))
		}
		last = options[at].Name
		given[last] = strings.TrimSpace(given[last] + " " + value)
	}
	for _, o := range options {
		value, has := given[o.Name]
		switch {
		case !has && o.Required:
			return fmt.Sprintf("/%s needs %s: %s.", strings.ReplaceAll(i.Path, "/", " "), o.Name, o.Description)
		case !has:
		case o.Kind == platform.Flag:
			i.Flag[o.Name] = value != "false" && value != "no"
		case o.Kind == platform.Person:
			who, err := b.Platform.Member(ctx, i.In.Guild, room.Author{ID: strings.TrimPrefix(value, "@")})
			if err != nil || !who.Member {
				return value + " is not here."
			}
			i.Person[o.Name] = who
		default:
			i.Text[o.Name] = value
		}
	}
	return ""
}
