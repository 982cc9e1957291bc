package discordsim

import (
	"fmt"
	"slices"
)

// The limits of forums.
const (
	maxTags          = 20 // of a forum
	maxTagName       = 20
	maxAppliedTags   = 5 // of a post
	maxActiveThreads = 1000
)

// checkTags looks at the tags that a forum is to have.
func checkTags(f *form, tags []Tag) {
	if len(tags) > maxTags {
		f.add("available_tags", "BASE_TYPE_MAX_LENGTH", "Must be %d or fewer in length.", maxTags)
	}
	for i, tag := range tags {
		f.between(index("available_tags", i)+".name", len([]rune(tag.Name)), 1, maxTagName)
		if tag.EmojiID != nil && tag.EmojiName != nil {
			f.add(index("available_tags", i)+".emoji_name", "FORUM_TAG_EMOJI", "Only one of emoji_id and emoji_name can be set.")
		}
	}
}

// setTags gives a forum its tags: those without an id are new.
func (w *world) setTags(c *Channel, tags []Tag) error {
	if c.Type != TypeForum {
		return badRequest(50024, "Cannot execute action on this channel type")
	}
	names := map[string]bool{}
	for i := range tags {
		if names[tags[i].Name] {
			return badRequest(40061, "Tag names must be unique")
		}
		names[tags[i].Name] = true
		if tags[i].ID == 0 {
			tags[i].ID = w.id()
		} else if !slices.ContainsFunc(c.AvailableTags, func(have Tag) bool { return have.ID == tags[i].ID }) {
			return notFound(10087, "tag")
		}
	}
	c.AvailableTags = tags
	return nil
}

// mayTag says why an account cannot give a post of a forum these tags, in the place of those that it has.
func (w *world) mayTag(a *account, forum *Channel, tags, have []ID) error {
	if forum.Type != TypeForum {
		return badRequest(50024, "Cannot execute action on this channel type")
	}
	if len(tags) > maxAppliedTags {
		return wrong("applied_tags", "BASE_TYPE_MAX_LENGTH", "Must be %d or fewer in length.", maxAppliedTags)
	}
	moderates := w.rights(a, forum).Has(PermManageThreads)
	for i, id := range tags {
		at := slices.IndexFunc(forum.AvailableTags, func(t Tag) bool { return t.ID == id })
		switch {
		case at < 0:
			return notFound(10087, "tag")
		case slices.Contains(tags[:i], id):
			return wrong("applied_tags", "SET_TYPE_ALREADY_CONTAINS_VALUE", "The set already contains this value")
		case forum.AvailableTags[at].Moderated && !moderates && !slices.Contains(have, id):
			return noPermission()
		}
	}
	if len(tags) == 0 && forum.Flags&ChannelRequireTag != 0 {
		return badRequest(40067, "A tag is required to create a forum post in this channel")
	}
	return nil
}

// roomForThread says why no thread can be opened any more.
func (w *world) roomForThread() error {
	n := 0
	for _, c := range w.channels {
		if c.thread() && !c.Metadata.Archived {
			n++
		}
	}
	if n >= maxActiveThreads {
		return badRequest(160006, "Maximum number of active threads reached")
	}
	return nil
}

// OpenPost is a person beginning a post in a forum, with tags by their names.
func (s *Sim) OpenPost(person, forum, title, text string, tags ...string) (id ID, err error) {
	err = s.as(person, func(a *account) error {
		c, err := s.w.in(forum)
		if err != nil {
			return err
		}
		b := &threadBody{Name: title, Message: &messageBody{Content: &text, keys: map[string]bool{"content": true}}}
		for _, name := range tags {
			i := slices.IndexFunc(c.AvailableTags, func(t Tag) bool { return t.Name == name })
			if i < 0 {
				return fmt.Errorf("the forum has no tag %q", name)
			}
			b.AppliedTags = append(b.AppliedTags, c.AvailableTags[i].ID)
		}
		t, _, err := s.w.threadIn(a, c, b)
		if err == nil {
			id = t.ID
		}
		return err
	})
	return id, err
}

// ForumPost is a post of a forum as people see it.
type ForumPost struct {
	ID               ID
	Title            string
	Tags             []string
	By               string
	Archived, Locked bool
}

// Posts are those of a forum, in the order in which they were begun.
func (s *Sim) Posts(forum string) ([]ForumPost, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c, err := s.w.in(forum)
	if err != nil {
		return nil, err
	}
	var out []ForumPost
	for _, t := range s.w.channels {
		if !t.thread() || t.ParentID == nil || *t.ParentID != c.ID {
			continue
		}
		p := ForumPost{ID: t.ID, Title: t.Name, Archived: t.Metadata.Archived, Locked: t.Metadata.Locked}
		if by := s.w.account(t.OwnerID); by != nil {
			p.By = by.Username
		}
		for _, tag := range c.AvailableTags {
			if slices.Contains(t.AppliedTags, tag.ID) {
				p.Tags = append(p.Tags, tag.Name)
			}
		}
		out = append(out, p)
	}
	return out, nil
}

// SetTags gives a forum these tags, by their names.
func (s *Sim) SetTags(forum string, names ...string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	c, err := s.w.in(forum)
	if err != nil {
		return err
	}
	tags := make([]Tag, len(names))
	for i, name := range names {
		tags[i].Name = name
	}
	if err := s.w.setTags(c, tags); err != nil {
		return err
	}
	s.w.tellChannel("CHANNEL_UPDATE", c)
	return nil
}

// Tags are the names of a forum's tags.
func (s *Sim) Tags(forum string) ([]string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c, err := s.w.in(forum)
	if err != nil {
		return nil, err
	}
	var out []string
	for _, tag := range c.AvailableTags {
		out = append(out, tag.Name)
	}
	return out, nil
}

// TagPost adds a tag to a post, by its name.
func (s *Sim) TagPost(post ID, name string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.w.channel(post)
	if t == nil || !t.thread() || t.ParentID == nil {
		return fmt.Errorf("there is no post %s", post)
	}
	for _, tag := range s.w.channel(*t.ParentID).AvailableTags {
		if tag.Name == name {
			t.AppliedTags = append(slices.Clone(t.AppliedTags), tag.ID)
			s.w.tellChannel("THREAD_UPDATE", t)
			return nil
		}
	}
	return fmt.Errorf("the forum has no tag %q", name)
}
