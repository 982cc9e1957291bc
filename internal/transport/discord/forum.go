package discord

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"hash/crc32"
	"slices"
	"strings"
	"time"

	"github.com/disgoorg/disgo/discord"
	"github.com/disgoorg/disgo/rest"
	"github.com/disgoorg/snowflake/v2"

	"chorus/internal/outbox"
	"chorus/internal/platform"
	"chorus/internal/room/split"
	"chorus/internal/transport/discord/gateway"
)

// Discord's limits of forums.
const (
	maxForumTags   = 20
	maxAppliedTags = 5
	maxPostTitle   = 100
)

// tagless is how long to wait after a forum's tags could not be created.
const tagless = time.Hour

var errNoPost = errors.New("the post is not there")

// forum returns the forum that a post of ours goes to; false: the channel is not a forum, or the post is an ordinary message.
func (c *Client) forum(ctx context.Context, channel string, p platform.Post) (discord.GuildForumChannel, bool, error) {
	if p.Entry == nil {
		return discord.GuildForumChannel{}, false, nil
	}
	_, err := c.Channel(ctx, channel) // the guild may not have reported its channels yet
	in, ok := c.cache.Forum(channel)
	return in, ok, err
}

// postMark is the component number that identifies the post of an outbox row. Discord does not
// support nonces for posts.
func postMark(nonce string) int { return int(crc32.ChecksumIEEE([]byte(nonce)) >> 1) }

// createPost creates a post. It first looks for an existing one, because after a crash nobody knows whether this is the first try.
func (c *Client) createPost(ctx context.Context, call outbox.Call, p platform.Post, in discord.GuildForumChannel) (string, error) {
	if id, err := c.findPost(ctx, in, call.Nonce, *p.Entry); err != nil || id != "" {
		return id, gateway.Trouble(err)
	}
	m := discord.MessageCreate{AllowedMentions: gateway.Only(p.Notify), Components: marked(p, call.Nonce), Flags: discord.MessageFlagIsComponentsV2, Files: attached(p, call.File)}
	tags := c.tagged(ctx, in, *p.Entry, nil)
	made, err := c.rest.Once.CreatePostInThreadChannel(in.ID(), discord.ThreadChannelPostCreate{Name: titleOf(*p.Entry), Message: m, AppliedTags: tags}, rest.WithCtx(ctx))
	if err != nil {
		return "", gateway.Trouble(err)
	}
	c.cache.Learn(made.GuildThread)
	return made.ID().String(), nil
}

// titleOf is the title of a post.
func titleOf(e platform.Entry) string {
	return cmp.Or(split.Clip(strings.Join(strings.Fields(e.Title), " "), maxPostTitle), "untitled")
}

// marked are the components of a post's first message.
func marked(p platform.Post, nonce string) []discord.LayoutComponent {
	p.Panel = cmp.Or(p.Panel, platform.PanelOver)
	list := components(p)
	if box, ok := list[0].(discord.ContainerComponent); ok {
		for i, part := range box.Components {
			if text, ok := part.(discord.TextDisplayComponent); ok {
				text.ID = postMark(nonce)
				box.Components[i] = text
				break
			}
		}
	}
	return list
}

// hasMark reports whether a message is the first one of the post with a mark.
func hasMark(m *discord.Message, mark int) bool {
	return slices.ContainsFunc(m.Components, func(one discord.LayoutComponent) bool {
		box, ok := one.(discord.ContainerComponent)
		return ok && slices.ContainsFunc(box.Components, func(part discord.ContainerSubComponent) bool {
			text, ok := part.(discord.TextDisplayComponent)
			return ok && text.ID == mark
		})
	})
}

// findPost looks for the post of an outbox row, among the active posts and the most recently archived ones; "": there is none.
func (c *Client) findPost(ctx context.Context, in discord.GuildForumChannel, nonce string, e platform.Entry) (string, error) {
	open, err := c.rest.Once.GetActiveGuildThreads(in.GuildID(), rest.WithCtx(ctx))
	if err != nil {
		return "", err
	}
	closed, err := c.rest.Once.GetPublicArchivedThreads(in.ID(), time.Time{}, historyPage, rest.WithCtx(ctx))
	if err != nil && !platform.Closed(gateway.Trouble(err)) { // we may not be able to read the history
		return "", err
	}
	list := open.Threads
	if closed != nil {
		list = slices.Concat(list, closed.Threads)
	}
	for _, t := range list {
		if t.ParentID() == nil || *t.ParentID() != in.ID() || t.OwnerID.String() != c.me().ID || t.Name() != titleOf(e) {
			continue
		}
		m, err := c.rest.Once.GetMessage(t.ID(), t.ID(), rest.WithCtx(ctx))
		if platform.Is(gateway.Trouble(err), outbox.Gone) {
			continue
		}
		if err != nil {
			return "", err
		}
		if hasMark(m, postMark(nonce)) {
			c.cache.Learn(t)
			return t.ID().String(), nil
		}
	}
	return "", nil
}

