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

// Who answered is told by name, and what else is noted about a decision stays as it is.
func TestWhoAnsweredHasAName(t *testing.T) {
	t.Parallel()
	names := map[string]string{"01k3": "laptop"}
	for detail, want := range map[string]string{"by local:ada": "by ada", "by token:01k3": "by laptop", "by token:01k4": "by 01k4", "by ada": "by ada", "the hook x wants it: no": "the hook x wants it: no", "by the rule: x": "by the rule: x"} {
		if got := decidedBy(detail, names); got != want {
			t.Errorf("%q becomes %q, want %q", detail, got, want)
		}
	}
}
