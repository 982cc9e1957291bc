package search

import "testing"

func TestMatchFor(t *testing.T) {
	t.Parallel()
	for query, want := range map[string]string{
		"":                    "",
		" - * ":               "",
		"word":                `"word"*`,
		"two words":           `"two" "words"*`,
		`say "two words" now`: `"say" "two words" "now"*`,
		`"two words"`:         `"two words"`,
		`open "quote`:         `"open" "quote"*`,
		"a:b OR c*":           `"a:b" "OR" "c*"*`,
		"nul\x00byte":         `"nul byte"*`,
	} {
		if got := matchFor(parse(query)); got != want {
			t.Errorf("%q: got %s, want %s", query, got, want)
		}
	}
}