// editPost updates a post's first message, its title and its tag, and closes or opens it. It repeats what was done before.
func (c *Client) editPost(ctx context.Context, call outbox.Call, p platform.Post, in discord.GuildForumChannel) error {
	id := gateway.ID(call.ID)
	got, err := c.rest.Once.GetChannel(id, rest.WithCtx(ctx))
	if err != nil {
		return gateway.Trouble(err)
	}
	t, ok := got.(discord.GuildThread)
	if !ok {
		return &outbox.Trouble{Why: outbox.Gone, Err: errNoPost}
	}
	c.setClosed(call.ID, p.Entry.Over)
	tags, title := c.tagged(ctx, in, *p.Entry, t.AppliedTags), titleOf(*p.Entry)
	change := discord.GuildPostUpdate{}
	if !slices.Equal(tags, t.AppliedTags) {
		change.AppliedTags = &tags
	}
	if t.Name() != title {
		change.Name = &title // only if it changed, because names may be changed only twice in ten minutes
	}
	over, open := true, false
	if t.ThreadMetadata.Archived || t.ThreadMetadata.Locked && !p.Entry.Over {
		opened := discord.GuildPostUpdate{Archived: &open}
		if t.ThreadMetadata.Locked && !p.Entry.Over {
			opened.Locked = &open
		}
		if err := c.changePost(ctx, id, opened); err != nil {
			return err
		}
	}
	parts := marked(p, call.Nonce)
	files, none, flags := []discord.AttachmentUpdate{}, "", discord.MessageFlagIsComponentsV2
	m := discord.MessageUpdate{Content: &none, Embeds: &[]discord.Embed{}, Flags: &flags, AllowedMentions: gateway.Only(p.Notify), Components: &parts, Attachments: &files}
	if _, err := c.opening(ctx, call.ID, func() error {
		_, err := c.rest.Once.UpdateMessage(id, id, m, rest.WithCtx(ctx))
		return err
	}); err != nil {
		return err
	}
	if p.Entry.Over {
		change.Archived, change.Locked = &over, &over
	}
	if change == (discord.GuildPostUpdate{}) {
		return nil
	}
	_, err = c.opening(ctx, call.ID, func() error { return c.changePost(ctx, id, change) })
	return err
}

// changePost changes a post's properties. If it may not lock the post it closes it without locking. A tag that no longer exists, or a
// missing permission, does not keep the card from being updated.
func (c *Client) changePost(ctx context.Context, id snowflake.ID, change discord.GuildPostUpdate) error {
	try := func() error {
		_, err := c.rest.Once.UpdateChannel(id, change, rest.WithCtx(ctx))
		return gateway.Trouble(err)
	}
	err := try()
	if platform.Is(err, outbox.Forbidden) && change.Locked != nil {
		change.Locked = nil
		err = try()
	}
	if change.AppliedTags != nil && (platform.Is(err, outbox.Invalid) || platform.Is(err, outbox.Gone)) {
		change.AppliedTags = nil
		err = try()
	}
	if platform.Is(err, outbox.Forbidden) {
		c.Log.Info("a post cannot be closed, opened or tagged (the bot needs Manage Threads)", "event", "post_not_changed", "post", id, "error", err)
		return nil
	}
	return err
}

// tagged returns the tags of a post: those that people gave it, and ours.
func (c *Client) tagged(ctx context.Context, in discord.GuildForumChannel, e platform.Entry, have []snowflake.ID) []snowflake.ID {
	tag, ok := tagNamed(in.AvailableTags, e.Tag)
	if !ok && e.Tag != "" {
		if in, ok = c.makeTags(ctx, in, e); ok {
			tag, ok = tagNamed(in.AvailableTags, e.Tag)
		}
	}
	out := []snowflake.ID{}
	if ok {
		out = append(out, tag.ID)
	}
	for _, id := range have {
		i := slices.IndexFunc(in.AvailableTags, func(t discord.ChannelTag) bool { return t.ID == id })
		if i >= 0 && !slices.ContainsFunc(e.Tags, func(t platform.Tag) bool { return t.Name == in.AvailableTags[i].Name }) && len(out) < maxAppliedTags {
			out = append(out, id)
		}
	}
	if len(out) == 0 && in.Flags.Has(discord.ChannelFlagRequireTag) && len(in.AvailableTags) > 0 {
		out = append(out, in.AvailableTags[0].ID) // without a tag Discord would refuse the post
	}
	return out
}

