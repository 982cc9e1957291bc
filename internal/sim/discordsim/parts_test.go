package discordsim

import (
	"testing"

	"github.com/coder/websocket"
)

// Whoever says goodbye has no session any more; whoever is merely gone has.
func TestWhoSaysGoodbyeCannotResume(t *testing.T) {
	t.Parallel()
	for code, stays := range map[websocket.StatusCode]bool{websocket.StatusNormalClosure: false, websocket.StatusGoingAway: false, 4000: true} {
		s := StartT(t, Options{})
		c, id := identified(t, s, "chorus", talkative)
		ok(t, c.ws.Close(code, ""))
		ok(t, s.WaitGone(within(t), "chorus"))
		again := dial(t, s.Gateway())
		again.read()
		again.send(opResume, object{"token": s.Token("chorus"), "session_id": id, "seq": 1})
		if p := again.read(); (p.Op != opInvalidSession) != stays {
			t.Errorf("after a close with %d the answer to a resume is %+v", code, p)
		}
	}
	// Nor does it harm anybody who never had one.
	s := StartT(t, Options{})
	c := dial(t, s.Gateway())
	c.read()
	ok(t, c.ws.Close(websocket.StatusNormalClosure, ""))
	identified(t, s, "chorus", talkative)
}
