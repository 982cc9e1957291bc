package markdown

import (
	"strings"
	"testing"
)

func TestCleaner(t *testing.T) {
	t.Parallel()
	const text = "ä\x1b]52;c;ZXZpbA==\x07b\x1b[31mred\x1b[0m\u009b2J€\x1b[2Jend\r"
	for styles, want := range map[bool]string{false: "äbred€end", true: "äb\x1b[31mred\x1b[0m€end"} {
		var out strings.Builder
		w := NewCleaner(&out, styles)
		if n, err := w.Write([]byte(text)); err != nil || n != len(text) || out.String() != want {
			t.Errorf("%v: %d %v %q", styles, n, err, out.String())
		}
		out.Reset()
		w = NewCleaner(&out, false)
		for i := range len(text) { // however it is cut, nothing that a terminal obeys gets through
			if _, err := w.Write([]byte{text[i]}); err != nil {
				t.Fatal(err)
			}
		}
		if got := out.String(); strings.ContainsAny(got, "\x1b\x07\r\u009b") || !strings.Contains(got, "€") {
			t.Errorf("byte by byte: %q", got)
		}
	}
}
