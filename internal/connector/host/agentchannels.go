package host

import (
	"os"
	"sync"
	"time"

	"chorus/internal/chat"
)

// channelOwners are the agents by their own channel, which may be renamed. They
// are read again when an agent is added or removed, in any process.
type channelOwners struct {
	mu   sync.Mutex
	seen time.Time // when the folder of all agents was last changed
	by   map[string]string
}

// ownerOf is the agent whose own channel it is; "": nobody's.
func (h *Backend) ownerOf(guild, channel string) string {
	d := &h.owners
	d.mu.Lock()
	defer d.mu.Unlock()
	info, err := os.Stat(h.App.Home.Agents())
	if err != nil {
		return ""
	}
	if d.by == nil || !info.ModTime().Equal(d.seen) {
		d.seen, d.by = info.ModTime(), map[string]string{}
		entries, _ := os.ReadDir(h.App.Home.Agents())
		for _, e := range entries {
			if at := h.App.LivesIn(e.Name()); chat.ValidAgentName(e.Name()) && at.Channel != "" {
				d.by[at.Channel] = e.Name()
			}
		}
	}
	name := d.by[channel]
	if name == "" || !h.App.LivesIn(name).in(guild, channel) { // it may have moved since
		return ""
	}
	return name
}

// forget makes the next lookup read all of them.
func (d *channelOwners) forget() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.by = nil
}
