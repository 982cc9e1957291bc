package eventline_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"chorus/internal/chat"
	"chorus/internal/eventline"
)

// Every kind of event has a title of its own.
func TestEveryKindHasATitle(t *testing.T) {
	t.Parallel()
	seen := map[string]string{}
	for _, kind := range chat.Kinds() {
		title := eventline.Title(kind)
		if title == kind || seen[title] != "" {
			t.Errorf("%s is called %q, as is %q", kind, title, seen[title])
		}
		seen[title] = kind
	}
	if got := eventline.Title("from_a_later_version"); got != "from_a_later_version" {
		t.Errorf("a kind that is not known is called %q", got)
	}
}

func TestLines(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		want string
		body chat.Body
	}{
		{"fix the footer, please", chat.Received{Blocks: chat.TextBlocks("fix the footer,\n please")}},
		{"look · 1 attachment", chat.Received{Blocks: chat.Blocks{chat.Text{Text: "look"}, chat.Image{Blob: "x"}}}},
		{"message 4 · five prompts wait already", chat.Refused{Seq: 4, Why: "five prompts wait already"}},
		{"👍 removed · message 2", chat.Reacted{Seq: 2, Emoji: "👍"}},
		{"12 messages from a session file", chat.Imported{Source: "a session file", Count: 12}},
		{"message 1, message 3", chat.Took{Seqs: []int64{1, 3}}},
		{"demo/guide · attempt 2 · about 900 tokens", chat.Asked{Model: "demo/guide", Attempt: 2, Tokens: 900}},
		{"demo/guide · for a summary", chat.Asked{Model: "demo/guide", Attempt: 1, Purpose: chat.ForCompaction}},
		{"I will look. · calls bash, read", chat.Said{Blocks: chat.Blocks{chat.Text{Text: "I will look."}, chat.ToolUse{Name: "bash"}, chat.ToolUse{Name: "read"}}}},
		{"failed · the key was not accepted", chat.Said{Error: &chat.Failure{Message: "the key was not accepted"}}},
		{"bash · exit code 3 · 62 ms · changed a.go", chat.ToolRan{Name: "bash", Outcome: chat.Ran, Exit: 3, TookMS: 62, Changed: []string{"src/a.go"}}},
		{"write · denied", chat.ToolRan{Name: "write", Outcome: chat.Denied, Failed: true}},
		{"bash · high risk · It deletes files.", chat.ApprovalAsked{Name: "bash", Assessment: chat.Assessment{Risk: "high", RiskWhy: "It deletes files."}}},
		{"denied · use another file", chat.ApprovalAnswered{Note: "use another file"}},
		{"failed · no space left · 2 steps · 30 tokens", chat.RunEnded{Reason: chat.EndFailed, Error: &chat.Failure{Message: "no space left"}, Steps: 2, Usage: chat.Usage{Input: 20, Output: 10}}},
		{"", chat.AbortAsked{}},
	} {
		if got := eventline.Line(c.body); got != c.want {
			t.Errorf("%#v\n got %q\nwant %q", c.body, got, c.want)
		}
	}
}

// Whatever people, models and tools write, a line is one short line, and the calls of an answer stay in it.
func TestLinesAreShort(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		said := rapid.String().Draw(t, "said") + strings.Repeat("long ", rapid.IntRange(0, 100).Draw(t, "more"))
		for _, body := range []chat.Body{
			chat.Received{Blocks: chat.TextBlocks(said)}, chat.Noted{What: "memory", Text: said}, chat.Compacted{Summary: said},
			chat.Said{Blocks: chat.Blocks{chat.Text{Text: said}, chat.ToolUse{Name: "bash"}}},
		} {
			line := eventline.Line(body)
			if n := utf8.RuneCountInString(line); n > 161 || strings.ContainsAny(line, "\n\r\x1b") {
				t.Fatalf("%d characters: %q", n, line)
			}
			if _, ok := body.(chat.Said); ok && !strings.HasSuffix(line, "calls bash") {
				t.Fatalf("the call is not in %q", line)
			}
		}
	})
}
