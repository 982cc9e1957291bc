package chatcommand

import (
	"testing"

	"chorus/internal/operations"
)

// Whoever asks why says which answer: by counting from the end, by its address, or not at all.
func TestWhichAnswerIsMeant(t *testing.T) {
	t.Parallel()
	at := &turn{session: operations.Session{Runs: []operations.RunSummary{{Seq: 40}, {Seq: 20}, {Seq: 3}}}}
	for which, want := range map[string]int64{"": 0, "1": 40, "2": 20, "3": 3, "#120": 120, "#e120": 120, "http://x/s/01k3#e7": 7} {
		if got, err := at.answerAt(which); got != want || err != nil {
			t.Errorf("%q is %d, %v; want %d", which, got, err, want)
		}
	}
	for _, which := range []string{"0", "4", "-1", "first", "#", "#e", "#x", "#-3"} {
		if got, err := at.answerAt(which); err == nil {
			t.Errorf("%q is %d", which, got)
		}
	}
}
