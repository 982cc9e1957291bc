package acp

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	sdk "github.com/coder/acp-go-sdk"

	"chorus/internal/chat"
	"chorus/internal/transport/repl"
)

// shown is updates in a few letters each: text, (thought), <user>, [call] and [call:state].
func shown(t *testing.T, updates []sdk.SessionUpdate) string {
	t.Helper()
	var b strings.Builder
	for _, u := range updates {
		if _, err := json.Marshal(u); err != nil {
			t.Errorf("%+v cannot be sent: %v", u, err)
		}
		switch {
		case u.AgentMessageChunk != nil:
			b.WriteString(u.AgentMessageChunk.Content.Text.Text)
		case u.AgentThoughtChunk != nil:
			fmt.Fprintf(&b, "(%s)", u.AgentThoughtChunk.Content.Text.Text)
		case u.UserMessageChunk != nil:
			fmt.Fprintf(&b, "<%s>", u.UserMessageChunk.Content.Text.Text)
		case u.ToolCall != nil:
			fmt.Fprintf(&b, "[%s]", u.ToolCall.Title)
		case u.ToolCallUpdate != nil:
			fmt.Fprintf(&b, "[%s:%s]", u.ToolCallUpdate.ToolCallId, *u.ToolCallUpdate.Status)
		}
	}
	return b.String()
}

func text(s string) chat.Blocks { return chat.TextBlocks(s) }

func event(body chat.Body) repl.Item { return repl.Item{Event: &chat.Event{Run: "r", Body: body}} }

func delta(step, attempt, offset int, s string) repl.Item {
	return repl.Item{Live: chat.Delta{Run: "r", Step: step, Attempt: attempt, What: chat.DeltaText, Offset: offset, Text: s}}
}

