package processes

import "testing"

func TestWholeLines(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{"": "", "half": "", "one\n": "one\n", "one\nhal": "one\n", "10%\r20%": "10%\r", "longer than that": "longer than that"} {
		if got := wholeLines(text, 10); got != want {
			t.Errorf("%q: %q", text, got)
		}
	}
}
