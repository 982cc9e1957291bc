package commands

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"chorus/internal/connector"
	"chorus/internal/pattern"
	"chorus/internal/platform"
	"chorus/internal/room"
	"chorus/internal/room/mark"
)

// topic is a group of commands in the help.
type topic struct {
	name, about string
	commands    []entry
}

// entry is a single command.
type entry struct {
	platform.Command
	words string // as it is typed here, without options
}

// optionMark matches the start of an option in an example; in written commands it is name=value.
var optionMark = pattern.Lazy(`\b([a-z_]+):`)

// topics are the commands of this bot, in the order in which platforms show them. A command with
// subcommands is its own topic.
func (b *Set) topics() []topic {
	out := []topic{{name: platform.TopicTalk, about: "Give agents work, and stop it"}, {name: platform.TopicLook, about: "See what happens here, why, and what it costs"}}
	for _, c := range b.Offers() {
		name := cmp.Or(c.Topic, c.Name)
		at := slices.IndexFunc(out, func(t topic) bool { return t.name == name })
		if at < 0 {
			out = append(out, topic{name: name, about: c.Description})
			at = len(out) - 1
		}
		for _, one := range leaves(c, "/"+b.CommandName(c)) {
			if b.WritesCommands() {
				one.Example = optionMark().ReplaceAllString(one.Example, "$1=")
			}
			out[at].commands = append(out[at].commands, one)
		}
	}
	return slices.DeleteFunc(out, func(t topic) bool { return len(t.commands) == 0 })
}

// leaves are the single commands: a command itself, or its subcommands with the
// rights of the top one.
func leaves(c platform.Command, words string) (out []entry) {
	if len(c.Sub) == 0 {
		return []entry{{c, words}}
	}
	for _, sub := range c.Sub {
		sub.Needs = c.Needs
		out = append(out, leaves(sub, words+" "+sub.Name)...)
	}
	return out
}

// example is the command with typical options.
func (e entry) example() string { return strings.TrimSpace(e.words + " " + e.Example) }

// pressTopic is the action of the list of topics, overview its choice of no topic.
const (
	pressTopic = connector.PressHelp
	overview   = connector.PressOverview
)

func (b *Set) help(ctx context.Context, o request) platform.Answer {
	return b.helpAbout(ctx, o, o.Text["topic"])
}

// helpAbout explains how to reach the agent here, what to try, who may do what, and which commands there are; or all commands of
// one topic.
func (b *Set) helpAbout(ctx context.Context, o request, about string) platform.Answer {
	all := b.topics()
	a := platform.Answer{Panel: true, Selects: []platform.Select{{Value: platform.ButtonValue(pressTopic, "help"), Hint: "More about a topic"}}}
	for _, name := range append([]string{overview}, topicNames(all)...) {
		a.Selects[0].Choices = append(a.Selects[0].Choices, platform.Choice{Label: name, Value: name})
	}
	if name := strings.ToLower(strings.TrimSpace(about)); name != "" && name != overview {
		at := slices.IndexFunc(all, func(t topic) bool { return t.name == name })
		if at < 0 {
			return says(fmt.Sprintf("There is no topic %q; choose one of %s.", mark.Line(name, 40), strings.Join(topicNames(all), ", ")))
		}
		a.Text = all[at].text()
		return a
	}
	intro, err := b.intro(ctx, o)
	if err != nil {
		return says(b.UserMessage(err))
	}
	a.Text = intro + "\n\n" + b.overview(all)
	return a
}

// overview lists the most common commands with an example, and the names of the other topics: a list of all commands teaches nobody.
func (b *Set) overview(all []topic) string {
	var out strings.Builder
	var more []string
	for _, t := range all {
		if t.name != platform.TopicTalk && t.name != platform.TopicLook {
			more = append(more, t.name)
			continue
		}
		fmt.Fprintf(&out, "**%s**: %s, as in `%s`\n%s\n", t.name, t.about, t.commands[0].example(), mark.Small(t.names()))
	}
	if len(more) > 0 {
		fmt.Fprintf(&out, "**More topics**: %s\n", strings.Join(more, ", "))
	}
	for _, t := range all {
		for _, c := range t.commands {
			if c.Name == "help" {
				out.WriteString(mark.Small("`" + c.example() + "` explains each command of a topic"))
			}
		}
	}
	return strings.TrimSpace(out.String())
}

// names lists a topic's commands in one line, naming each group once.
func (t topic) names() string {
	var list []string
	before := ""
	for _, c := range t.commands {
		group, last, under := strings.Cut(c.words, " ")
		switch {
		case c.Menu:
			list = append(list, c.Name)
		case under && group == before:
			list = append(list, last)
		case under:
			list = append(list, "`"+group+"` "+last)
		default:
			list = append(list, "`"+c.words+"`")
		}
		before = group
	}
	return strings.Join(list, " ")
}

// text explains each command of a topic.
func (t topic) text() string {
	var out strings.Builder
	fmt.Fprintf(&out, "**%s**: %s\n", t.name, t.about)
	for _, c := range t.commands {
		needs := ""
		if c.Needs != platform.Everyone {
			needs = " (for " + those(c.Needs) + ")"
		}
		if c.Menu {
			fmt.Fprintf(&out, "- **%s**: in the menu of a message\n", c.Name)
			continue
		}
		fmt.Fprintf(&out, "- `%s`: %s%s, as in `%s`\n", c.words, c.Description, needs, c.example())
	}
	return strings.TrimSpace(out.String())
}

func topicNames(all []topic) (names []string) {
	for _, t := range all {
		names = append(names, t.name)
	}
	return names
}

func (b *Set) proposeTopics(_ context.Context, o request, option string) []platform.Choice {
	return choices(slices.DeleteFunc(topicNames(b.topics()), func(name string) bool { return !strings.HasPrefix(name, strings.ToLower(o.Text[option])) }))
}

// listenerHere is the agent that answers in a channel through this bot; false: none does.
func (b *Set) listenerHere(ctx context.Context, in room.Channel) (connector.Listener, bool, error) {
	list, err := b.Backend.Listeners(ctx, b.Name, b.Self(), in)
	if err != nil {
		return connector.Listener{}, false, err
	}
	at := slices.IndexFunc(list, func(l connector.Listener) bool { return l.User == b.Self().ID })
	if at < 0 {
		return connector.Listener{}, false, nil
	}
	return list[at], true, nil
}

// ask passes somebody's words to the agent that answers here. The result is an ordinary
// run: the platform reports the message, which is then like any other.
func (b *Set) ask(ctx context.Context, o request) platform.Answer {
	words := strings.TrimSpace(o.Text["prompt"])
	if words == "" {
		return says("The prompt is empty. Write what you want to know.")
	}
	in := o.in
	if o.Absent {
		in = room.Channel{Guild: room.Direct}
	}
	l, ok, err := b.listenerHere(ctx, in)
	switch {
	case err != nil:
		return says(b.UserMessage(err))
	case !ok:
		return says("I do not answer in this channel. Ask me in another one, or in a direct message.")
	case l.Blocks(o.By):
		return says("You are not allowed to ask me anything.")
	case !o.Absent:
		return platform.Answer{Say: words}
	}
	channel, err := b.AskDirectly(ctx, o.Invocation, words)
	if err != nil {
		return says(b.UserMessage(err))
	}
	return says("I am not in this channel, so the answer comes by direct message: " + mark.Channel(channel))
}
