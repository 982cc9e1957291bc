package permit

import (
	"encoding/json"
	"testing"

	"chorus/internal/permit/permittest"
	"chorus/internal/theme"
)

// corpus calls each for every case of the corpus.
func corpus(t testing.TB, each func(p *Profile, want Verdict, command, at string)) int {
	t.Helper()
	cases, err := permittest.Corpus()
	if err != nil {
		t.Fatal(err)
	}
	compiled := map[string]*Profile{}
	for _, c := range cases {
		p := compiled[c.Preset+c.Rules]
		switch {
		case p != nil:
		case c.Preset != "":
			p = mustPreset(t, c.Preset)
		default:
			var r Rules
			if err := json.Unmarshal([]byte(c.Rules), &r); err != nil {
				t.Fatalf("%s: %v", c.At, err)
			}
			p = mustCompile(t, r)
		}
		compiled[c.Preset+c.Rules] = p
		want, err := ParseVerdict(c.Verdict)
		if err != nil {
			t.Fatalf("%s: %v", c.At, err)
		}
		each(p, want, c.Command, c.At)
	}
	return len(cases)
}

func TestCorpus(t *testing.T) {
	t.Parallel()
	n := corpus(t, func(p *Profile, want Verdict, command, at string) {
		j := p.Judge([]Request{{Tool: "bash", Command: command}}, JudgeOptions{})
		if j.Verdict != want {
			t.Errorf("%s: %q is %s, want %s\n%s", at, command, j.Verdict, want, drawTree(p.Name(), j, theme.Theme{}))
		}
	})
	if n < 300 {
		t.Errorf("the corpus has only %d cases", n)
	}
}