// Each piece of an answer is sent once, whatever of it came early, twice, late or never.
func TestEachPieceOnce(t *testing.T) {
	t.Parallel()
	begin := event(chat.RunStarted{Run: "r"})
	asked := func(step, attempt int) repl.Item {
		return event(chat.Asked{Step: step, Attempt: attempt, Purpose: chat.ForTurn})
	}
	said := func(step, attempt int, s string) repl.Item {
		return event(chat.Said{Step: step, Attempt: attempt, Blocks: text(s), Stop: chat.StopEnd})
	}
	failed := event(chat.Said{Step: 0, Attempt: 0, Stop: chat.StopError, Error: &chat.Failure{Kind: "network", Message: "cut off"}})
	thinking := func(offset int, s string) repl.Item {
		return repl.Item{Live: chat.Delta{Run: "r", What: chat.DeltaThinking, Offset: offset, Text: s}}
	}
	for name, test := range map[string]struct {
		items []repl.Item
		want  string
	}{
		"live and whole":       {[]repl.Item{begin, asked(0, 0), delta(0, 0, 0, "hel"), delta(0, 0, 3, "lo"), said(0, 0, "hello")}, "hello"},
		"only whole":           {[]repl.Item{begin, asked(0, 0), said(0, 0, "hello")}, "hello"},
		"twice":                {[]repl.Item{begin, asked(0, 0), delta(0, 0, 0, "hel"), delta(0, 0, 0, "hello"), said(0, 0, "hello")}, "hello"},
		"a gap":                {[]repl.Item{begin, asked(0, 0), delta(0, 0, 0, "he"), delta(0, 0, 3, "lo"), said(0, 0, "hello")}, "hello"},
		"late":                 {[]repl.Item{begin, asked(0, 0), said(0, 0, "hello"), delta(0, 0, 0, "hello")}, "hello"},
		"another run's":        {[]repl.Item{begin, asked(0, 0), {Live: chat.Delta{Run: "other", What: chat.DeltaText, Text: "x"}}, said(0, 0, "hello")}, "hello"},
		"a failed attempt":     {[]repl.Item{begin, asked(0, 0), delta(0, 0, 0, "hel"), failed, asked(0, 1), delta(0, 1, 0, "hello"), said(0, 1, "hello")}, "hel…\n\n(cut off; trying again\n)hello"},
		"an attempt that died": {[]repl.Item{begin, asked(0, 0), delta(0, 0, 0, "hel"), asked(0, 1), said(0, 1, "hello")}, "hel…\n\nhello"},
		"thoughts": {[]repl.Item{begin, asked(0, 0), thinking(0, "let "), thinking(4, "me"), event(chat.Said{Stop: chat.StopEnd,
			Blocks: chat.Blocks{chat.Thinking{Text: "let me see"}, chat.Text{Text: "yes"}}})}, "(let )(me)( see)yes"},
		"a summary":     {[]repl.Item{begin, event(chat.Asked{Purpose: chat.ForCompaction}), delta(0, 0, 0, "sum"), event(chat.Said{Blocks: text("summary")})}, ""},
		"what was said": {[]repl.Item{event(chat.Received{Prompt: true, Blocks: text("hi")}), event(chat.Received{Blocks: text("unheard")}), event(chat.Steered{Blocks: text("stop")})}, "<hi><stop>"},
		"calls": {[]repl.Item{begin, event(chat.Said{Stop: chat.StopTools, Blocks: chat.Blocks{chat.ToolUse{ID: "a", Name: "read", Args: []byte(`{"path":"x"}`)}}}),
			event(chat.ToolBegan{Call: "a"}), event(chat.ToolRan{Call: "a", Outcome: chat.Ran, Blocks: text("x")}), event(chat.ToolRan{Call: "b", Outcome: chat.Denied})},
			"[read][r/a:in_progress][r/a:completed][r/b:failed]"},
		"the end": {[]repl.Item{begin, event(chat.RunEnded{Run: "r", Reason: chat.EndLimit, Text: "no more"})}, "\n\nno more"},
	} {
		tr := newTranslator(func(name string, _ []byte) string { return name }, "/work")
		var all []sdk.SessionUpdate
		for _, item := range test.items {
			if item.Event != nil {
				all = append(all, tr.event(*item.Event, false)...)
			} else {
				all = append(all, tr.live(item.Live)...)
			}
		}
		if got := shown(t, all); got != test.want {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}

// The output of a running command is shown now and then, and not for ever.
func TestProgress(t *testing.T) {
	t.Parallel()
	tr := newTranslator(func(name string, _ []byte) string { return name }, "/work")
	tr.event(*event(chat.Said{Stop: chat.StopTools, Blocks: chat.Blocks{chat.ToolUse{ID: "a", Name: "bash", Args: []byte(`{}`)}}}).Event, false)
	progress := func(s string) int { return len(tr.live(chat.Progress{Run: "r", Call: "a", Text: s})) }
	if progress("one\n") != 1 || progress("two\n") != 0 {
		t.Error("every line is shown")
	}
	tr.calls["r/a"].told = time.Now().Add(-time.Hour)
	if progress(strings.Repeat("ä", maxProgress)) != 1 || len(tr.calls["r/a"].output) > maxProgress {
		t.Errorf("%d bytes are kept", len(tr.calls["r/a"].output))
	}
	if tr.event(*event(chat.ToolRan{Call: "a", Outcome: chat.Ran}).Event, false); progress("late") != 0 {
		t.Error("shown after its end")
	}
}

func TestDiffs(t *testing.T) {
	t.Parallel()
	unified := "--- a/x.go\n+++ b/x.go\n@@ -1,2 +1,2 @@\n one\n-two\n+2\n@@ -9 +9 @@\n--- not a head\n+++ neither\n--- /dev/null\n+++ b/new\n@@ -0,0 +1 @@\n+hi\n--- a/gone\n+++ /dev/null\n@@ -1 +0,0 @@\n-bye\n--- a/@outputs/o\n+++ b/@outputs/o\n@@ -1 +1 @@\n-a\n+b\n"
	var got []string
	for _, c := range diffs(unified, "/work") {
		old := "none"
		if c.Diff.OldText != nil {
			old = *c.Diff.OldText
		}
		got = append(got, fmt.Sprintf("%s %q %q", c.Diff.Path, old, c.Diff.NewText))
	}
	want := []string{`/work/x.go "one\ntwo\n" "one\n2\n"`, `/work/new "none" "hi\n"`, `/work/gone "bye\n" ""`}
	if len(got) != 4 || got[0] != want[0] || got[2] != want[1] || got[3] != want[2] {
		t.Errorf("%q", got)
	}
	if diffs("", "/work") != nil || diffs("(binary)", "/work") != nil {
		t.Error("a diff of nothing")
	}
}

func FuzzDiffs(f *testing.F) {
	f.Add("--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n")
	f.Fuzz(func(t *testing.T, unified string) {
		for _, c := range diffs(unified, "/work") {
			if c.Diff.Path == "" || strings.Contains(c.Diff.Path, "@@") && !strings.Contains(unified, "@@") {
				t.Errorf("%+v", c.Diff)
			}
		}
	})
}

func TestFence(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{"a\n": "```\na\n```", "```\nx\n```": "````\n```\nx\n```\n````", "": "```\n\n```"} {
		if got := fence(in); got != want {
			t.Errorf("%q: %q", in, got)
		}
	}
}

// What an editor is told of a session comes after the answer by which it learns of the session.
func TestTellsAfterTheAnswer(t *testing.T) {
	t.Parallel()
	var to bytes.Buffer
	o := &output{to: &to}
	told := make(chan struct{})
	o.whenAnswered("s1", func() { close(told) })
	for _, line := range []string{`{"method":"session/update","params":{"sessionId":"s1"}}`, `{"id":1,"result":{"sessionId":"s2"}}`} {
		if _, err := o.Write([]byte(line)); err != nil {
			t.Fatal(err)
		}
	}
	select {
	case <-told:
		t.Fatal("told before the answer")
	default:
	}
	if _, err := o.Write([]byte(`{"id":2,"result":{"sessionId":"s1"}}`)); err != nil {
		t.Fatal(err)
	}
	<-told
}
