package discordsim

import "encoding/json"

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
