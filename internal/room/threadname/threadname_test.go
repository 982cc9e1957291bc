package threadname

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"chorus/internal/room/split"
)

// Threads were called by the first 90 characters of a message, with whom it was said to and in the middle of a word.
func TestThreadsAreCalledByWhatTheyAreAbout(t *testing.T) {
	t.Parallel()
	for words, want := range map[string]string{
		"@chorus why does the build fail?":          "why does the build fail?",
		"**Please** look at `main.go`\nand tell me": "Please look at main.go and tell me",
		"@chorus @pia, hello":                       "hello",
		"@chorus":                                   "@chorus",
		"<@chorus> why does <@Ada L> wait?":         "why does @Ada L wait?",
		"<@chorus>\n<@pia>: hello":                  "hello",
		"<@chorus>":                                 "@chorus",
		"a <@ b":                                    "a <@ b",
		"":                                          "conversation",
		"read this<attachment filename=\"a.txt\">a very long text</attachment>":           "read this",
		"The footer of the page is broken. " + strings.Repeat("It was fine before. ", 10): "The footer of the page is broken",
		"Can you mend the footer? " + strings.Repeat("Nobody knows when it broke ", 5):    "Can you mend the footer?",
		"Hm. " + strings.Repeat("something that goes on without an end and ", 5):          "Hm. something that goes on without an end and something that goes on without…",
		"# A heading": "A heading",
	} {
		if got := Of(words); got != want {
			t.Errorf("%q is called %q, not %q", words, got, want)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		if got := Of(rapid.String().Draw(t, "words")); got == "" || split.Length(got) > maxLength {
			t.Fatalf("%q", got)
		}
	})
}
