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

func TestCount(t *testing.T) {
	t.Parallel()
	if got := text.Count(1, "file") + ", " + text.Count(0, "file") + ", " + text.Count(12, "line"); got != "1 file, 0 files, 12 lines" {
		t.Error(got)
	}
}

func TestOverlap(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		b, s string
		want int
	}{{"x<sto", "<stop>", 4}, {"x", "<stop>", 0}, {"<stop>", "<stop>", 0}, {"aab", "abab", 2}, {"", "a", 0}} {
		if got := text.Overlap([]byte(c.b), c.s); got != c.want {
			t.Errorf("Overlap(%q, %q) = %d, want %d", c.b, c.s, got, c.want)
		}
	}
}

func TestJSON(t *testing.T) {
	t.Parallel()
	got, err := text.JSON(map[string]string{"a": "x < y && \n"})
	if err != nil || string(got) != `{"a":"x < y && \n"}` {
		t.Errorf("%s, %v", got, err)
	}
	for in, want := range map[string]string{
		`{"b": 1.0, "a": ["<", 1e3]}`: `{"a":["<",1e3],"b":1.0}`, `{} {}`: "", `{`: "", ``: "", ` 12345678901234567890 `: `12345678901234567890`,
	} {
		if got, ok := text.SortedJSON([]byte(in)); string(got) != want || ok != (want != "") {
			t.Errorf("SortedJSON(%s) = %s, %v", in, got, ok)
		}
	}
}

func TestSentence(t *testing.T) {
	t.Parallel()
	for clause, want := range map[string]string{"": "", "no such thing": "No such thing.", "really?": "Really?", "ändern geht nicht": "Ändern geht nicht.", `"x" is none`: `"x" is none.`, "Done.": "Done."} {
		if got := text.Sentence(clause); got != want {
			t.Errorf("%q is %q, not %q", clause, got, want)
		}
	}
}
