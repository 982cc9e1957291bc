package activate

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"chorus/internal/room"
)

// Batch is a run of events in one channel that are all the platform's, or all ours.
type Batch struct {
	Channel string
	Events  []room.Event
}

// Batches puts events together: those of one channel that follow each other and are of
// one sort. Channels do not interrupt each other. Batches stand in the order of their
// first events.
func Batches(events []room.Event) []Batch {
	var out []Batch
	last := map[string]int{} // the channel's newest batch
	for _, e := range events {
		channel := e.Message.In.ID
		i, ok := last[channel]
		if !ok || out[i].Events[0].Kind.FromPlatform() != e.Kind.FromPlatform() {
			i = len(out)
			last[channel] = i
			out = append(out, Batch{Channel: channel})
		}
		out[i].Events = append(out[i].Events, e)
	}
	return out
}

// Activation is one wish to speak, of one agent in one channel. Several that came while
// it could not are one.
type Activation struct {
	Channel  string
	Whys     []Why    // each once, in the order they came
	Messages []string // the messages that asked for it, oldest first; none for a timer
}

// Trigger is the newest message that asked: the one to reply to. "" if there is none.
func (a Activation) Trigger() string {
	if len(a.Messages) == 0 {
		return ""
	}
	return a.Messages[len(a.Messages)-1]
}

func (a Activation) and(b Activation) Activation {
	out := Activation{Channel: a.Channel, Whys: slices.Clone(a.Whys), Messages: slices.Clone(a.Messages)}
	for _, why := range b.Whys {
		if !slices.Contains(out.Whys, why) {
			out.Whys = append(out.Whys, why)
		}
	}
	for _, id := range b.Messages {
		if !slices.Contains(out.Messages, id) {
			out.Messages = append(out.Messages, id)
		}
	}
	return out
}

// Queue is the activations of one agent: in each channel at most one is on, and at most one waits behind it. The
// zero value is empty.
type Queue struct {
	on      map[string]Activation
	waiting map[string]Activation
}

// Want adds an activation. It returns the one to start, or nil when one is on in that channel: then it waits,
// joined with whatever waits already.
func (q Queue) Want(a Activation) (Queue, *Activation) {
	if _, busy := q.on[a.Channel]; busy {
		if w, ok := q.waiting[a.Channel]; ok {
			a = w.and(a)
		}
		q.waiting = with(q.waiting, a)
		return q, nil
	}
	q.on = with(q.on, a)
	return q, &a
}

// End says that the activation in a channel is over, well or badly. It returns the one that waited, which is
// then on.
func (q Queue) End(channel string) (Queue, *Activation) {
	q.on = without(q.on, channel)
	next, ok := q.waiting[channel]
	if !ok {
		return q, nil
	}
	q.waiting = without(q.waiting, channel)
	q.on = with(q.on, next)
	return q, &next
}

// On is what is on in a channel.
func (q Queue) On(channel string) (Activation, bool) { a, ok := q.on[channel]; return a, ok }

// Waiting is what waits in a channel.
func (q Queue) Waiting(channel string) (Activation, bool) { a, ok := q.waiting[channel]; return a, ok }

func with(m map[string]Activation, a Activation) map[string]Activation {
	out := maps.Clone(m)
	if out == nil {
		out = map[string]Activation{}
	}
	out[a.Channel] = a
	return out
}

func without(m map[string]Activation, channel string) map[string]Activation {
	out := maps.Clone(m)
	delete(out, channel)
	return out
}

// Outcome is what a round of batches asks for.
type Outcome struct {
	Start     []Activation
	Delete    []room.Message    // commands to take away
	React     map[string]string // message id to emoji
	Decisions []Decided
	Failed    []error // one for each event that could not be decided; the others were
}

// Decided is an event with its decision.
type Decided struct {
	Event    room.Event
	Decision Decision
}

var errKind = errors.New("no such kind of event")

// Round decides the batches in order and starts what may start. What all triggers of a batch
// ask for is one activation. An event that cannot be decided is named in Failed and
// stops neither its batch nor the others.
func Round(f Queue, batches []Batch, decide func(room.Event) (Decision, error)) (Queue, Outcome) {
	out := Outcome{React: map[string]string{}}
	for _, b := range batches {
		want := Activation{Channel: b.Channel}
		for _, e := range b.Events {
			d, err := Decision{}, errKind
			if e.Kind.Known() {
				d, err = decide(e)
			}
			if err != nil {
				out.Failed = append(out.Failed, fmt.Errorf("%s %s in channel %s: %w", e.Kind, e.Message.ID, b.Channel, err))
				continue
			}
			out.Decisions = append(out.Decisions, Decided{e, d})
			if d.Delete {
				out.Delete = append(out.Delete, e.Message)
			}
			if d.React != "" {
				out.React[e.Message.ID] = d.React
			}
			if d.Answer {
				want = want.and(asked(b.Channel, e, d))
			}
		}
		if len(want.Whys) == 0 {
			continue
		}
		var start *Activation
		if f, start = f.Want(want); start != nil {
			out.Start = append(out.Start, *start)
		}
	}
	return f, out
}

// asked is one event's wish. A command is no message to reply to: it is taken away.
func asked(channel string, e room.Event, d Decision) Activation {
	a := Activation{Channel: channel, Whys: []Why{d.Why}}
	if e.Kind == room.Said && !d.Delete && e.Message.ID != "" {
		a.Messages = []string{e.Message.ID}
	}
	return a
}
