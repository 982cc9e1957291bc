package session

import (
	"strings"
	"testing"

	"chorus/internal/chat"
)

func turns(n int) []chat.Line {
	var lines []chat.Line
	for i := range n {
		name := string(rune('1' + i))
		lines = append(lines,
			chat.Line{Role: "user", Blocks: chat.TextBlocks("turn" + name)},
			chat.Line{Role: "assistant", Blocks: chat.TextBlocks("answer" + name)})
	}
	return lines
}

func TestResume(t *testing.T) {
	t.Parallel()
	three := turns(3)
	tests := []struct {
		mode  string
		lines []chat.Line
		first string
		count int
		warns bool
	}{
		{"full", three, "turn1", 6, false},
		{"", three, "turn1", 6, false},
		{"last-2", three, "turn2", 4, false},
		{"last-1", three, "turn3", 2, false},
		{"last-10", turns(1), "turn1", 2, false},
		{"bogus", three, "turn1", 6, true},
		{"last-0", three, "turn1", 6, true},
		{"last--1", three, "turn1", 6, true},
		{"last-+1", three, "turn1", 6, true},
		{"last-", three, "turn1", 6, true},
	}
	for _, tt := range tests {
		warned := false
		got := Resume(tt.lines, tt.mode, func(w string) { warned = strings.Contains(w, "resuming in full") })
		if len(got) != tt.count || got[0].Blocks.Text() != tt.first || warned != tt.warns {
			t.Errorf("%q: %d lines from %q, warned %v", tt.mode, len(got), got[0].Blocks.Text(), warned)
		}
		if ValidMode(tt.mode) == tt.warns && tt.mode != "" {
			t.Errorf("%q: valid %v", tt.mode, ValidMode(tt.mode))
		}
	}
	for _, mode := range []string{"full", "last-3", "summary"} {
		if got := Resume(nil, mode, nil); len(got) != 0 {
			t.Errorf("%s of nothing: %q", mode, describe(got))
		}
	}
}

func TestSummary(t *testing.T) {
	t.Parallel()
	log, _ := read(t, logOf(user1, assistant1, tool1,
		`{"type":"message","role":"user","content":"`+strings.Repeat("ä", 81)+`"}`))
	got := Resume(log.Lines(), "summary", nil)
	if len(got) != 1 || got[0].Role != "user" {
		t.Fatalf("got %q", describe(got))
	}
	want := "Summary of the earlier session: 2 user messages, 1 assistant messages, 1 tool calls. Tools used: read. Last prompt: " + strings.Repeat("ä", 80) + "…"
	if text := got[0].Blocks.Text(); text != want {
		t.Errorf("got  %s\nwant %s", text, want)
	}
}
