package discordsim

import (
	"strconv"

	"chorus/internal/sim/discordsim/guild"
)

// session is what a bot has from IDENTIFY on, over all of its sockets: its number of
// the last event, and the events that a resume brings again. Sim's lock is around it.
type session struct {
	id      string
	who     *guild.Account
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

// wants is whether the session hears of an event: it may, and it asked for it.
func (s *session) wants(g *guild.Guild, e guild.Event) bool {
	if !g.Reaches(e, s.who) {
		return false
	}
	if s.shard[1] > 1 && e.Channel != nil && !s.mine(e.Channel.GuildID) {
		return false
	}
	need := e.Needs()
	return need == 0 || s.intents&need != 0
}

// mine is Discord's rule for which shard hears of a guild; direct messages go to the first.
func (s *session) mine(guild guild.ID) bool {
	if guild == 0 {
		return s.shard[0] == 0
	}
	return int(uint64(guild)>>22%uint64(s.shard[1])) == s.shard[0]
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
		s.socket.wakeWriter()
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
