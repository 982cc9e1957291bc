package markdown

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// TestForChats: what a chat does not show of Markdown is there in a form that it does.
func TestForChats(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ in, want string }{
		"a small table is aligned": {
			"Sizes:\n\n| file | lines |\n|:-----|------:|\n| `a.go` | 2 |\n| **long.go** | 120 |\n\nThat is all.",
			"Sizes:\n\n```\nfile     lines\n───────  ─────\na.go         2\nlong.go    120\n```\n\nThat is all.",
		},
		"a wide one is a list": {
			"| file | what changed | lines |\n|---|---|---|\n| `greet.sh` | says hello to the whole world and leaves with zero | 2 |\n| notes.md | | 28 |\nEnd",
			"**`greet.sh`**\n- what changed: says hello to the whole world and leaves with zero\n- lines: 2\n**notes.md**\n- lines: 28\nEnd",
		},
		"of two columns a line each": {
			"| who | where |\n|---|---|\n| <@ada> | [here](https://example.org) |\n| **bob** | a\\|b<br>c |",
			"-# who: where\n- **<@ada>**: [here](https://example.org)\n- **bob**: a|b · c",
		},
		"a head alone":           {"a | b\n--|--", "```\na  b\n─  ─\n```"},
		"no table":               {"a | b\nc | d", "a | b\nc | d"},
		"nor in code":            {"```\n| a | b |\n|---|---|\n#### x\n```\n#### Parts #", "```\n| a | b |\n|---|---|\n#### x\n```\n**Parts**"},
		"headings that it shows": {"# a\n### c", "# a\n### c"},
		"tasks":                  {"- [ ] one\n  * [x] two\n- [link](x)", "- ☐ one\n  * ☑ two\n- [link](x)"},
		"rules":                  {"a\n\n---\n\nb\n-----\n", "a\n\n───\n\nb\n-----\n"},
		"small print":            {"-# small", "-# small"},
	} {
		if got := ForChats(c.in); got != c.want {
			t.Errorf("%s:\n%s\nwant:\n%s", name, got, c.want)
		}
	}
}

// TestForChatsLosesNoWords: every word of a table is there afterwards, and nothing is done twice.
func TestForChatsLosesNoWords(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		word := rapid.StringMatching(`[a-z]{1,30}`)
		columns := rapid.IntRange(1, 6).Draw(t, "columns")
		var all []string
		row := func() string {
			var cells []string
			for range columns {
				w := word.Draw(t, "cell")
				all, cells = append(all, w), append(cells, w)
			}
			return "| " + strings.Join(cells, " | ") + " |\n"
		}
		text := row() + strings.Repeat("|---", columns) + "|\n"
		head := len(all)
		for range rapid.IntRange(1, 4).Draw(t, "rows") {
			text += row()
		}
		got := ForChats(text)
		for i, w := range all {
			if i < head && !strings.HasPrefix(got, "```") && (i == 0 || columns == 1) {
				continue // what the names of the rows are called is seen from them
			}
			if !strings.Contains(got, w) {
				t.Fatalf("%q is missing in\n%s", w, got)
			}
		}
		if again := ForChats(got); again != got {
			t.Fatalf("twice:\n%s\nonce:\n%s", again, got)
		}
	})
}
