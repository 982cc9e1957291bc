package chat

import "testing"

func TestSilentAnswers(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		text    string
		is, may bool
	}{
		{"[SILENT]", true, true}, {" \n[SILENT]\n", true, true}, {"", false, true}, {"  ", false, true}, {"[SIL", false, true},
		{"[SILENT] nothing new", false, false}, {"[silent]", false, false}, {"[x]", false, false}, {"so: [SILENT]", false, false}, {"[SILENT][SILENT]", false, false},
	} {
		if IsSilent(c.text) != c.is || MayBeSilent(c.text) != c.may {
			t.Errorf("%q: silent %v, may become it %v", c.text, IsSilent(c.text), MayBeSilent(c.text))
		}
	}
}
