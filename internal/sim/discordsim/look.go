package discordsim

import (
	"encoding/json"
	"fmt"

	"chorus/internal/sim/discordsim/apierror"
	"chorus/internal/sim/discordsim/components"
	"chorus/internal/sim/discordsim/guild"
	"chorus/internal/sim/discordsim/jsonobject"
)

// Parent returns the category or parent channel of a channel; 0: none.
func (s *Sim) Parent(channel string) guild.ID {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := s.guild.ChannelNamed(channel); c != nil && c.ParentID != nil {
		return *c.ParentID
	}
	return 0
}

// Nick returns somebody's nickname in the guild; "": none.
func (s *Sim) Nick(name string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if a := s.guild.AccountNamed(name); a != nil && a.Member != nil && a.Member.Nick != nil {
		return *a.Member.Nick
	}
	return ""
}

// Rename renames a channel, as the guild's owner would.
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

// Count counts the channels with a name.
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

// Install installs a bot's application for a person: its commands that allow it are then available to them everywhere.
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

// Choices returns the values of a menu of a message.
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

// Restore replaces the body of a message, as if an earlier version of its author had written it. No client could do
// that, because components of the second version stay.
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
