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

// textHelp is the command that lists the others.
const textHelp = "help"

// textCommand carries out a message that is a command; false: it is words like any others. It
// is carried out once, by one of our bots: one that was begun when the program ended is lost.
func (b *Bot) textCommand(ctx context.Context, m room.Message) (bool, error) {
	words := strings.Fields(m.Text)
	if b.can.commands != nil || len(words) == 0 || !strings.HasPrefix(words[0], "/") || m.System || m.Author.Program() {
		return false, nil
	}
	words[0] = words[0][1:]
	offered := b.offered()
	c, path, rest := findCommand(offered, words)
	if c == nil && words[0] != textHelp {
		return false, nil
	}
	done, err := b.Backend.Arrive(ctx, journal.Arrival{Platform: b.transport, What: "command", PlatformID: m.ID, Decision: path})
	if err != nil || done.Again {
		return true, err
	}
	b.inBackground(func(ctx context.Context) {
		var a platform.Answer
		if c == nil {
			a = b.whole(says(helpText(offered)))
		} else {
			a = b.invokeText(ctx, m, path, c.Options, rest)
		}
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

// offered are the commands that everybody may give. What the platform should ask a right for is
// left out: nobody says which rights the author of a message has.
func (b *Bot) offered() []platform.Command {
	var out []platform.Command
	for _, set := range b.commands {
		for _, c := range set.List() {
			if !c.Menu && c.Needs == platform.Everyone && !slices.ContainsFunc(out, func(o platform.Command) bool { return o.Name == c.Name }) {
				out = append(out, c)
			}
		}
	}
	return out
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

// helpText lists commands, one a line.
func helpText(list []platform.Command) string {
	var out strings.Builder
	var add func(prefix string, list []platform.Command)
	add = func(prefix string, list []platform.Command) {
		for _, c := range list {
			if len(c.Sub) > 0 {
				add(prefix+c.Name+" ", c.Sub)
				continue
			}
			fmt.Fprintf(&out, "/%s%s", prefix, c.Name)
			for _, o := range c.Options {
				fmt.Fprintf(&out, " %s=…", o.Name)
			}
			fmt.Fprintf(&out, ": %s\n", c.Description)
		}
	}
	add("", list)
	return strings.TrimSpace(out.String())
}
