package commands

import (
	"context"
	"fmt"
	"strings"

	"chorus/internal/connector"
	"chorus/internal/platform"
	"chorus/internal/room"
	"chorus/internal/room/mark"
	"chorus/internal/room/route"
)

// intro explains the current place: how to reach the agent, three things to try, and who may do what.
func (b *Set) intro(ctx context.Context, o request) (string, error) {
	if o.Absent {
		return fmt.Sprintf("I am not in this channel, but %s works: I answer in a direct message.", b.typed("ask", "")), nil
	}
	l, ok, err := b.listenerHere(ctx, o.in)
	if err != nil {
		return "", err
	}
	if !ok {
		return "I do not answer in this channel, because I am not set up to read it.", nil
	}
	parts := []string{b.reach(l, o.in)}
	may, err := b.Backend.Access(ctx, connector.Caller{By: o.by, Guild: o.in.Guild}, l.Name, o.in)
	if err != nil {
		return "", err
	}
	parts = append(parts, "**Try this here**\n- "+strings.Join(b.tries(l, o.in, may), "\n- "), "**Who may do what**\n- "+strings.Join(b.whoMay(o, may), "\n- "))
	if links := b.links(ctx, o); links != "" {
		parts = append(parts, links)
	}
	return strings.Join(parts, "\n"), nil
}

// typed is a command with options, as it is typed here.
func (b *Set) typed(name, options string) string {
	if b.WritesCommands() {
		options = optionMark().ReplaceAllString(options, "$1=")
	}
	return "`" + strings.TrimSpace("/"+b.CommandName(platform.Command{Name: name})+" "+options) + "`"
}

// reach says who answers in a channel through this bot, and to what.
func (b *Set) reach(l connector.Listener, in room.Channel) string {
	name := mark.Line(b.Called(l.Name), 60)
	switch me := mark.Person(b.Self().ID); {
	case in.Guild == "" || in.Guild == room.Direct:
		return fmt.Sprintf("I am **%s**. In direct messages you do not need to mention me.", name)
	case l.IsRoom():
		return fmt.Sprintf("I am **%s**. This channel is a room: I read everything, and answer when you mention me (%s), reply to me or use %s.", name, me, b.typed("ask", ""))
	case l.Answer == route.AnswerAll:
		return fmt.Sprintf("I am **%s**. I answer every message here unless it is for another agent.", name)
	case l.Bound && l.Answer != route.AnswerMentioned:
		return fmt.Sprintf("I am **%s**, and this is my channel: I answer every message that is not for somebody else. You do not need to mention me.", name)
	default:
		return fmt.Sprintf("I am **%s**. Here I answer when you mention me (%s), reply to a message of mine or use %s.", name, me, b.typed("ask", ""))
	}
}

// tries are three suggestions for this channel.
func (b *Set) tries(l connector.Listener, in room.Channel, may connector.Access) []string {
	direct := in.Guild == "" || in.Guild == room.Direct
	to := ""
	if !direct && l.Answer != route.AnswerAll && (l.IsRoom() || !l.Bound || l.Answer == route.AnswerMentioned) {
		to = mark.Person(b.Self().ID) + " "
	}
	say := func(words string) string { return to + "*" + words + "*" }
	switch {
	case may.Task:
		return []string{say("what have you done so far?"), say("leave the tests alone and go on"), b.typed("task", "list") + " shows the tasks around this one"}
	case may.Project:
		return []string{say("add a task to fix the footer"), say("what is running?"), b.typed("task", "list") + " shows what there is to do"}
	case may.Nothing != "":
		return []string{b.typed("access", "") + " says why I do nothing for you here", b.typed("status", "") + " shows who answers here", b.typed("help", "topic:look") + " explains what you can look at"}
	case l.IsRoom():
		return []string{say("sum up what we agreed on"), say("what would you do instead?"), b.typed("ask", "prompt:What did I miss today?")}
	case direct:
		return []string{say("explain this error to me") + ", with the file attached", say("write a plan for my week"), b.typed("cost", "since:7d") + " shows what you spent"}
	default:
		return []string{say("list the files in your workspace"), say("read README.md and tell me what it is about"), b.typed("why", "") + " shows how the last answer came about"}
	}
}

// those describes the people who have a right.
func those(right platform.Right) string {
	switch right {
	case platform.ManageChannels:
		return "people who may manage channels"
	case platform.ManageGuild:
		return "people who may manage the server"
	default:
		return "everybody"
	}
}

// whoMay says what the agent does for somebody here, who answers its questions, and which commands are restricted.
func (b *Set) whoMay(o request, may connector.Access) (out []string) {
	switch {
	case may.Nothing != "":
		out = append(out, "For you I do nothing here.")
	case may.Open:
		out = append(out, "For you I do everything except what is refused to everybody.")
	default:
		for _, p := range may.Profiles {
			out = append(out, fmt.Sprintf("For you, `%s`: %s.", code(p.Name), strings.TrimSuffix(p.Means, ".")))
		}
	}
	if may.Answers != "" {
		out = append(out, "For anything else I ask first. "+capital(strings.ReplaceAll(may.Answers, ", ", " or "))+" may approve.")
	}
	byRight := map[platform.Right][]string{}
	for _, c := range b.Offers() {
		if c.Needs != platform.Everyone {
			byRight[c.Needs] = append(byRight[c.Needs], "`/"+b.CommandName(c)+"`")
		}
	}
	for _, right := range []platform.Right{platform.ManageChannels, platform.ManageGuild} {
		if list := byRight[right]; len(list) > 0 && o.in.Guild != room.Direct {
			out = append(out, strings.Join(list, ", ")+": for "+those(right)+".")
		}
	}
	return append(out, b.typed("access", "")+" says why.")
}

func capital(s string) string {
	if s == "" {
		return s
	}
	return strings.ToUpper(s[:1]) + s[1:]
}

// maxLinks limits the listed channels.
const maxLinks = 8

// links lists the channels of agents on this server.
func (b *Set) links(ctx context.Context, o request) string {
	by, ok := o.caller()
	if !ok {
		return ""
	}
	agents, err := b.Backend.GuildAgents(ctx, by)
	if err != nil {
		return "" // help without links is still help
	}
	var list []string
	for _, a := range agents {
		if a.Channel != "" && a.Channel != o.in.Home() && len(list) < maxLinks {
			list = append(list, mark.Channel(a.Channel)+" ("+a.Name+")")
		}
	}
	if len(list) == 0 {
		return ""
	}
	return "**Agents with channels of their own**: " + strings.Join(list, ", ")
}