func tagNamed(list []discord.ChannelTag, name string) (discord.ChannelTag, bool) {
	i := slices.IndexFunc(list, func(t discord.ChannelTag) bool { return t.Name == name })
	if i < 0 {
		return discord.ChannelTag{}, false
	}
	return list[i], true
}

// forumCreate is a new forum. The library's own type would send an invalid emoji.
type forumCreate struct {
	discord.GuildForumChannelCreate
}

// MarshalJSON implements json.Marshaler.
func (f forumCreate) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		Type   discord.ChannelType `json:"type"`
		Name   string              `json:"name"`
		Topic  string              `json:"topic,omitempty"`
		Parent snowflake.ID        `json:"parent_id,omitempty"`
	}{f.Type(), f.Name, f.Topic, f.ParentID})
}

// forumTags changes a forum's tags. The library's own type would send an id for new tags, and remove the slow mode.
type forumTags struct {
	discord.GuildForumChannelUpdate
	RateLimitPerUser *int       `json:"rate_limit_per_user,omitempty"`
	AvailableTags    []forumTag `json:"available_tags"`
}

type forumTag struct {
	ID        *snowflake.ID `json:"id,omitempty"`
	Name      string        `json:"name"`
	Moderated bool          `json:"moderated"`
	EmojiID   *snowflake.ID `json:"emoji_id"`
	EmojiName *string       `json:"emoji_name"`
}

// makeTags adds missing tags to a forum, the needed one first. Tags of people stay, and there is room for twenty. false: it
// failed, and posts have no tags.
func (c *Client) makeTags(ctx context.Context, in discord.GuildForumChannel, e platform.Entry) (discord.GuildForumChannel, bool) {
	id := in.ID().String()
	c.mu.Lock()
	wait := c.tagless[id]
	c.mu.Unlock()
	if time.Now().Before(wait) {
		return in, false
	}
	change := forumTags{}
	for _, t := range in.AvailableTags {
		change.AvailableTags = append(change.AvailableTags, forumTag{ID: &t.ID, Name: t.Name, Moderated: t.Moderated, EmojiID: t.EmojiID, EmojiName: t.EmojiName})
	}
	wanted := slices.Clone(e.Tags)
	slices.SortStableFunc(wanted, func(a, b platform.Tag) int {
		switch {
		case a.Name == e.Tag && b.Name != e.Tag:
			return -1
		case b.Name == e.Tag && a.Name != e.Tag:
			return 1
		}
		return 0
	})
	for _, t := range wanted {
		if _, there := tagNamed(in.AvailableTags, t.Name); there || len(change.AvailableTags) >= maxForumTags {
			continue
		}
		tag := forumTag{Name: split.Clip(t.Name, platform.MaxTag)}
		if t.Sign != "" {
			tag.EmojiName = &t.Sign
		}
		change.AvailableTags = append(change.AvailableTags, tag)
	}
	if len(change.AvailableTags) == len(in.AvailableTags) {
		return in, false
	}
	got, err := c.rest.Once.UpdateChannel(in.ID(), change, rest.WithCtx(ctx), rest.WithReason("the states of tasks"))
	if err != nil {
		if err = gateway.Trouble(err); !platform.Passing(err) {
			c.Log.Warn("a forum gets no tags for the states of tasks (the bot needs Manage Channels)", "event", "forum_tags", "channel", in.ID(), "error", err)
			c.mu.Lock()
			c.tagless[id] = time.Now().Add(tagless)
			c.mu.Unlock()
		}
		return in, false
	}
	c.cache.Learn(got)
	forum, ok := got.(discord.GuildForumChannel)
	return forum, ok
}

// setClosed records whether a post is closed, before it is.
func (c *Client) setClosed(post string, closed bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if closed {
		c.closed[post] = true
	} else {
		delete(c.closed, post)
	}
}

// closeAgain closes a post that a message reopened: a worker's last message may arrive after the end of its task.
func (c *Client) closeAgain(ctx context.Context, channel string) {
	c.mu.Lock()
	closed := c.closed[channel]
	c.mu.Unlock()
	if !closed {
		return
	}
	over := true
	if _, err := c.rest.UpdateChannel(gateway.ID(channel), discord.GuildPostUpdate{Archived: &over}, rest.WithCtx(ctx)); err != nil {
		c.Log.Info("a post that is over could not be closed again", "event", "post_not_changed", "post", channel, "error", err)
	}
}
