package helptext

import (
	"strings"
	"testing"
)

// A long example goes on in a way that a shell understands, what a remark says goes on below it, and quotes are not broken.
func TestLongExamplesStayCommands(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ line, want string }{
		{"  chorus run 'short'", "  chorus run 'short'"},
		{"  chorus run 'what changed in here'   asks and leaves at once", "  chorus run 'what changed in here'   asks and leaves at\n                                      once"},
		{"  chorus hook add 'say it' --dir /srv --agent scout", "  chorus hook add 'say it' --dir /srv \\\n      --agent scout"},
		{"  chorus hook add 'say it all' --agent scout", "  chorus hook add 'say it all' \\\n      --agent scout"},
		{"  chorus schedule add 'every weekday at 9' 'What is new?'  twice", "  chorus schedule add \\\n      'every weekday at 9' \\\n      'What is new?'\n        twice"},
	} {
		width := 40
		if strings.Contains(c.line, "asks") {
			width = 58
		}
		if got := fitUsage("Examples:\n"+c.line, width); got != "Examples:\n"+c.want {
			t.Errorf("%s\n%s", c.line, got)
		}
	}
}
