package audit

import (
	"testing"

	"pgregory.net/rapid"
)

// No two lines read the same, however their texts are cut.
func TestAuditEncoding(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		draw := func(name string) (r auditRow) {
			r.seq, r.at = rapid.Int64Range(0, 3).Draw(t, name+" number"), rapid.Int64Range(0, 3).Draw(t, name+" at")
			for i := range r.texts {
				r.texts[i] = rapid.StringOfN(rapid.SampledFrom([]rune("a\x00\x01")), 0, 2, -1).Draw(t, name)
			}
			return r
		}
		a, b := draw("a"), draw("b")
		if same := a == b; (a.after("p") == b.after("p")) != same {
			t.Fatalf("%+v and %+v", a, b)
		}
	})
}
