package discordsim

import (
	"encoding/json"
	"strconv"
)

// session is what a bot has from IDENTIFY on, over all of its sockets: its number of
// the last event, and the events that a resume brings again. Sim's lock is around it.
type session struct {
	id      string
	who     *account
	intents int
	shard   [2]int
	seq     int
	events  []frame
	keep    int
	socket  *socket // the one it speaks through now; nil: it is away
}

// frame is an event as it goes over the wire.
type frame struct {
	seq int
	raw []byte
}

// reaches is whether an account may hear of an event at all.
func (w *world) reaches(e event, who *account) bool {
	if e.only != 0 {
		return e.only == who.ID
	}
	return e.channel == nil || w.sees(who, e.channel)
}

// wants is whether the session hears of an event: it may, and it asked for it.
func (s *session) wants(w *world, e event) bool {
	if !w.reaches(e, s.who) {
		return false
	}
	if s.shard[1] > 1 && e.channel != nil && !s.mine(e.channel) {
		return false
	}
	need := e.intent
	if e.channel != nil && e.channel.Type == TypeDM {
		need = e.dmIntent
	}
	return need == 0 || s.intents&need != 0
}

// mine is Discord's rule for which shard hears of a guild; direct messages go to the first.
func (s *session) mine(c *Channel) bool {
	if c.GuildID == 0 {
		return s.shard[0] == 0
	}
	return int(uint64(c.GuildID)>>22%uint64(s.shard[1])) == s.shard[0]
}

// render is an event's data as an account sees it; nil: as the guild itself does.
func (w *world) render(e event, who *account) []byte {
	if e.message == nil {
		raw, err := json.Marshal(e.data)
		if err != nil {
			return []byte("null")
		}
		return raw
	}
	var viewer ID
	if who != nil {
		viewer = who.ID
	}
	raw, err := json.Marshal(w.view(e.message, viewer, true))
	if err != nil {
		return []byte("null")
	}
	return raw
}

// rendered is an event's data for one session: without what people wrote, where the bot may not read it.
func (s *session) rendered(w *world, e event) []byte {
	m := e.message
	if m == nil || s.intents&intentContent != 0 || m.Author.ID == s.who.ID || e.channel.Type == TypeDM {
		return w.render(e, s.who)
	}
	for _, id := range m.mentions {
		if id == s.who.ID {
			return w.render(e, s.who)
		}
	}
	raw, err := json.Marshal(hidden(w.view(m, s.who.ID, true)))
	if err != nil {
		return []byte("null")
	}
	return raw
}

// push gives an event its number and sends it on.
func (s *session) push(name string, data []byte) {
	s.seq++
	raw := make([]byte, 0, len(data)+len(name)+40)
	raw = append(raw, `{"op":0,"s":`...)
	raw = strconv.AppendInt(raw, int64(s.seq), 10)
	raw = append(raw, `,"t":"`...)
	raw = append(raw, name...)
	raw = append(raw, `","d":`...)
	raw = append(raw, data...)
	raw = append(raw, '}')
	s.events = append(s.events, frame{seq: s.seq, raw: raw})
	if len(s.events) > 2*s.keep {
		s.events = append([]frame(nil), s.events[len(s.events)-s.keep:]...)
	}
	if s.socket != nil {
		s.socket.ring()
	}
}

// since are the events after a number; false: they are no longer all there.
func (s *session) since(seq int) ([]frame, bool) {
	if seq > s.seq || len(s.events) == 0 {
		return nil, seq == s.seq
	}
	skip := seq - s.events[0].seq + 1 // the numbers have no gaps
	if skip < 0 {
		return s.events, false
	}
	return s.events[skip:], true
}
