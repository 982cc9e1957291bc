package split

import (
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"pgregory.net/rapid"
)

func lengths(pieces []Piece) []int {
	var out []int
	for _, p := range pieces {
		out = append(out, Length(p.Text))
	}
	return out
}

// TestDossierLengths are the cases A58 and B66 of the originals.
func TestDossierLengths(t *testing.T) {
	t.Parallel()
	x := func(n int) string { return strings.Repeat("x", n) }
	for _, c := range []struct {
		name, text string
		want       []int
	}{
		{"A58 paragraphs", x(1000) + "\n\n" + x(1000), []int{1000, 1000}},
		{"B66 one more than fits", x(1801), []int{1800, 1}},
		{"B66 two lines", x(1000) + "\n" + x(900), []int{1000, 900}},
		{"B66 a line longer than two messages", x(4000) + "\n" + x(1), []int{1800, 1800, 400, 1}},
		{"just fits", x(1800), []int{1800}},
		{"surrogates count twice", strings.Repeat("😀", 901), []int{1800, 2}},
		{"nothing", "", nil},
		{"white space", " \n\t ", nil},
	} {
		if got := lengths(Split(c.text, Options{})); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

func TestWhereItCuts(t *testing.T) {
	t.Parallel()
	words := func(n int) string { return strings.TrimSpace(strings.Repeat("word ", n)) }
	for _, c := range []struct {
		name, text, first, second string // what the first ends with and the second begins with
	}{
		{"paragraph before line", words(10) + "\n\n" + words(3) + "\nLine " + words(10), "word", "word"},
		{"line before sentence", words(12) + "\nSecond line. Then " + words(8), "word", "Second"},
		{"sentence before word", words(12) + " end. Then " + words(8), "end.", "Then"},
		{"word", words(40), "word", "word"},
		{"mention", words(18) + "x<@12345678901234567>" + words(5), "word", "wordx<@"},
		{"link", strings.Repeat("y", 90) + "https://example.com/a/b/c", "y", "https://"},
		{"inline code", words(18) + " `rm -rf one two three` now", "word", "`rm"},
		{"a link with words", words(18) + " [read me please](https://example.com)", "word", "[read"},
		{"family", strings.Repeat("z", 95) + "👩‍👩‍👧‍👦 end", "z", "👩‍👩‍👧‍👦"},
		{"accent", strings.Repeat("z", 99) + "e\u0301 end", "z", "e\u0301"},
		{"a link in brackets", words(18) + " <https://example.com/and/so/on>", "word", "<https"},
		{"a time", words(18) + "12345678x<t:1700000000:R> end", "word", "word12345678x<t:"},
		{"brackets that are no link", words(17) + " [aaaaaaaa](bbb ccc dddd) end", "(bbb", "ccc"},
		{"syllables", strings.Repeat("z", 99) + "\u1112\u1161\u11ab end", "z", "\u1112\u1161\u11ab"},
		{"flag", strings.Repeat("z", 97) + "🇩🇪 end", "z", "🇩🇪"},
	} {
		pieces := Split(c.text, Options{Target: 100, Hard: 200})
		if len(pieces) < 2 || !strings.HasSuffix(pieces[0].Text, c.first) || !strings.HasPrefix(pieces[1].Text, c.second) {
			t.Errorf("%s: %+v", c.name, pieces)
		}
		check(t, c.text, pieces, 100, 200)
	}
}

func TestCodeBlocks(t *testing.T) {
	t.Parallel()
	line := "fmt.Println(\"hello\")\n"
	t.Run("one that fits goes whole into the next", func(t *testing.T) {
		t.Parallel()
		text := strings.Repeat("word ", 100) + "\n```go\n" + strings.Repeat(line, 70) + "```\nDone."
		pieces := Split(text, Options{})
		if len(pieces) != 2 || !strings.HasPrefix(pieces[1].Text, "```go\n") || pieces[1].Open != "" {
			t.Errorf("%+v", pieces)
		}
	})
	t.Run("one that does not is opened again with its language", func(t *testing.T) {
		t.Parallel()
		text := "Look:\n```go\n" + strings.Repeat(line, 300) + "```\nDone."
		pieces := Split(text, Options{})
		if len(pieces) != 4 {
			t.Errorf("%d characters are %d pieces", len(text), len(pieces))
		}
		for i, p := range pieces[1:] {
			if !strings.HasPrefix(p.Text, "```go\nfmt.") || p.Open != "```go\n" {
				t.Errorf("piece %d: %+v", i+1, p)
			}
		}
		for i, p := range pieces[:len(pieces)-1] {
			if !strings.HasSuffix(p.Text, ")\n```") {
				t.Errorf("piece %d ends %q", i, p.Text[len(p.Text)-30:])
			}
		}
		if last := pieces[len(pieces)-1].Text; !strings.HasSuffix(last, "```\nDone.") {
			t.Errorf("the last ends %q", last)
		}
	})
	t.Run("a line that is too long is cut between words", func(t *testing.T) {
		t.Parallel()
		pieces := Split("```\n"+strings.Repeat("many words ", 400)+"\n```", Options{})
		for i, p := range pieces[:len(pieces)-1] {
			if text := strings.TrimSuffix(strings.TrimSuffix(p.Text, "```"), "\n"); !strings.HasSuffix(text, "many ") && !strings.HasSuffix(text, "words ") {
				t.Errorf("piece %d ends %q", i, p.Text[len(p.Text)-30:])
			}
		}
		if len(pieces) != 3 {
			t.Errorf("%d pieces", len(pieces))
		}
	})
	t.Run("one that is never closed is closed", func(t *testing.T) {
		t.Parallel()
		pieces := Split("```go\nx := 1", Options{})
		if len(pieces) != 1 || pieces[0].Text != "```go\nx := 1\n```" || joined(pieces) != "```go\nx := 1" {
			t.Errorf("%+v", pieces)
		}
	})
}

// check holds the promises.
func check(t interface{ Fatalf(string, ...any) }, text string, pieces []Piece, target, hard int) {
	if strings.TrimFunc(text, unicode.IsSpace) == "" {
		if len(pieces) != 0 {
			t.Fatalf("white space became %+v", pieces)
		}
		return
	}
	if got := joined(pieces); got != text {
		t.Fatalf("joined\n%q\nwant\n%q\npieces %+v", got, text, pieces)
	}
	for i, p := range pieces {
		if n := Length(p.Text); n > hard || n > target && p.Close == "" {
			t.Fatalf("piece %d has %d units: %+v", i, n, p)
		}
		if strings.TrimFunc(p.Text, unicode.IsSpace) == "" {
			t.Fatalf("piece %d is empty: %+v", i, pieces)
		}
		if _, open := unclosed(p.Text); open {
			t.Fatalf("piece %d leaves code open: %q", i, p.Text)
		}
		if utf8.ValidString(text) && !utf8.ValidString(p.Text) {
			t.Fatalf("piece %d breaks a character: %q", i, p.Text)
		}
		if strings.TrimFunc(p.Before+p.After, unicode.IsSpace) != "" {
			t.Fatalf("piece %d loses %q and %q", i, p.Before, p.After)
		}
	}
}

var shreds = []string{"word ", "a", " ", "\n", "\n\n", "Sentence. ", "```", "```go\n", "`code`", "`", "``", "<@123456789012345678>", "https://example.com/very/long/path",
	"[text here](https://x.example)", "😀", "👩‍👩‍👧‍👦", "e\u0301", "🇩🇪", "。", "\r\n", "````", "\t", "<:wave:123>", strings.Repeat("x", 70), strings.Repeat("`", 9), "\u3000"}

func TestPromises(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		text := strings.Join(rapid.SliceOfN(rapid.SampledFrom(shreds), 0, 120).Draw(t, "text"), "")
		target := rapid.IntRange(64, 400).Draw(t, "target")
		hard := target + rapid.IntRange(16, 200).Draw(t, "slack")
		check(t, text, Split(text, Options{Target: target, Hard: hard}), target, hard)
	})
}

