package repl

import (
	"strings"
	"testing"

	"chorus/internal/approval"
	"chorus/internal/chat"
)

// TestShowTellsWhatIsUnfinished: a reader sees the command that waits for an answer and the one that is running, not only what has ended.
func TestShowTellsWhatIsUnfinished(t *testing.T) {
	t.Parallel()
	f, out := newFake(), &tape{}
	f.put(chat.Received{From: chat.Participant{Name: "ada"}, Blocks: chat.TextBlocks("tidy up"), Prompt: true})
	f.put(starts(1)...)
	f.put(says(1, 1, "I look, then I remove it.", use("c1", "bash", `{"command":"ls old","description":"look"}`), use("c2", "bash", `{"command":"rm -r old","description":"remove it"}`)))
	f.put(chat.ToolBegan{Call: "c1", Name: "bash"})
	f.asks(approval.Approval{ID: "01A", Call: chat.ToolUse{ID: "c2", Name: "bash"}})
	show := func(upTo int64) string {
		out.out.Reset()
		if err := Show(within(t), f, upTo, out.console(nil)); err != nil {
			t.Fatal(err)
		}
		return out.out.String()
	}
	got := show(f.seq)
	for _, want := range []string{"waiting for an answer: bash", "$ rm -r old", "chorus approvals show 01A", "→ bash", "$ ls old"} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in:\n%s", want, got)
		}
	}
	f.put(chat.ApprovalAnswered{ID: "01A", Call: "c2"}, chat.ToolRan{Call: "c1", Name: "bash", Outcome: chat.Ran}, chat.ToolRan{Call: "c2", Name: "bash", Outcome: chat.Denied}, ends(chat.EndDone))
	if got := show(f.seq); strings.Contains(got, "waiting") || strings.Contains(got, "→") {
		t.Errorf("what has ended still waits:\n%s", got)
	}
}

// TestShowTellsWhyACommandFailed: what went wrong is at the end of an output, not in its first line.
func TestShowTellsWhyACommandFailed(t *testing.T) {
	t.Parallel()
	f, out := newFake(), &tape{}
	f.put(chat.Received{From: chat.Participant{Name: "ada"}, Blocks: chat.TextBlocks("test it"), Prompt: true})
	f.put(starts(1)...)
	f.put(says(1, 1, "", use("c1", "bash", `{"command":"make test"}`)))
	f.put(chat.ToolRan{Call: "c1", Name: "bash", Outcome: chat.Ran, Exit: 1, Blocks: chat.TextBlocks("ok one\nok two\nok three\nok four\nok five\nFAIL six\n[exit code 1]")})
	if err := Show(within(t), f, f.seq, out.console(nil)); err != nil {
		t.Fatal(err)
	}
	if got := out.out.String(); !strings.Contains(got, "FAIL six") || strings.Contains(got, "ok one") {
		t.Error(got)
	}
}
