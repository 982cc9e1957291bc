package pages

import (
	"testing"

	"chorus/internal/operations"
)

func TestFunctions(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ got, want string }{
		{modelOf(operations.Session{Provider: "demo", Model: "guide"}), "demo/guide"}, {modelOf(operations.Session{Model: "demo/guide"}), "demo/guide"},
		{string(marked("<b>\x01x\x02")), "&lt;b&gt;<mark>x</mark>"},
	} {
		if c.got != c.want {
			t.Errorf("%q instead of %q", c.got, c.want)
		}
	}
}

func TestSentence(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{"": "", "no such thing": "No such thing.", "really?": "Really?", "ändern geht nicht": "Ändern geht nicht.", `"x" is none`: `"x" is none.`, "Done.": "Done."} {
		if got := sentence(text); got != want {
			t.Errorf("%q is %q, not %q", text, got, want)
		}
	}
}
