package discord_test

import (
	"strings"
	"testing"
	"time"

	"chorus/internal/connector/connectortest"
	"chorus/internal/platform"
	"chorus/internal/platform/platformtest"
	"chorus/internal/sim/discordsim"
	"chorus/internal/store/storetest"
	"chorus/internal/transport/discord"
)

func TestPlatform(t *testing.T) {
	t.Parallel()
	platformtest.Run(t, func(t *testing.T) *platformtest.Server { return newGuild(t).server() })
}

func TestAgents(t *testing.T) {
	t.Parallel()
	connectortest.Run(t, storetest.FreshHome, func(t *testing.T) *platformtest.Server { return newGuild(t).server() })
}

// guild is a simulated guild with one bot and one person.
type guild struct {
	*testing.T
	*discordsim.Sim
}

func newGuild(t *testing.T) guild {
	t.Helper()
	// Time runs slowly, because a click is to be answered within three seconds, which a busy machine may not keep.
	return guild{t, discordsim.StartT(t, discordsim.Options{NoRateLimits: true, TimeScale: 0.1})}
}

func (g guild) server() *platformtest.Server {
	return &platformtest.Server{
		Guild: g.Guild().String(), Channel: g.Channel("general").String(), Other: g.Channel("random").String(), Person: g.User("ada").String(),
		Open: g.open, Say: g.say, Press: g.press, Invoke: g.invoke, Shows: g.shows, Private: g.private, Fail: g.fail,
		Edit:   func(id, text string) { g.must(g.Edit("ada", g.id(id), text)) },
		Delete: func(id string) { g.must(g.Delete("ada", g.id(id))) },
		React:  func(id, emoji string) { g.must(g.React("ada", g.id(id), emoji)) },
		Cut:    func() { g.inject(discordsim.Fault{Kind: discordsim.FaultDrop}) },
	}
}

func (g guild) open() platform.Platform {
	g.Helper()
	c, err := discord.New(discord.Options{Bot: "chorus", Token: g.Token("chorus"), API: g.API(), FirstBackoff: 10 * time.Millisecond})
	g.must(err)
	return c
}

func (g guild) must(err error) {
	g.Helper()
	if err != nil {
		g.Fatal(err)
	}
}

func (g guild) id(id string) discordsim.ID {
	g.Helper()
	n, err := discordsim.ParseID(id)
	g.must(err)
	return n
}

func (g guild) inject(f discordsim.Fault) {
	g.Helper()
	_, err := g.Inject(f)
	g.must(err)
}

func (g guild) say(channel string, p platformtest.Post) string {
	g.Helper()
	said := discordsim.Said{Text: p.Text}
	if p.ReplyTo != "" {
		said.Reply = g.id(p.ReplyTo)
	}
	if p.File != "" {
		said.Files = map[string][]byte{p.File: p.Data}
	}
	id, err := g.Post("ada", channel, said)
	g.must(err)
	return id.String()
}

// press clicks a button and waits until the click was acknowledged.
func (g guild) press(id, value string) {
	g.Helper()
	i, err := g.Click("ada", g.id(id), value)
	g.must(err)
	_, err = g.WaitInteraction(g.Context(), i.ID)
	g.must(err)
}

func (g guild) invoke(channel, command string, options map[string]string) {
	g.Helper()
	name, _, _ := strings.Cut(command, " ")
	g.must(g.WaitCommand(g.Context(), "chorus", name))
	given := map[string]any{}
	for name, value := range options {
		given[name] = value
	}
	i, err := g.Slash("ada", channel, "chorus", command, given)
	g.must(err)
	_, err = g.WaitInteraction(g.Context(), i.ID)
	g.must(err)
}

// private is what only ada sees.
func (g guild) private() []string {
	g.Helper()
	list, err := g.Messages("general")
	g.must(err)
	var out []string
	for _, m := range list {
		if m.Flags&discordsim.FlagEphemeral != 0 {
			out = append(out, m.Text())
		}
	}
	return out
}

func (g guild) shows(channel string) []platformtest.Shown {
	g.Helper()
	list, err := g.Messages(channel)
	g.must(err)
	var out []platformtest.Shown
	for _, m := range list {
		const threadStarter = 21
		if m.Flags&discordsim.FlagEphemeral != 0 || m.Type == threadStarter {
			continue
		}
		one := platformtest.Shown{ID: m.ID.String(), Text: m.Text(), Own: m.Author.Bot, Files: map[string]int{}}
		if m.Reference != nil {
			one.ReplyTo = m.Reference.MessageID.String()
		}
		one.Buttons = m.CustomIDs()
		for _, r := range m.Reactions {
			one.Reactions = append(one.Reactions, r.Emoji.Name)
		}
		for _, a := range m.Attachments {
			one.Files[a.Filename] = a.Size
		}
		for _, u := range m.Mentions {
			one.Notified = append(one.Notified, u.Username)
		}
		if m.MentionEveryone || len(m.MentionRoles) > 0 {
			one.Notified = append(one.Notified, "everyone")
		}
		out = append(out, one)
	}
	return out
}

func (g guild) fail(f platformtest.Failure) {
	g.Helper()
	fault := discordsim.Fault{Route: "POST /channels/{channel}/messages", Count: 1}
	switch f {
	case platformtest.Lost:
		fault.Kind, fault.After = discordsim.FaultHangup, true
	case platformtest.Refused:
		fault.Kind = discordsim.FaultError
	case platformtest.Limited:
		fault.Kind, fault.Millis = discordsim.FaultLimit, 100
	case platformtest.Silent:
		fault.Kind, fault.Millis = discordsim.FaultSlow, int(time.Minute/time.Millisecond)
	}
	g.inject(fault)
}
