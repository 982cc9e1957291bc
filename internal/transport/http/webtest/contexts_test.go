package webtest

import (
	"testing"

	"chorus/internal/operations"
)

// What the agent sees is saved and brought back by commands that somebody types below a conversation.
func TestContextsAreSavedFromThePage(t *testing.T) {
	t.Parallel()
	h := newServer(t)
	p, id := h.begin(operations.NewSession{Title: "A bridge", Permissions: "open", Model: "demo/script"})
	h.prompt(id, "!say the bridge is of oak")
	p.waitForAnswer("the bridge is of oak")
	p.desktop()
	p.say("/context save before the steel")
	p.waitForText("2 messages. Nothing was cleared.")
	p.say("/context history")
	p.waitForText("before the steel")
	p.look("contexts-1280")
	p.phone()
	p.fits("saved contexts on a phone")
}
