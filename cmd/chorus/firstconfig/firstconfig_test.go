package firstconfig

import (
	"strings"
	"testing"
	"unicode/utf8"
)

// The file is read in a terminal: no line of it is wider than one.
func TestFileFitsATerminal(t *testing.T) {
	t.Parallel()
	for _, place := range places {
		for _, profile := range profiles {
			a := Answers{Model: "anthropic/claude-sonnet-4-5", Where: place.name, May: profile.name}
			for line := range strings.Lines(a.YAML()) {
				if n := utf8.RuneCountInString(strings.TrimRight(line, "\n")); n > 79 {
					t.Errorf("%s: %d columns: %s", place.name, n, line)
				}
			}
		}
	}
}
