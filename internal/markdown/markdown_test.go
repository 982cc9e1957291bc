package markdown

import (
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode"

	"pgregory.net/rapid"

	"chorus/internal/theme"
)

var update = flag.Bool("update", false, "rewrite the golden files")

var escapes = regexp.MustCompile("\x1b\\[[0-9;]*m")

// visible makes escapes readable in golden files.
func visible(s string) string { return strings.ReplaceAll(s, "\x1b", "␛") }

func TestGolden(t *testing.T) {
	t.Parallel()
	sources, err := filepath.Glob("testdata/*.md")
	if err != nil || len(sources) == 0 {
		t.Fatalf("no sources: %v", err)
	}
	for _, path := range sources {
		t.Run(filepath.Base(path), func(t *testing.T) {
			t.Parallel()
			src, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			got := visible(strings.Join(Render(string(src), 60, sixteen()), "\n")) + "\n"
			golden := strings.TrimSuffix(path, ".md") + ".golden"
			if *update {
				if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if got != string(want) {
				t.Errorf("drawn differently (run with -update to accept):\n%s\nwant:\n%s", got, want)
			}
		})
	}
}

func TestInline(t *testing.T) {
	t.Parallel()
	tests := []struct{ src, want string }{
		{"plain", "plain"},
		{"a **b** c", "a ␛[1mb␛[0m c"},
		{"a *b* c", "a ␛[3mb␛[0m c"},
		{"***b***", "␛[1;3mb␛[0m"},
		{"**a *b* c**", "␛[1ma ␛[0m␛[1;3mb␛[0m␛[1m c␛[0m"},
		{"*a **b** c*", "␛[3ma ␛[0m␛[1;3mb␛[0m␛[3m c␛[0m"},
		{"2 * 3 * 4", "2 * 3 * 4"},
		{"snake_case_name", "snake_case_name"},
		{"__init__ x", "␛[1minit␛[0m x"},
		{"`a * b`", "␛[36ma * b␛[0m"},
		{"``a ` b``", "␛[36ma ` b␛[0m"},
		{"~~old~~", "␛[9mold␛[0m"},
		{`\*not\*`, "*not*"},
		{"[text](https://x.example)", "␛[4mtext␛[0m␛[2m (https://x.example)␛[0m"},
		{"[https://x.example](https://x.example)", "␛[4mhttps://x.example␛[0m"},
		{"![alt](a.png)", "␛[4malt␛[0m␛[2m (a.png)␛[0m"},
		{"<https://x.example>", "␛[4mhttps://x.example␛[0m"},
		{"&lt;b&gt; &#27;[31m&#10;x", "<b> [31m x"},
		{"**[a](https://x.example)**", "␛[1;4ma␛[0m␛[1;2m (https://x.example)␛[0m"},
		{"[](https://x.example)", "␛[2mhttps://x.example␛[0m"},
		{"[not a link] (x)", "[not a link] (x)"},
		{"a [b", "a [b"},
		{"**open", "**open"},
		{"a ` b", "a ` b"},
	}
	for _, tt := range tests {
		if got := visible(paint(sixteen(), inline(tt.src, 0))); got != tt.want {
			t.Errorf("%q drawn as %q, want %q", tt.src, got, tt.want)
		}
	}
}

func TestLinesAreFinalAsSoonAsTheyCanBe(t *testing.T) {
	t.Parallel()
	steps := []struct {
		piece string
		final []string
		tail  []string
	}{
		{"Hel", nil, []string{"Hel"}},
		{"lo\n", []string{"Hello"}, nil},
		{"an open **bo", nil, []string{"an open **bo"}},
		{"ld\n", nil, []string{"an open **bold"}},
		{"end** here\n", []string{"an open bold", "end here"}, nil},
		{"\n", []string{""}, nil},
		{"\n", nil, nil},
		{"| a | b |\n", nil, []string{"| a | b |"}},
		{"|---|---|\n", nil, []string{"a │ b", "──┼──"}},
		{"| long | x |\n", nil, []string{"a    │ b", "─────┼──", "long │ x"}},
		{"after\n", []string{"a    │ b", "─────┼──", "long │ x", "after"}, nil},
		{"```go\n", nil, nil},
		{"x := 1", nil, []string{"  x := 1"}},
		{"\n```\n", []string{"  x := 1"}, nil},
	}
	r := New(40, sixteen())
	for i, step := range steps {
		final, tail := bare(r.Write(step.piece)), bare(r.Tail())
		if !same(final, step.final) || !same(tail, step.tail) {
			t.Fatalf("step %d (%q): final %q tail %q, want %q and %q", i, step.piece, final, tail, step.final, step.tail)
		}
	}
}

func bare(lines []string) []string {
	var out []string
	for _, l := range lines {
		out = append(out, escapes.ReplaceAllString(l, ""))
	}
	return out
}

func same(a, b []string) bool {
	return len(a) == len(b) && strings.Join(a, "\x00") == strings.Join(b, "\x00")
}

func TestPlainIsUnchanged(t *testing.T) {
	t.Parallel()
	const src = "# Title\n\n\n* a **b**\n\tcode\n| x |"
	r := New(10, theme.Theme{})
	lines := append(r.Write(src), r.Close()...)
	if got := strings.Join(lines, "\n"); got != src {
		t.Errorf("got %q, want %q", got, src)
	}
}

func TestClean(t *testing.T) {
	t.Parallel()
	tests := []struct{ src, want string }{
		{"plain\n\ttext é 漢", "plain\n\ttext é 漢"},
		{"a\x1b[31mred\x1b[0m", "ared"},
		{"\x1b]0;owned\x07title", "title"},
		{"\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "link"},
		{"\x1b]0;never ends", "0;never ends"},
		{"a\rb\x08c\x00", "abc"},
		{"\u009b31mc1", "c1"},
		{"x\u202ereversed", "xreversed"},
		{"bad \xff byte", "bad \uFFFD byte"},
		{"\x1b", ""},
		{"\x1b[", ""},
		{"\x1bcreset", "reset"},
	}
	for _, tt := range tests {
		if got := Clean(tt.src); got != tt.want {
			t.Errorf("Clean(%q) = %q, want %q", tt.src, got, tt.want)
		}
	}
}

func TestVisibleHidesNothing(t *testing.T) {
	t.Parallel()
	got := Visible("rm\x1b[8m -rf\r \u202e/\x00\u200b")
	if want := `rm\x1b[8m -rf\x0d \u{202e}/\x00\u{200b}`; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestWidth(t *testing.T) {
	t.Parallel()
	tests := []struct {
		s    string
		want int
	}{
		{"", 0}, {"abc", 3}, {"é", 1}, {"e\u0301", 1}, {"漢字", 4}, {"👍", 2}, {"👍🏽", 2},
		{"👩‍👩‍👧", 2}, {"🇩🇪🇫🇷", 4}, {"❤️", 2}, {"한글", 4}, {"a\u200bb", 2},
	}
	for _, tt := range tests {
		if got := Width(tt.s); got != tt.want {
			t.Errorf("Width(%q) = %d, want %d", tt.s, got, tt.want)
		}
	}
}

func TestTruncateAndWrap(t *testing.T) {
	t.Parallel()
	if got := Truncate("one\ntwo three", 8); got != "one two…" {
		t.Errorf("truncated to %q", got)
	}
	if got := Truncate("漢字漢字", 5); got != "漢字…" {
		t.Errorf("truncated to %q", got)
	}
	if got := Wrap("  one two three\nx", 9); !same(got, []string{"  one two", "  three", "x"}) {
		t.Errorf("wrapped to %q", got)
	}
	if got := Wrap("use --some-flag", 11); !same(got, []string{"use", "--some-flag"}) {
		t.Errorf("wrapped to %q", got)
	}
	if got := Wrap("漢字漢字", 5); !same(got, []string{"漢字", "漢字"}) {
		t.Errorf("wrapped to %q", got)
	}
}

func TestDiff(t *testing.T) {
	t.Parallel()
	got := visible(strings.Join(Diff("--- a\n+++ b\n@@ -1 +1 @@\n-old\x1b[2K\n+new\n same\n", 80, sixteen()), "\n"))
	want := "␛[1m--- a␛[0m\n␛[1m+++ b␛[0m\n␛[36m@@ -1 +1 @@␛[0m\n␛[31m-old\\x1b[2K␛[0m\n␛[32m+new␛[0m\n same"
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// pieces of markdown that make interesting texts when strung together.
var pieces = []string{
	"word ", "**", "*", "_", "`", "```", "```go\n", "\n", "\n\n", "# ", "- ", "> ", "1. ", "| ", "|---|", "[a](b)", "[", "](", "<", ">",
	"\\", "&#27;", "&amp;", "a-b", "    ", "\t", "漢", "👩‍👩‍👧", "é", "\x1b[31m", "\x1b]0;", "\x07", "\r", "\u202e", "\xff", "~~", "---\n", "[ ] ", "\"", "/*", "//",
}

func TestStreamingEqualsWhole(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		parts := rapid.SliceOf(rapid.SampledFrom(pieces)).Draw(t, "parts")
		width := rapid.IntRange(0, 60).Draw(t, "width")
		src := strings.Join(parts, "")
		whole := Render(src, width, sixteen())
		r := New(width, sixteen())
		var streamed []string
		for i := 0; i < len(src); {
			n := min(rapid.IntRange(1, 9).Draw(t, "n"), len(src)-i)
			streamed = append(streamed, r.Write(src[i:i+n])...)
			r.Tail()
			i += n
		}
		streamed = append(streamed, r.Close()...)
		if !same(whole, streamed) {
			t.Fatalf("%q: whole\n%q\nstreamed\n%q", src, whole, streamed)
		}
		for _, line := range whole {
			holds(t, line)
			if w := Width(escapes.ReplaceAllString(line, "")); width >= 32 && w > width {
				t.Fatalf("%q: a line of %d columns, want at most %d: %q", src, w, width, line)
			}
		}
	})
}

type failer interface{ Fatalf(string, ...any) }

// holds checks what is promised about every line.
func holds(t failer, line string) {
	text := escapes.ReplaceAllString(line, "")
	for _, r := range text {
		if unicode.IsControl(r) && r != '\t' || hidden(r) {
			t.Fatalf("control character %U in %q", r, line)
		}
	}
}

func TestNothingReadableIsLost(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		parts := rapid.SliceOfN(rapid.SampledFrom([]string{"alpha ", "beta", "**", "*", "`", "\n", "- ", "> ", "| ", "漢字"}), 0, 40).Draw(t, "parts")
		src := strings.Join(parts, "")
		if strings.Contains(src, "```") {
			return // what stands behind a fence names a language and is not drawn
		}
		drawn := strings.Join(bare(Render(src, 40, sixteen())), "")
		letters := func(s string) string {
			return strings.Map(func(r rune) rune {
				if unicode.IsLetter(r) {
					return r
				}
				return -1
			}, s)
		}
		if strings.Count(letters(src), "alpha") > 0 && len(letters(drawn)) != len(letters(src)) {
			t.Fatalf("%q was drawn as %q", src, drawn)
		}
	})
}

func TestNoTextIsSlow(t *testing.T) {
	t.Parallel()
	for _, piece := range []string{"*a ", "**a", "[", "`a ``", "|", "> ", "_a", "<http://", "\x1b]x"} {
		if lines := Render(strings.Repeat(piece, 20000), 80, sixteen()); len(lines) == 0 {
			t.Errorf("%q drew nothing", piece)
		}
	}
}

func FuzzRender(f *testing.F) {
	for _, p := range pieces {
		f.Add(p+p+"x", 20)
	}
	f.Add(strings.Join(pieces, ""), 33)
	f.Add("| a | b |\n|--|:-:|\n| `x|y` | \\| |\n", 12)
	f.Fuzz(func(t *testing.T, src string, width int) {
		for _, line := range Render(src, width%200, sixteen()) {
			holds(t, line)
		}
		for _, line := range Diff(src, width%200, sixteen()) {
			holds(t, line)
		}
		if w := width % 200; w > 0 && Width(Truncate(src, w)) > w {
			t.Fatalf("Truncate(%q, %d) is too wide", src, w)
		}
	})
}

// sixteen is the theme of the terminal's own colours.
func sixteen() theme.Theme { return theme.Of(theme.Terminal, theme.Unknown, false) }
