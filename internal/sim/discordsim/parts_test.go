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

func TestFindComponent(t *testing.T) {
	t.Parallel()
	list := []object{
		{"components": []any{map[string]any{"custom_id": "in a row"}, map[string]any{"custom_id": ""}}},
		{"accessory": map[string]any{"custom_id": "beside a text"}},
		{"component": map[string]any{"components": []any{map[string]any{"custom_id": "deep"}}}},
		{"custom_id": "at the top"},
	}
	for id, want := range map[string]bool{"in a row": true, "beside a text": true, "deep": true, "at the top": true, "nowhere": false, "": false} {
		if found := findComponent(list, id); (found != nil) != want || want && textOf(found, "custom_id") != id {
			t.Errorf("%q finds %v", id, found)
		}
	}
}

func TestFileName(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"a.txt": "a.txt", "Az09-_.md": "Az09-_.md", "a b.txt": "a_b.txt", "a{b}[c]@d.txt": "abcd.txt", "../../x.png": "x.png", "é.txt": ".txt", "..": "file", "{}": "file",
	} {
		if got := fileName(name); got != want {
			t.Errorf("%q is kept as %q, not %q", name, got, want)
		}
	}
}
