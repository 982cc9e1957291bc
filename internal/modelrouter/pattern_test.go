package modelrouter

import (
	"regexp"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestPatterns(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		pattern, name string
		want          bool
	}{
		// The original matched both of these.
		{"gpt-4o*", "gpt-4", false},
		{"claude-3-opus", "xclaude-3-opus-y", false},

		{"claude-3-opus", "claude-3-opus", true},
		{"claude-3-opus", "claude-3-opus-20240229", false},
		{"claude-3-opus", "Claude-3-opus", false},
		{"gpt-4o*", "gpt-4o", true},
		{"gpt-4o*", "gpt-4o-mini", true},
		{"gpt-4.1*", "gpt-4x1", false},
		{"gpt-4.1*", "gpt-4.1-mini", true},
		{"*", "meta-llama/llama-3", true},
		{"*", "", true},
		{"meta-llama/*", "meta-llama/llama-3:free", true},
		{"llama?", "llama3", true},
		{"llama?", "llama", false},
		{"llama?", "llama33", false},
		{"*-?b", "gemma-7b", true},
		{"*a*b*", "xxaxxbxx", true},
		{"*a*b*", "xxbxxaxx", false},
		{"gpt-[45]*", "gpt-4", false}, // only a star and a question mark are special
		{"é?", "éö", true},
		{`claude-\d`, "claude-3", true},
		{`claude-\d`, "claude-3-opus", false},
		{`claude-\d`, "xclaude-3", false},
		{"gpt-4.*", "gpt-4", true},
		{"gpt-4.*", "gpt-4o", true},
		{"gpt-4.*", "xgpt-4", false},
		{"a|b.*", "b", true},
		{"a|b.*", "xa", false},
		{"a|b.*", "ax", false},
		{`(?i)claude\b.*`, "CLAUDE-3", true},
		{"gpt.*", "gpt\nx", false},
	} {
		p, err := Compile(c.pattern)
		if err != nil {
			t.Errorf("%q: %v", c.pattern, err)
			continue
		}
		if p.Match(c.name) != c.want {
			t.Errorf("%q against %q: %v", c.pattern, c.name, !c.want)
		}
		if p.String() != c.pattern {
			t.Errorf("%q became %q", c.pattern, p)
		}
	}
	for _, bad := range []string{"", "  ", `a(\d`, `a)(b.*`, "[.*", `\8`, strings.Repeat("a", 600), "(?<=a).*"} {
		if p, err := Compile(bad); err == nil {
			t.Errorf("%q was taken as %v", bad, p)
		}
	}
	if _, err := Declare("work", "anthropic", nil, []string{"claude-*", `bad(\d`}, none); err == nil || !strings.Contains(err.Error(), "vendor work") {
		t.Errorf("the vendor is not named: %v", err)
	}
}

func none(string) string { return "" }

// TestGlobsAreWhole holds globs against the same thing as a regular expression.
func TestGlobsAreWhole(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringMatching(`[ab.é*?]{1,8}`).Draw(t, "pattern")
		if strings.Contains(text, ".*") {
			t.Skip("a regular expression")
		}
		name := rapid.StringMatching(`[ab.é*?]{0,8}`).Draw(t, "name")
		p, err := Compile(text)
		if err != nil {
			t.Fatal(err)
		}
		expression := strings.NewReplacer(`\*`, "(?s:.*)", `\?`, "(?s:.)").Replace(regexp.QuoteMeta(text))
		if want := regexp.MustCompile(`\A` + expression + `\z`).MatchString(name); p.Match(name) != want {
			t.Fatalf("%q against %q: %v, want %v", text, name, !want, want)
		}
	})
}

func FuzzPattern(f *testing.F) {
	for _, seed := range [][2]string{{"gpt-4o*", "gpt-4"}, {"claude-3-opus", "xclaude-3-opus-y"}, {`gpt-\d+.*`, "gpt-4o"}, {"a)(b.*", "ab"}, {"*?*?*", "\xff\xfe"}, {"(((.*", ""}} {
		f.Add(seed[0], seed[1])
	}
	f.Fuzz(func(t *testing.T, pattern, name string) {
		p, err := Compile(pattern)
		if err != nil {
			return
		}
		plain := !strings.ContainsAny(pattern, `*?\`) && !strings.Contains(pattern, ".*")
		if plain && p.Match(name) != (string([]rune(pattern)) == string([]rune(name))) {
			t.Errorf("%q against %q: %v", pattern, name, p.Match(name))
		}
		// Whole names: what matches does not match with something around it, unless
		// the rule itself is open there.
		if p.re == nil && p.Match(name) && !strings.Contains(pattern, "*") && p.Match(name+"x") {
			t.Errorf("%q matches %q with and without a letter more", pattern, name)
		}
	})
}
