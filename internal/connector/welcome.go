package connector

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"chorus/internal/journal"
	"chorus/internal/platform"
	"chorus/internal/room/mark"
)

// A bot that is added to a guild introduces itself once. It first stores where, then
// requests the message under one key, then stores that it did. Whichever step is the last before a crash, the next connection continues
// there, and the outbox posts a key only once.

// welcomed records where a guild was greeted, and whether that is done.
type welcomed struct {
	Channel string `json:"channel"`
	Done    bool   `json:"done"`
}

// The kinds of memos of greetings, and the key of the one that says since when a bot greets.
func (b *Bot) welcomes() string { return "welcome/" + b.transport + "/" + b.Name }

const welcomeSince = "since"

// newHome is how long before its first start a bot may have been added to be greeted for: people invite a bot, then start it.
const newHome = 7 * 24 * time.Hour

// joined greets a guild that the bot was added to.
func (b *Bot) joined(ctx context.Context, e platform.Joined) error {
	since, err := b.greetsSince(ctx)
	if err != nil {
		return err
	}
	kept, err := b.Backend.Recall(ctx, b.welcomes(), e.Guild)
	if err != nil {
		return err
	}
	var w welcomed
	if kept != nil {
		if err := json.Unmarshal(kept, &w); err != nil {
			return fmt.Errorf("what is kept of the greeting in guild %s: %w", e.Guild, err)
		}
	}
	switch {
	case w.Done:
		return nil
	case w.Channel == "" && (e.Greet == "" || !e.At.After(since)):
		return nil
	case w.Channel == "":
		w.Channel = e.Greet
		if err := b.keepWelcome(ctx, e.Guild, w); err != nil {
			return err
		}
	}
	if b.Backend.Greets(b.Name) { // otherwise it counts as done: turning greetings on later does not mean old servers
		if err := b.SetDesired(ctx, journal.Desired{Lane: b.Lane(w.Channel), Key: "welcome", Body: b.welcomePost(e.Name).Body(), Final: true}); err != nil {
			return err
		}
	}
	w.Done = true
	return b.keepWelcome(ctx, e.Guild, w)
}

func (b *Bot) keepWelcome(ctx context.Context, guild string, w welcomed) error {
	data, err := json.Marshal(w)
	if err != nil {
		return err
	}
	return b.Backend.Remember(ctx, b.welcomes(), guild, data)
}

// greetsSince is the time after which a bot must have been added for a greeting. A home that knew the bot before
// greetings existed does not greet in old places.
func (b *Bot) greetsSince(ctx context.Context) (time.Time, error) {
	kept, err := b.Backend.Recall(ctx, b.welcomes(), welcomeSince)
	if err != nil {
		return time.Time{}, err
	}
	if at, err := time.Parse(time.RFC3339, string(kept)); err == nil {
		return at, nil
	}
	cursors, err := b.Backend.Cursors(ctx, b.transport, b.Name)
	if err != nil {
		return time.Time{}, err
	}
	since := time.Now().UTC()
	if len(cursors) == 0 {
		since = since.Add(-newHome)
	}
	return since, b.Backend.Remember(ctx, b.welcomes(), welcomeSince, []byte(since.Format(time.RFC3339)))
}

// PressHelp is the action that shows the help, PressOverview its choice of no topic.
const (
	PressHelp     = "topic"
	PressOverview = "overview"
)

// welcomePost is the bot's introduction.
func (b *Bot) welcomePost(guild string) platform.Post {
	command := func(name, options string) string {
		return "`" + strings.TrimSpace("/"+b.CommandName(platform.Command{Name: name})+" "+options) + "`"
	}
	lines := []string{
		fmt.Sprintf("**Hello, %s. I am %s.** I answer questions and do work: I read and write files, run commands, and keep notes and tasks.", mark.Line(guild, 60), mark.Line(b.Called(b.Name), 60)),
		"- **Talk to me:** mention me (" + mark.Person(b.Self().ID) + "), reply to me, or use " + command("ask", "") + ". In direct messages you do not need to mention me.",
	}
	if b.can.commands != nil && b.can.channels != nil {
		lines = append(lines, "- **Give me a channel:** "+command("agent init", "name:helper")+" creates an agent with its own channel. It is for people who may manage channels.")
	}
	lines = append(lines,
		"- **You decide:** I ask before I do anything I may not do alone, and only people with the right to do so can approve. "+command("access", "")+" shows what I may do for you.",
		mark.Small(command("help", "")+" explains how to reach me in your current channel, with examples."))
	p := platform.Post{Text: b.Backend.Redact(strings.Join(lines, "\n"))}
	if b.caps.MaxPanel > 0 {
		p.Panel = platform.PanelWork
	}
	if b.caps.Buttons && b.can.commands != nil {
		p.More = []platform.Button{{Label: "Show me around", Value: platform.ButtonValue(PressHelp, PressOverview)}}
	}
	return p
}
