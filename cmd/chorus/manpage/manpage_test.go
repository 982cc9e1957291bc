package manpage

import "testing"

// Nothing in a text is taken for a request to man.
func TestRoffLines(t *testing.T) {
	t.Parallel()
	if got := roffLines(".hidden\n'quoted\na-b \\n"); got != "\\&.hidden\n\\&'quoted\na\\-b \\en\n" {
		t.Errorf("lines: %q", got)
	}
}
