package discordsim

import (
	"strconv"

	"chorus/internal/sim/discordsim/guild"
)

// session is the state of a bot since IDENTIFY, across all of its sockets: the number of its last event, and the events
// that a resume sends again. It is guarded by Sim's lock.
type session struct {
	id      string
	who     *guild.Account
	intents int
	shard   [2]int
	seq     int
	events  []frame
	keep    int
	socket  *socket // the current socket; nil: disconnected
}

// frame is an event as sent.
type frame struct {
	seq int
	raw []byte
}

// wants reports whether the session gets an event: it may see it, and has the intent.
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

// mine is Discord's rule for which shard gets a guild's events; direct messages go to the first.
func (s *session) mine(guild guild.ID) bool {
	if guild == 0 {
		return s.shard[0] == 0
	}
	return int(uint64(guild)>>22%uint64(s.shard[1])) == s.shard[0]
}

// push numbers an event and sends it.
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

// since returns the events after a number; false: some of them are no longer available.
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
