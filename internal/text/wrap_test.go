package text

import (
	"slices"
	"testing"
	"unicode/utf8"
)

func TestWrapWords(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		width int
		want  []string
	}{
		{0, []string{"one two https://example.org/long three"}},
		{7, []string{"one two", "https://example.org/long", "three"}},
		{60, []string{"one two https://example.org/long three"}},
	} {
		if got := WrapWords("one two https://example.org/long three", tt.width, utf8.RuneCountInString); !slices.Equal(got, tt.want) {
			t.Errorf("%d: %q", tt.width, got)
		}
	}
	if got := WrapWords("", 5, utf8.RuneCountInString); len(got) != 1 || got[0] != "" {
		t.Errorf("%q", got)
	}
}
