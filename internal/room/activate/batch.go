package activate

import (
	"chorus/internal/room"
)

// Batch is a series of events in one channel that are either all the platform's or all ours.
type Batch struct {
	Channel string
	Events  []room.Event
}

// Batches groups consecutive events of the same kind in the same channel. Channels do not
// interrupt each other. The batches keep the order of their first events.
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