// TestNothingThatIsOneThingIsBroken: whatever is shorter than a message stays whole.
func TestNothingThatIsOneThingIsBroken(t *testing.T) {
	t.Parallel()
	things := []string{"<@123456789012345678>", "<:wave:123456789012345678>", "https://example.com/a?b=c", "`some code`", "👩‍👩‍👧‍👦", "e\u0301", "🇩🇪", "👍🏽"}
	rapid.Check(t, func(t *rapid.T) {
		thing := rapid.SampledFrom(things).Draw(t, "thing")
		text := strings.Repeat("y", rapid.IntRange(0, 200).Draw(t, "before")) + thing + strings.Repeat(" w", rapid.IntRange(0, 200).Draw(t, "after"))
		found := 0
		for _, p := range Split(text, Options{Target: 100, Hard: 200}) {
			found += strings.Count(p.Text, thing)
		}
		if found != 1 {
			t.Fatalf("%q is in %d of the pieces of %q", thing, found, text)
		}
	})
}

func TestFit(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("A sentence of words. ", 1000)
	a := Fit(long, Options{})
	if a.File == nil || a.File.Text != long || len(a.Pieces) != 1 || !strings.HasSuffix(a.Pieces[0].Text, "(21,000 characters).*") {
		t.Errorf("%+v", a.Texts())
	}
	if n := Length(a.Pieces[0].Text); n > 600 {
		t.Errorf("the preview has %d characters", n)
	}
	if a := Fit(strings.Repeat("x", 5*1800), Options{}); a.File != nil || len(a.Pieces) != 5 {
		t.Errorf("five messages became %d", len(a.Pieces))
	}
	if a := Fit("```go\n"+strings.Repeat("code\n", 5000), Options{}); a.File == nil {
		t.Error("much code is no file")
	} else if _, open := unclosed(a.Pieces[0].Text); open {
		t.Errorf("open: %q", a.Pieces[0].Text)
	}
	if a := Fit("  ", Options{}); a.File != nil || len(a.Pieces) != 0 {
		t.Errorf("an empty answer became %+v", a)
	}
}

