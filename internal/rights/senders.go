package rights

import "chorus/internal/chat"

// Senders follows a thread's journal and knows on whose words the run that is on works.
// The zero value is a thread without events.
type Senders struct {
	waiting map[int64]chat.Principal // who sent a prompt that no run has taken
	running []chat.Principal
}

// Apply takes the next event.
func (s *Senders) Apply(ev chat.Event) {
	switch b := ev.Body.(type) {
	case chat.Received:
		if b.Prompt {
			s.wait(ev.Seq, b.Principal)
		}
	case chat.Steered:
		s.wait(ev.Seq, b.Principal)
	case chat.RunStarted:
		s.running = nil
		s.add(b.Principal)
	case chat.Took:
		for _, seq := range b.Seqs {
			s.add(s.waiting[seq]) // one nobody knows has no rights, and so has the run
			delete(s.waiting, seq)
		}
	case chat.Refused:
		delete(s.waiting, b.Seq)
	case chat.Deleted:
		delete(s.waiting, b.Seq)
	case chat.RunEnded:
		s.running = nil
	}
}

func (s *Senders) wait(seq int64, p chat.Principal) {
	if s.waiting == nil {
		s.waiting = map[int64]chat.Principal{}
	}
	s.waiting[seq] = p
}

// add keeps a principal each time its roles are others: they may have changed.
func (s *Senders) add(p chat.Principal) {
	for _, q := range s.running {
		if same(p, q) {
			return
		}
	}
	s.running = append(s.running, p)
}

func same(p, q chat.Principal) bool {
	if p.Kind != q.Kind || p.ID != q.ID || len(p.Roles) != len(q.Roles) {
		return false
	}
	for i, r := range p.Roles {
		if q.Roles[i] != r {
			return false
		}
	}
	return true
}

// Principals are those on whose words the run works, the one who started it first.
func (s *Senders) Principals() []chat.Principal { return append([]chat.Principal(nil), s.running...) }
