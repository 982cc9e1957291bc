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
