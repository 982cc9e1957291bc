package search

import "testing"

func TestMatchFor(t *testing.T) {
	t.Parallel()
	for query, want := range map[string]string{
		"":                    "",
		" - * ":               "",
		"word":                `"word"*`,
		"two words":           `"two" AND "words"*`,
		`say "two words" now`: `"say" AND "two words" AND "now"*`,
		`"two words"`:         `"two words"`,
		`open "quote`:         `"open" AND "quote"*`,
		"a:b OR c*":           `"a:b" AND "OR" AND "c*"*`,
		"nul\x00byte":         `"nul byte"*`,
	} {
		if got := matchFor(parse(query), nil); got != want {
			t.Errorf("%q: got %s, want %s", query, got, want)
		}
	}
}
