package text_test

import (
	"testing"

	"chorus/internal/text"
)

func TestClip(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		in   string
		n    int
		want string
	}{
		{"", 0, ""}, {"abc", 3, "abc"}, {"abcd", 3, "abc…"}, {"éàü", 3, "éàü"}, {"éàüö", 3, "éàü…"}, {"abc", 0, "…"}, {"abc", -1, "…"},
	} {
		if got := text.Clip(c.in, c.n); got != c.want {
			t.Errorf("Clip(%q, %d) = %q, want %q", c.in, c.n, got, c.want)
		}
	}
}

func TestPrefix(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		in   string
		n    int
		want string
	}{
		{"abc", 5, "abc"}, {"abc", 2, "ab"}, {"aé", 2, "a"}, {"é", 1, ""}, {"é", 0, ""}, {"日本", 5, "日"},
	} {
		if got := text.Prefix(c.in, c.n); got != c.want {
			t.Errorf("Prefix(%q, %d) = %q, want %q", c.in, c.n, got, c.want)
		}
	}
}

func TestOneLine(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		" a\n\tb  c\r\n": "a b c", "a\x1b[31mb": "a\uFFFD[31mb", "\u009b": "\uFFFD", "": "",
	} {
		if got := text.OneLine(in); got != want {
			t.Errorf("OneLine(%q) = %q, want %q", in, got, want)
		}
	}
}
