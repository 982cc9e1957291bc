package permit

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
)

// Patterns of other languages are refused with their position and how to write them instead,
// from either kind of file and from a profile of the configuration.
func TestForeignPatterns(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		pattern  string
		position int // byte offset
		problem  string
		hint     string
	}{
		{`a(?=b)`, 1, "lookaround (?=", "deny"},
		{`a(?!b)`, 1, "lookaround (?!", "deny"},
		{`a(?<=b)`, 1, "lookaround (?<=", "deny"},
		{`a(?<!b)c(?=d`, 1, "lookaround (?<!", "deny"},
		{`[(?!](?!x)`, 5, "lookaround (?!", "deny"},
		{`\Q(?!\E(?!x)`, 7, "lookaround (?!", "deny"},
		{`\(?!x(?!x)`, 5, "lookaround (?!", "deny"},
		{`(a)\1`, 3, `backreference \1`, "deny"},
		{`\\1(a)\1`, 6, `backreference \1`, "deny"},
		{`(?P<n>a)(?P=n)`, 8, "backreference (?P=", "deny"},
		{`(?<n>a)\k<n>`, 7, `backreference \k`, "deny"},
		{`(a)\g{1}`, 3, `backreference \g`, "deny"},
		{`xa++b`, 2, "possessive quantifier ++", "without the last +"},
		{`a*+`, 1, "possessive quantifier *+", "without the last +"},
		{`a?+`, 1, "possessive quantifier ?+", "without the last +"},
		{`a{2}+`, 1, "possessive quantifier {2}+", "without the last +"},
		{`a**`, 1, "nested repetition", "group"},
		{`(?>a)`, 0, "atomic group", "(?:"},
		{`x(?(1)a|b)`, 1, "conditional", "two rules"},
		{`x(?R)`, 1, "recursion", "spell"},
		{`(a)(?1)`, 3, "recursion (?1", "spell"},
		{`(?P>x)`, 0, "recursion", "spell"},
		{`a(?#why)`, 1, "comment", "beside"},
		{`(?x)a b`, 0, "(?x", "flags"},
		{`(?'n'a)`, 0, "named group", "(?P<"},
		{`(?|a|b)`, 0, "branch reset", "(?:"},
		{`(*UTF8)a`, 0, "verb", "leave it out"},
		{`a\Z`, 1, `\Z`, "whole action"},
		{`\Ka`, 0, `\K`, "whole action"},
		{`a\h`, 1, `\h`, `[ \t]`},
		{`a\R`, 1, `\R`, `\r?\n`},
		{`\u0041`, 0, `\u`, `\x{`},
		{`a{1001}`, 1, "{1001}", "1000"},
		{`a\`, 1, "backslash", `\\`},
		{`x[z-a]`, 2, "character class range", ""},
	} {
		_, err := Compile("mine", Rules{Ask: []string{"fine", c.pattern}})
		var bad *PatternError
		if !errors.As(err, &bad) {
			t.Errorf("%s: error %v", c.pattern, err)
			continue
		}
		if bad.Position != c.position || !strings.Contains(bad.Problem, c.problem) || !strings.Contains(bad.Hint, c.hint) || c.hint != "" && bad.Hint == "" {
			t.Errorf("%s: at %d %q, hint %q; want at %d %q, hint %q", c.pattern, bad.Position, bad.Problem, bad.Hint, c.position, c.problem, c.hint)
		}
		if !strings.Contains(err.Error(), "profile mine: invalid ask pattern 2") || !strings.Contains(err.Error(), fmt.Sprintf("at position %d", c.position+1)) {
			t.Errorf("%s: %v names neither profile nor place", c.pattern, err)
		}
		quoted, err := json.Marshal(c.pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, text := range []string{
			fmt.Sprintf(`{"allow":["fine",%s]}`, quoted),
			fmt.Sprintf(`{"allow":["fine",{"rule":%s,"roles":["a"]}]}`, quoted),
			"allow:\n  - fine\n  - '" + strings.ReplaceAll(c.pattern, "'", "''") + "'\n",
			"allow:\n  - fine\n  - rule: '" + strings.ReplaceAll(c.pattern, "'", "''") + "'\n    agents: [a]\n",
		} {
			file := writeRules(t, text)
			_, err := Load(file)
			if err == nil || !strings.Contains(err.Error(), "allow pattern 2") || !strings.Contains(err.Error(), bad.Problem) || !strings.Contains(err.Error(), file) {
				t.Errorf("%s: error %v", text, err)
			}
		}
	}
}
