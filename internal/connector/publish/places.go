package publish

import (
	"cmp"
	"strconv"
	"strings"

	"chorus/internal/chat"
	"chorus/internal/room"
)

// places is where the messages of a conversation are: each prompt where it was said,
// each run where its first prompt wants the answer.
type places struct {
	platform string
	thread   chat.ThreadID
	asks     map[int64]ask
	runs     map[string][]int64 // the prompts of each run
	cards    map[string]string  // the run of each question
	notices  map[int64]string   // where messages without a run go
	run      string             // the active one; "": none
	// elsewhere is where a conversation of another transport is shown.
	elsewhere string
}

// ask is a message that waits for an answer.
type ask struct {
	message, channel, post, by string
	person                     string // its author, if that is somebody of this platform
}

func newPlaces(platform string, thread chat.ThreadID) places {
	return places{platform: platform, thread: thread, asks: map[int64]ask{}, runs: map[string][]int64{}, cards: map[string]string{}, notices: map[int64]string{}}
}

func (p *places) learn(ev chat.Event) {
	switch e := ev.Body.(type) {
	case chat.Received:
		if !e.Prompt {
			if to := cmp.Or(e.Post, e.Channel); to != "" {
				p.notices[ev.Seq] = to
			}
			return
		}
		a := ask{channel: e.Channel, post: cmp.Or(e.Post, e.Channel), by: e.Principal.ID}
		if ev.Platform == p.platform {
			a.message = ev.PlatformID
		}
		if who := e.Principal.Person(); string(who.Kind) == p.platform {
			a.person = who.ID
		}
		p.asks[ev.Seq] = a
	case chat.Steered:
		p.asks[ev.Seq] = ask{by: e.Principal.ID}
	case chat.RunStarted:
		p.run = e.Run
	case chat.Took:
		p.runs[e.Run] = append(p.runs[e.Run], e.Seqs...)
	case chat.ApprovalAsked:
		p.cards[e.ID] = cmp.Or(ev.Run, p.run)
	case chat.RunEnded:
		p.run = ""
	}
}

// home is the thread's default place: its channel, or the private
// thread that it is in.
func (p *places) home() string {
	if p.elsewhere != "" {
		return p.elsewhere
	}
	_, _, channel := room.PlaceParts(p.thread.Place())
	return channel
}

// of is where a run is shown.
func (p *places) of(run string) string {
	for _, seq := range p.runs[run] {
		if a := p.asks[seq]; a.post != "" {
			return a.post
		}
	}
	return p.home()
}

func (p *places) now() string { return p.of(p.run) }

// placed reports whether the place of the active run is known: a run begins one event before
// it takes its prompts.
func (p *places) placed() bool {
	_, took := p.runs[p.run]
	return took || p.run == ""
}

// askers are the people who asked for the active run.
func (p *places) askers() []string {
	var out []string
	for _, seq := range p.runs[p.run] {
		out = append(out, p.asks[seq].by)
	}
	return out
}

// ofKey is where a message of ours is.
func (p *places) ofKey(key string) string {
	if told, ok := strings.CutPrefix(key, "notice-"); ok {
		told, _, _ = strings.Cut(told, "/")      // which of its messages
		seq, _ := strconv.ParseInt(told, 10, 64) // 0 is not a valid number
		return cmp.Or(p.notices[seq], p.home())
	}
	what, id, _ := strings.Cut(key, "/")
	switch what {
	case "ask":
		return p.of(p.cards[id])
	case "refused":
		if seq, err := strconv.ParseInt(id, 10, 64); err == nil && p.asks[seq].channel != "" {
			return p.asks[seq].channel
		}
		return p.home()
	default:
		return p.of(what)
	}
}

// askOf is the first message that a message of ours answers.
func (p *places) askOf(key string) ask {
	what, id, _ := strings.Cut(key, "/")
	switch what {
	case "ask":
		what = p.cards[id]
	case "refused":
		seq, _ := strconv.ParseInt(id, 10, 64) // 0 is not a valid number
		return p.asks[seq]
	}
	for _, seq := range p.runs[what] {
		if a := p.asks[seq]; a.message != "" {
			return a
		}
	}
	return ask{}
}

// ofMessage is where somebody else's message is.
func (p *places) ofMessage(id string) string {
	for _, a := range p.asks {
		if a.message == id && a.channel != "" {
			return a.channel
		}
	}
	return p.home()
}

// forget drops what is over; only when nothing is active.
func (p *places) forget() {
	clear(p.asks)
	clear(p.runs)
	clear(p.cards)
	clear(p.notices)
}
