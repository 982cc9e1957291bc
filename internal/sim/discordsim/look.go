package discordsim

import (
	"encoding/json"
	"fmt"
	"strings"
)

// Parent is the category or channel that a channel hangs under; 0: none.
func (s *Sim) Parent(channel string) ID {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := s.w.channelNamed(channel); c != nil && c.ParentID != nil {
		return *c.ParentID
	}
	return 0
}

// Nick is what somebody is called in the guild; "": by their own name.
func (s *Sim) Nick(name string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if a := s.w.accountNamed(name); a != nil && a.member != nil && a.member.Nick != nil {
		return *a.member.Nick
	}
	return ""
}

// Rename gives a channel another name, as whoever keeps the guild would.
func (s *Sim) Rename(channel, name string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	c, err := s.w.in(channel)
	if err != nil {
		return err
	}
	raw, err := json.Marshal(name)
	if err != nil {
		return err
	}
	if err := s.w.changeChannel(c, patch{"name": raw}); err != nil {
		return err
	}
	s.w.tellChannel("CHANNEL_UPDATE", c)
	return nil
}

// Count is how many channels have a name.
func (s *Sim) Count(channel string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for _, c := range s.w.channels {
		if c.Name == channel {
			n++
		}
	}
	return n
}

// Text is what people read in a message: its content, or the texts of its components.
func (m Message) Text() string {
	return strings.TrimPrefix(m.Content+displayed(m.Components), "\n")
}

// CustomIDs are those of the buttons and menus of a message, in their order.
func (m Message) CustomIDs() []string { return customIDs(m.Components) }

func customIDs(list []object) (out []string) {
	for _, o := range list {
		if id := textOf(o, "custom_id"); id != "" {
			out = append(out, id)
		}
		out = append(out, customIDs(listOf(o, "components"))...)
		if child, ok := o["accessory"].(map[string]any); ok {
			out = append(out, customIDs([]object{child})...)
		}
	}
	return out
}

// Install is a person installing a bot's application for themselves: its commands that allow it
// come along wherever they are.
func (s *Sim) Install(person, bot string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	who, app := s.w.accountNamed(person), s.w.accountNamed(bot)
	if who == nil || app == nil {
		return fmt.Errorf("there is no %q or no %q", person, bot)
	}
	app.installed = append(app.installed, who.ID)
	return nil
}

// Choices are the values that can be chosen in a menu of a message.
func (s *Sim) Choices(message ID, customID string) (out []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, m, err := s.w.holds(message); err == nil {
		for _, option := range listOf(findComponent(m.Components, customID), "options") {
			out = append(out, textOf(option, "value"))
		}
	}
	return out
}

// Restore puts another body in the place of a message's, as if an earlier version of its author
// had written it. No client could do that: what has components of the second version keeps them.
func (s *Sim) Restore(message ID, body []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, m, err := s.w.holds(message)
	if err != nil {
		return err
	}
	b, err := decodeMessage(body, nil)
	if err != nil {
		return err
	}
	m.Content, m.Components, m.Flags = b.text(), s.w.numbered(b.Components), m.Flags&^FlagComponentsV2
	return nil
}
