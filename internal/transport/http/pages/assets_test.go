package pages

import (
	"io/fs"
	"strings"
	"testing"
)

// longestStyleLine is how long a line of a style sheet may be, so that people can read its changes.
const longestStyleLine = 120

// Style sheets are served as they are and are read by people: no line is long.
func TestStyleSheetsHaveShortLines(t *testing.T) {
	t.Parallel()
	names, err := fs.Glob(assetFiles, "static/*.css")
	if err != nil || len(names) == 0 {
		t.Fatalf("style sheets: %v, %v", names, err)
	}
	for _, name := range names {
		data, err := fs.ReadFile(assetFiles, name)
		if err != nil {
			t.Fatal(err)
		}
		number := 0
		for line := range strings.Lines(string(data)) {
			if number++; len(strings.TrimSuffix(line, "\n")) > longestStyleLine {
				t.Errorf("%s:%d has %d characters, not at most %d", name, number, len(line)-1, longestStyleLine)
			}
		}
	}
}
