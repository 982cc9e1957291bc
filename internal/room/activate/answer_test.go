package activate

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func TestAnswered(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		text  string
		order Order
		note  string
		plain bool
	}{
		{"yes", Approve, "", true},
		{" Yes! ", Approve, "", true},
		{"approve: go for it", Approve, "go for it", true},
		{"yes, please", Approve, "please", true},
		{"OK.\nthanks a lot", Approve, "thanks a lot", true},
		{"👍", Approve, "", true},
		{"✔️", Approve, "", true},
		{"ship it", Approve, "", true},
		{"no", Deny, "", true},
		{"no: use the other branch", Deny, "use the other branch", true},
		{"❌", Deny, "", true},
		{"no idea what this is", Deny, "no idea what this is", false},
		{"yes but only the first", Deny, "yes but only the first", false},
		{"yes, but only the first", Deny, "yes, but only the first", false},
		{"yes: if the tests pass", Deny, "yes: if the tests pass", false},
		{"use pnpm instead", Deny, "use pnpm instead", false},
		{"what does it do?", Deny, "what does it do?", false},
		{"", None, "", false},
		{"  \n", None, "", false},
	} {
		order, note, plain := Answered(c.text)
		if order != c.order || note != c.note || plain != c.plain {
			t.Errorf("%q: %s %q %v", c.text, order, note, plain)
		}
	}
}

// Whatever somebody writes, only words of the list say yes, and notes are part of what was said.
func FuzzAnswered(f *testing.F) {
	for _, seed := range []string{"yes", "no: x", "yes, but", "👍", "—", "yes—\n", "\ufe0f"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		order, note, plain := Answered(text)
		if utf8.ValidString(text) && !strings.Contains(text, note) {
			t.Errorf("%q: the note %q was never said", text, note)
		}
		if order == Approve && !plain || order == None && plain {
			t.Errorf("%q: %s, plain %v", text, order, plain)
		}
	})
}
