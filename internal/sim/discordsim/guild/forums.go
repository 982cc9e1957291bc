package guild

import (
	"fmt"
	"slices"

	"chorus/internal/sim/discordsim/apierror"
)

// The limits of forums.
const (
	maxTags          = 20 // of a forum
	maxTagName       = 20
	maxAppliedTags   = 5 // of a post
	maxActiveThreads = 1000
)

// checkTags validates the tags of a forum.
func checkTags(f *apierror.Form, tags []Tag) {
	if len(tags) > maxTags {
		f.Add("available_tags", "BASE_TYPE_MAX_LENGTH", "Must be %d or fewer in length.", maxTags)
	}
	for i, tag := range tags {
		f.Between(apierror.Item("available_tags", i)+".name", len([]rune(tag.Name)), 1, maxTagName)
		if tag.EmojiID != nil && tag.EmojiName != nil {
			f.Add(apierror.Item("available_tags", i)+".emoji_name", "FORUM_TAG_EMOJI", "Only one of emoji_id and emoji_name can be set.")
		}
	}
}

// setTags sets the tags of a forum: those without an id are new.
func (g *Guild) setTags(c *Channel, tags []Tag) error {
	if c.Type != TypeForum {
		return apierror.BadRequest(50024, "Cannot execute action on this channel type")
	}
	names := map[string]bool{}
	for i := range tags {
		if names[tags[i].Name] {
			return apierror.BadRequest(40061, "Tag names must be unique")
		}
		names[tags[i].Name] = true
		if tags[i].ID == 0 {
			tags[i].ID = g.NewID()
		} else if !slices.ContainsFunc(c.AvailableTags, func(have Tag) bool { return have.ID == tags[i].ID }) {
			return apierror.NotFound(10087, "tag")
		}
	}
	c.AvailableTags = tags
	return nil
}

// mayTag says why an account cannot replace the tags of a forum post with these.
func (g *Guild) mayTag(a *Account, forum *Channel, tags, have []ID) error {
	if forum.Type != TypeForum {
		return apierror.BadRequest(50024, "Cannot execute action on this channel type")
	}
	if len(tags) > maxAppliedTags {
		return apierror.Wrong("applied_tags", "BASE_TYPE_MAX_LENGTH", "Must be %d or fewer in length.", maxAppliedTags)
	}
	moderates := g.Rights(a, forum).Has(PermManageThreads)
	for i, id := range tags {
		at := slices.IndexFunc(forum.AvailableTags, func(t Tag) bool { return t.ID == id })
		switch {
		case at < 0:
			return apierror.NotFound(10087, "tag")
		case slices.Contains(tags[:i], id):
			return apierror.Wrong("applied_tags", "SET_TYPE_ALREADY_CONTAINS_VALUE", "The set already contains this value")
		case forum.AvailableTags[at].Moderated && !moderates && !slices.Contains(have, id):
			return apierror.NoPermission()
		}
	}
	if len(tags) == 0 && forum.Flags&ChannelRequireTag != 0 {
		return apierror.BadRequest(40067, "A tag is required to create a forum post in this channel")
	}
	return nil
}

// roomForThread says why no thread can be opened any more.
func (g *Guild) roomForThread() error {
	n := 0
	for _, c := range g.Channels {
		if c.IsThread() && !c.Metadata.Archived {
			n++
		}
	}
	if n >= maxActiveThreads {
		return apierror.BadRequest(160006, "Maximum number of active threads reached")
	}
	return nil
}

// ChangeTags changes the tags of a forum, and announces it.
func (g *Guild) ChangeTags(c *Channel, tags []Tag) error {
	if err := g.setTags(c, tags); err != nil {
		return err
	}
	g.tellChannel("CHANNEL_UPDATE", c)
	return nil
}

// TagPost adds a tag to a post of a forum, by its name.
func (g *Guild) TagPost(t *Channel, name string) error {
	for _, tag := range g.Channel(*t.ParentID).AvailableTags {
		if tag.Name == name {
			t.AppliedTags = append(slices.Clone(t.AppliedTags), tag.ID)
			g.tellChannel("THREAD_UPDATE", t)
			return nil
		}
	}
	return fmt.Errorf("the forum has no tag %q", name)
}
