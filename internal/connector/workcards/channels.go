package workcards

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"chorus/internal/chat"
	"chorus/internal/journal"
	"chorus/internal/platform"
	"chorus/internal/room"
	"chorus/internal/room/mark"
	"chorus/internal/room/split"
	"chorus/internal/work"
	"chorus/internal/workview"
)

// leads reports whether this bot does what belongs to no agent in particular.
func (c *Cards) leads() bool {
	thread, err := chat.NewThreadID(chat.WorkTransport, "any", "any", chat.DefaultAgent)
	return err == nil && c.Backend.Serves(c.Name, thread)
}

// finishChannels creates and archives the requested channels. A channel that was created before a crash is found again.
func (c *Cards) finishChannels(ctx context.Context) error {
	if !c.leads() {
		return nil
	}
	wanted, err := c.Backend.Memos(ctx, work.MemoWantedChannel)
	if err != nil {
		return err
	}
	for _, m := range wanted {
		if err := c.makeChannel(ctx, m); err != nil {
			return err
		}
	}
	gone, err := c.Backend.Memos(ctx, work.MemoArchiveChannel)
	if err != nil {
		return err
	}
	for _, m := range gone {
		if err := c.archiveChannel(ctx, m); err != nil {
			return err
		}
	}
	return nil
}

// makeChannel creates the channel that was requested with a project.
func (c *Cards) makeChannel(ctx context.Context, m journal.Memo) error {
	var wish work.ChannelWish
	if len(m.Value) == 0 || json.Unmarshal(m.Value, &wish) != nil {
		return nil
	}
	p, err := c.o.Work.Project(ctx, m.Key)
	switch {
	case errors.Is(err, journal.ErrUnknown):
		return nil // it does not exist yet, or never will
	case err != nil:
		return err
	case p.Channel != "":
		return c.Backend.Forget(ctx, work.MemoWantedChannel, m.Key)
	}
	channels, ok := c.Platform.(platform.Channels)
	guild, beside := c.wished(wish)
	if !ok || guild == "" {
		return nil
	}
	made, err := c.channelFor(ctx, channels, p, guild, beside, wish)
	if err != nil && platform.Passing(err) {
		return err
	}
	e := work.Event{Type: "project.channel", Text: made.ID, By: wish.By}
	if err != nil {
		c.Log.Warn("no channel could be made for a project", "event", "project_channel", "project", p.ID, "error", err)
		e = work.Event{Type: "project.channel_failed", Text: c.UserMessage(err), By: wish.By}
	}
	if _, err := c.o.Work.ChangeProject(ctx, p.ID, func(p *work.Project) (work.Event, error) {
		p.Channel = made.ID
		return e, nil
	}); err != nil {
		return err
	}
	if made.ID != "" {
		text := fmt.Sprintf("This is the channel of the project **%s** (`%s`). Messages here are about it, and its tasks are shown here.", p.Name, p.ID)
		post := platform.Post{Text: c.Backend.Redact(text)}
		if c.isBoard(made.ID) {
			post.Entry = c.entry(p.Name, workview.Label{})
		}
		if err := c.SetDesired(ctx, journal.Desired{Lane: c.Lane(made.ID), Key: "project/" + p.ID, Body: post.Body(), Final: true}); err != nil {
			return err
		}
	}
	return c.Backend.Forget(ctx, work.MemoWantedChannel, m.Key)
}

// wished is the guild for a requested channel, and the channel next to it. "": not on this platform.
func (c *Cards) wished(wish work.ChannelWish) (guild, beside string) {
	if transport, place, ok := strings.Cut(wish.Place, ":"); ok {
		if transport != c.Transport() {
			return "", ""
		}
		guild, beside, _ = room.PlaceParts(place)
		return guild, beside
	}
	names, ok := c.Platform.(platform.Names)
	if !ok {
		return "", ""
	}
	for id := range names.Guilds() {
		if id == "" || id == room.Direct {
			continue
		}
		if guild != "" {
			return "", "" // nobody said which
		}
		guild = id
	}
	return guild, ""
}

// channelFor finds the channel that was created for a project, or creates it.
func (c *Cards) channelFor(ctx context.Context, channels platform.Channels, p work.Project, guild, beside string, wish work.ChannelWish) (room.Channel, error) {
	topic := "The tasks of the project " + p.ID + "."
	list, err := channels.ChannelsOf(ctx, guild)
	if err != nil {
		return room.Channel{}, err
	}
	for _, there := range list {
		if there.Name == p.ID && there.Topic == topic {
			return there.Channel, nil
		}
	}
	return channels.MakeChannel(ctx, platform.NewChannel{Guild: guild, Name: p.ID, Topic: topic, Beside: beside, Board: wish.Board,
		Reason: "project " + p.ID + ", asked for by " + split.Clip(wish.By, 100)})
}

// archiveChannel archives the channel of a deleted project.
func (c *Cards) archiveChannel(ctx context.Context, m journal.Memo) error {
	if len(m.Value) == 0 {
		return nil
	}
	if _, err := c.o.Work.Project(ctx, m.Key); !errors.Is(err, journal.ErrUnknown) {
		return err // it was not deleted after all
	}
	managers, ok := c.Platform.(platform.Managers)
	if !ok {
		return nil
	}
	if err := managers.ArchiveChannel(ctx, string(m.Value), "project "+m.Key+" was deleted"); err != nil {
		if platform.Passing(err) {
			return err
		}
		c.Log.Warn("the channel of a deleted project could not be archived", "event", "project_channel", "project", m.Key, "channel", string(m.Value), "error", err)
	}
	return c.Backend.Forget(ctx, work.MemoArchiveChannel, m.Key)
}

// window is the period over which the tokens of a project are counted.
const window = 24 * time.Hour

// showBudget reports, once a day, that a project has used up its tokens.
func (c *Cards) showBudget(ctx context.Context, project string) error {
	p, err := c.o.Work.Project(ctx, project)
	if err != nil || p.TokenLimit == 0 || !c.leads() {
		return ignoreUnknown(err)
	}
	now := time.Now()
	spent, err := c.o.Work.SpentBy(ctx, now.Add(-window))
	if err != nil {
		return err
	}
	used := int64(0)
	for _, s := range spent {
		if s.Project == project {
			used = s.Tokens
		}
	}
	if used < p.TokenLimit {
		return nil
	}
	channel, err := c.channel(ctx, project)
	if err != nil || channel == "" {
		return err
	}
	day := now.UTC().Format(time.DateOnly)
	if row, err := c.Backend.Outgoing(ctx, c.Lane(channel), "project/"+project+"/budget/"+day); err == nil && row.Key != "" {
		return nil
	}
	text := fmt.Sprintf("⏸️ **%s** has used %d of %d tokens in 24 hours. Its tasks wait until usage drops or you raise the limit with edit_project.", p.Name, used, p.TokenLimit)
	post := platform.Post{Text: text}
	if c.isBoard(channel) {
		post.Entry = c.entry("Tokens used up on "+day, workview.Label{})
	}
	if string(p.Owner.Kind) == c.Transport() && p.Owner.ID != "" {
		post.Text, post.Notify = mark.Person(p.Owner.ID)+" "+text, []string{p.Owner.ID}
	}
	return c.SetDesired(ctx, journal.Desired{Lane: c.Lane(channel), Key: "project/" + project + "/budget/" + day, Body: post.Body(), Final: true})
}
