package activate

import (
	"chorus/internal/room"
)

// Batches divides events into series of one channel that are either all the platform's or all ours. Channels do not
// interrupt each other. The batches keep the order of their first events.
func Batches(events []room.Event) [][]room.Event {
	var out [][]room.Event
	last := map[string]int{} // the channel's newest batch
	for _, e := range events {
		channel := e.Message.In.ID
		i, ok := last[channel]
		if !ok || out[i][0].Kind.FromPlatform() != e.Kind.FromPlatform() {
			i = len(out)
			last[channel] = i
			out = append(out, nil)
		}
		out[i] = append(out[i], e)
	}
	return out
}
