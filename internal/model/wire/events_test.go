package wire

import (
	"strings"
	"testing"
)

func TestEvents(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 3*eventBuffer)
	for in, want := range map[string]string{
		"":                                     "",
		"data: a\n\n":                          "|a;",
		"data:a\r\n\r\ndata:  b\r\n\r\n":       "|a;| b;",
		"event: e\ndata: a\ndata: b\n\n":       "e|a\nb;",
		": comment\n\nevent: e\n\ndata: a\n\n": "|a;",
		"\uFEFFdata: a\n\nid: 5\nretry: 1\n\n": "|a;",
		"data\n\ndata: cut off\n":              "|;",
		"data: " + long + "\n\ndata: y\n\n":    "|" + long + ";|y;",
	} {
		got := ""
		e := NewEvents(strings.NewReader(in))
		for e.Next() {
			got += e.Type + "|" + string(e.Data) + ";"
		}
		if got != want || e.Err() != nil {
			t.Errorf("%.40q: %.60q, %v", in, got, e.Err())
		}
	}
}
