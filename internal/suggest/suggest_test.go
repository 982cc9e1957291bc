package suggest

import (
	"testing"

	"pgregory.net/rapid"
)

func TestBest(t *testing.T) {
	t.Parallel()
	names := []string{"model", "permissions", "systemPrompt"}
	for word, want := range map[string]string{"modl": "model", "MODEL": "model", "permisions": "permissions", "system_prompt": "systemPrompt", "zzz": "", "": ""} {
		if got := Best(word, names); got != want {
			t.Errorf("%q: %q, want %q", word, got, want)
		}
	}
}

func TestDistanceIsAMetric(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		word := rapid.StringMatching(`[a-c]{0,6}`)
		a, b, c := word.Draw(t, "a"), word.Draw(t, "b"), word.Draw(t, "c")
		if (Distance(a, b) == 0) != (a == b) || Distance(a, b) != Distance(b, a) || Distance(a, c) > Distance(a, b)+Distance(b, c) {
			t.Fatalf("%q %q %q", a, b, c)
		}
	})
}
