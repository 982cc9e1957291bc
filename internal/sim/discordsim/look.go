package discordsim

import (
	"encoding/json"
	"fmt"

	"chorus/internal/sim/discordsim/apierror"
	"chorus/internal/sim/discordsim/components"
	"chorus/internal/sim/discordsim/guild"
	"chorus/internal/sim/discordsim/jsonobject"
)

// Parent is the category or channel that a channel hangs under; 0: none.
func (s *Sim) Parent(channel string) guild.ID {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := s.guild.ChannelNamed(channel); c != nil && c.ParentID != nil {
		return *c.ParentID
	}
	return 0
}

// Nick is what somebody is called in the guild; "": by their own name.
func (s *Sim) Nick(name string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if a := s.guild.AccountNamed(name); a != nil && a.Member != nil && a.Member.Nick != nil {
		return *a.Member.Nick
	}
	return ""
}

// Rename gives a channel another name, as whoever keeps the guild would.
func (s *Sim) Rename(channel, name string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	c, err := s.guild.FindChannel(channel)
	if err != nil {
		return err
	}
	raw, err := json.Marshal(name)
	if err != nil {
		return err
	}
	return s.guild.UpdateChannel(c, apierror.Patch{"name": raw})
}

// Count is how many channels have a name.
func (s *Sim) Count(channel string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for _, c := range s.guild.Channels {
		if c.Name == channel {
			n++
		}
	}
	return n
}

// Install is a person installing a bot's application for themselves: its commands that allow it
// come along wherever they are.
func (s *Sim) Install(person, bot string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	who, app := s.guild.AccountNamed(person), s.guild.AccountNamed(bot)
	if who == nil || app == nil {
		return fmt.Errorf("there is no %q or no %q", person, bot)
	}
	app.Install(who.ID)
	return nil
}

// Choices are the values that can be chosen in a menu of a message.
func (s *Sim) Choices(message guild.ID, customID string) (out []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, m, err := s.guild.FindMessage(message); err == nil {
		for _, option := range jsonobject.List(components.Find(m.Components, customID), "options") {
			out = append(out, jsonobject.Text(option, "value"))
		}
	}
	return out
}

// Restore puts another body in the place of a message's, as if an earlier version of its author
// had written it. No client could do that: what has components of the second version keeps them.
func (s *Sim) Restore(message guild.ID, body []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, m, err := s.guild.FindMessage(message)
	if err != nil {
		return err
	}
	b, err := guild.DecodeMessage(body, nil)
	if err != nil {
		return err
	}
	s.guild.Restore(m, b)
	return nil
}