func TestClip(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		in    string
		limit int
		want  string
	}{{"hello", 5, "hello"}, {"hello", 4, "hel…"}, {"a 👩‍👩‍👧‍👦", 5, "a…"}, {"x", 0, ""}, {"", 0, ""}} {
		if got := Clip(c.in, c.limit); got != c.want {
			t.Errorf("%q to %d: %q", c.in, c.limit, got)
		}
	}
}

func FuzzSplit(f *testing.F) {
	for _, s := range append(shreds, "```go\nx\n```", "````\n```\n````", strings.Repeat("`", 1803), "\xff\xfe", strings.Repeat("e\u0301", 500), "a```b") {
		f.Add(s, 100)
	}
	f.Fuzz(func(t *testing.T, text string, target int) {
		target = max(64, min(target, 2000))
		check(t, text, Split(text, Options{Target: target, Hard: target + 16}), target, target+16)
	})
}

func TestProse(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":                                  "",
		"words":                             "WORDS",
		"a `b` c":                           "A `b` C",
		"``a`b`` c":                         "``a`b`` C",
		"a `b":                              "A `B",
		"see https://example.com/x?y=z now": "SEE https://example.com/x?y=z NOW",
		"a\n```go\nb\n```\nc":               "A\n```go\nb\n```\nC",
		"`a`":                               "`a`",
	} {
		if got := Prose(text, strings.ToUpper); got != want {
			t.Errorf("%q becomes %q, want %q", text, got, want)
		}
	}
}

// joined is the answer that the pieces are of.
func joined(pieces []Piece) string {
	var out strings.Builder
	for _, p := range pieces {
		out.WriteString(p.Before)
		out.WriteString(strings.TrimSuffix(strings.TrimPrefix(p.Text, p.Open), p.Close))
		out.WriteString(p.After)
	}
	return out.String()
}
