package activate

import (
	"strings"

	"chorus/internal/room"
	"chorus/internal/window"
)

// Order is what a reaction asks for.
type Order string

// What reactions can ask for.
const (
	None    Order = ""
	Abort   Order = "abort"
	Approve Order = "approve"
	Deny    Order = "deny"
	Hide    Order = "hide"
	Show    Order = "show" // undoes Hide
)

// On is the message that was reacted to.
type On struct {
	Card   bool   // the message asks for an approval
	Run    bool   // it is the status or the trigger of a current run
	Sender string // who asked for that run
}

// Ordered reads a reaction. A cross aborts only if it comes from whoever asked. Whether somebody
// may approve is decided by the gate. The agent's own reactions ask for nothing.
func Ordered(e room.Event, on On, agent room.Agent) Order {
	if e.Kind != room.Reacted || agent.Wrote(e.By) || e.By.Program() {
		return None
	}
	if window.IsFace(e.Emoji) {
		if e.Added {
			return Hide
		}
		return Show
	}
	if !e.Added {
		return None
	}
	switch strings.TrimSuffix(e.Emoji, "\ufe0f") {
	case "✅", "👍", "☑", "✔":
		if on.Card {
			return Approve
		}
	case "❌", "👎", "✖", "🛑", "❎":
		if on.Card {
			return Deny
		}
		if on.Run && e.By.ID != "" && e.By.ID == on.Sender && e.Emoji != "👎" {
			return Abort
		}
	}
	return None
}
