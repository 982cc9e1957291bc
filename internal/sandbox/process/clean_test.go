package process

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func cleanString(pieces ...string) string {
	var c cleaner
	var out []byte
	for _, p := range pieces {
		out = c.clean(out, []byte(p))
	}
	return string(c.flush(out))
}

func TestClean(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, in, want string }{
		{"plain", "hello\tworld\n", "hello\tworld\n"},
		{"colours", "\x1b[1;31mred\x1b[0m \x1b[38;5;4mblue\x1b[m", "red blue"},
		{"title by BEL", "\x1b]0;t\x07x", "x"},
		{"link by ST", "\x1b]8;;http://a\x1b\\text\x1b]8;;\x1b\\", "text"},
		{"title without end", "\x1b]0;t\nnext", "\nnext"},
		{"device string", "\x1bPq#0\x1b\\x", "x"},
		{"charset", "\x1b(Bx", "x"},
		{"two-byte", "\x1bcx\x1b=y", "xy"},
		{"cut short", "\x1b[31\nnext", "\nnext"},
		{"lone escape at the end", "x\x1b", "x"},
		{"crlf", "a\r\nb\rc\r\r\nd", "a\nb\nc\n\nd"},
		{"controls", "a\x00\x07\x08\x7fb", "ab"},
		{"c1 controls", "a\u0085\u009bb", "ab"},
		{"zero width, bidi, BOM, tags", "\ufeffa\u200bb\u202ec\u2066d\U000e0041e", "abcde"},
		{"invalid", "a\xffb\xc3", "a\ufffdb\ufffd"},
		{"surrogate", "a\xed\xa0\x80b", "a\ufffd\ufffd\ufffdb"},
		{"wide", "äöü 日本 😀", "äöü 日本 😀"},
		{"endless", "\x1b]" + strings.Repeat("x", maxSequence) + "seen", "xseen"},
	}
	for _, tt := range tests {
		if got := cleanString(tt.in); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
		if got := cleanString(strings.Split(tt.in, "")...); got != tt.want {
			t.Errorf("%s in single characters: %q, want %q", tt.name, got, tt.want)
		}
	}
}

func FuzzClean(f *testing.F) {
	for _, seed := range []string{"plain\n", "\x1b[31mred\x1b[0m\r\n", "\x1b]0;t\x07x\xff\xc3", "\x1b]8;;u\x1b\\é\u200b", "\r\r\n\x1b"} {
		f.Add(seed, 3, 5)
	}
	f.Fuzz(func(t *testing.T, in string, i, j int) {
		whole := cleanString(in)
		if !utf8.ValidString(whole) {
			t.Fatalf("not UTF-8: %q", whole)
		}
		for _, r := range whole {
			if hidden(r) {
				t.Fatalf("%q was kept in %q", r, whole)
			}
		}
		a := min(max(i, 0), len(in))
		b := min(max(j, a), len(in))
		if parts := cleanString(in[:a], in[a:b], in[b:]); parts != whole {
			t.Fatalf("cut at %d and %d: %q, whole: %q", a, b, parts, whole)
		}
		if again := cleanString(whole); again != whole {
			t.Fatalf("cleaned twice: %q, once: %q", again, whole)
		}
	})
}
