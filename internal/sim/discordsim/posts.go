package discordsim

import (
	"fmt"
	"slices"

	"chorus/internal/sim/discordsim/guild"
)

// OpenPost starts a post in a forum as a person, with tags by name.
func (s *Sim) OpenPost(person, forum, title, text string, tags ...string) (id guild.ID, err error) {
	err = s.as(person, func(a *guild.Account) error {
		c, err := s.guild.FindChannel(forum)
		if err != nil {
			return err
		}
		b := &guild.ThreadBody{Name: title, Message: guild.TextBody(text)}
		for _, name := range tags {
			i := slices.IndexFunc(c.AvailableTags, func(t guild.Tag) bool { return t.Name == name })
			if i < 0 {
				return fmt.Errorf("the forum has no tag %q", name)
			}
			b.AppliedTags = append(b.AppliedTags, c.AvailableTags[i].ID)
		}
		t, _, err := s.guild.ThreadIn(a, c, b)
		if err == nil {
			id = t.ID
		}
		return err
	})
	return id, err
}

// ForumPost is a post of a forum as people see it.
type ForumPost struct {
	ID               guild.ID
	Title            string
	Tags             []string
	By               string
	Archived, Locked bool
}

// Posts returns the posts of a forum, in order of creation.
func (s *Sim) Posts(forum string) ([]ForumPost, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c, err := s.guild.FindChannel(forum)
	if err != nil {
		return nil, err
	}
	var out []ForumPost
	for _, t := range s.guild.Channels {
		if !t.IsThread() || t.ParentID == nil || *t.ParentID != c.ID {
			continue
		}
		p := ForumPost{ID: t.ID, Title: t.Name, Archived: t.Metadata.Archived, Locked: t.Metadata.Locked}
		if by := s.guild.Account(t.OwnerID); by != nil {
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

// SetTags sets the tags of a forum, by name.
func (s *Sim) SetTags(forum string, names ...string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	c, err := s.guild.FindChannel(forum)
	if err != nil {
		return err
	}
	tags := make([]guild.Tag, len(names))
	for i, name := range names {
		tags[i].Name = name
	}
	return s.guild.ChangeTags(c, tags)
}

// Tags returns the names of a forum's tags.
func (s *Sim) Tags(forum string) ([]string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c, err := s.guild.FindChannel(forum)
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
func (s *Sim) TagPost(post guild.ID, name string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.guild.Channel(post)
	if t == nil || !t.IsThread() || t.ParentID == nil {
		return fmt.Errorf("there is no post %s", post)
	}
	return s.guild.TagPost(t, name)
}
