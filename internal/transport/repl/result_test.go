package repl

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"chorus/internal/chat"
	"chorus/internal/markdown"
	"chorus/internal/theme"
)

func command(t *testing.T, id, command string) chat.ToolUse {
	t.Helper()
	args, err := json.Marshal(map[string]string{"command": command, "description": "Run the tests"})
	if err != nil {
		t.Fatal(err)
	}
	return use(id, "bash", string(args))
}

// TestChatShowsWhatACommandDid: the command stands there whatever it is described as, with the end of its output; the rest is a key away.
func TestChatShowsWhatACommandDid(t *testing.T) {
	t.Parallel()
	s := newStage(t, ChatOptions{})
	var output strings.Builder
	for i := range 40 {
		fmt.Fprintf(&output, "line %d\t%s\n", i, strings.Repeat("x", 50))
	}
	s.put(starts()...)
	s.put(says(1, 1, "", command(t, "c1", "make test\x1b]0;owned\x07")), chat.ToolBegan{Call: "c1", Name: "bash"})
	s.put(chat.Progress{Run: "r1", Call: "c1", Text: "one\ntwo\n10%\r20%"}, chat.Progress{Run: "r1", Call: "c1", Text: "\r30%\nthree\nfour"})
	s.wants("window", s.live(), "  two\n  30%\n  three\n  four")
	s.put(chat.ToolRan{Call: "c1", Name: "bash", Outcome: chat.Ran, TookMS: 10, Blocks: chat.TextBlocks(output.String())})
	s.wants("printed", s.printed(), `$ make test\x1b]0;owned\x07`, "… 35 lines above", "line 39", "Ctrl-O shows all")
	if strings.Contains(s.printed(), "line 34 ") || strings.Contains(s.printed(), "\x1b]") {
		t.Errorf("printed:\n%q", s.printed())
	}
	before := len(s.above)
	s.typing("<ctrl+o>")
	s.wants("printed", strings.Join(s.above[before:], "\n"), "$ make test", "line 0", "line 39")
	s.typing("<ctrl+o>")
	s.wants("window", s.live(), "nothing more to show")
	for _, line := range s.above {
		if w := markdown.Width(line); w > 59 {
			t.Errorf("%d columns: %s", w, line)
		}
	}
}

// TestChatDoesNotSayTwiceWhoSaidNo: whoever sits here knows who they are; what they gave as the reason stays, and so does somebody else's no.
func TestChatDoesNotSayTwiceWhoSaidNo(t *testing.T) {
	t.Parallel()
	for result, want := range map[string]string{
		"denied by local:ada":           "",
		"denied by local:ada: too soon": "too soon",
		"denied by discord:42":          "denied by discord:42",
	} {
		line := toolLine(finished{call: &call{label: "run the tests"}, ran: chat.ToolRan{Outcome: chat.Denied, Failed: true, Blocks: chat.TextBlocks(result)}}, 60, theme.Theme{})
		if _, got, _ := strings.Cut(line, "denied\n  "); got != want || !strings.HasPrefix(line, "✗ run the tests denied") {
			t.Errorf("%s: %q", result, line)
		}
	}
}

// TestPipesAreToldWhyACommandFailed: without a window a command is a line; one that failed has its end too, where programs say why.
func TestPipesAreToldWhyACommandFailed(t *testing.T) {
	t.Parallel()
	output := "compiling\n" + strings.Repeat("ok\n", 30) + "fatal: the disk is full\n"
	shown := func(ran chat.ToolRan) string {
		rec := &tape{}
		con := rec.console(strings.NewReader(""))
		con.InTTY, con.OutTTY, con.ErrTTY = false, false, false
		ran.Outcome, ran.Blocks = chat.Ran, chat.TextBlocks(output)
		c := command(t, "c1", "make test")
		newPrinter(con, newPresenter(nil), false).result(finished{call: &call{label: "Run the tests", args: c.Args}, ran: ran})
		return rec.String()
	}
	failed := shown(chat.ToolRan{Exit: 2})
	for _, want := range []string{"✗ Run the tests", "$ make test", "… 27 lines above", "fatal: the disk is full"} {
		if !strings.Contains(failed, want) {
			t.Errorf("%q is missing in\n%s", want, failed)
		}
	}
	if strings.Contains(failed, "compiling") {
		t.Errorf("the beginning is shown:\n%s", failed)
	}
	if good := shown(chat.ToolRan{}); strings.Count(good, "\n") != 1 || !strings.Contains(good, "✓ Run the tests") {
		t.Errorf("a command that succeeded is more than a line:\n%s", good)
	}
}

// TestChatShowsWhatWasChanged: an edit's diff stands below its line, folded when it is long.
func TestChatShowsWhatWasChanged(t *testing.T) {
	t.Parallel()
	s := newStage(t, ChatOptions{})
	s.w.look = sixteen()
	diff := "--- a/a.go\n+++ b/a.go\n@@ -1,2 +1,30 @@\n package a\n-old\x1b[2J\n"
	for i := range 30 {
		diff += fmt.Sprintf("+new %d\n", i)
	}
	s.put(starts()...)
	s.put(says(1, 1, "", use("c1", "edit", `{"path":"a.go"}`)),
		chat.ToolRan{Call: "c1", Name: "edit", Outcome: chat.Ran, Changed: []string{"a.go"}, Diff: diff, Blocks: chat.TextBlocks("The file was changed.")})
	s.wants("printed", s.printed(), "\x1b[31m-old\\x1b[2J\x1b[0m", "\x1b[32m+new 0\x1b[0m", "… 19 more lines", "Ctrl-O shows all")
	for _, not := range []string{"+++", "new 12", "The file was changed"} {
		if strings.Contains(s.printed(), not) {
			t.Errorf("%q is shown:\n%s", not, s.printed())
		}
	}
	s.typing("<ctrl+o>")
	s.wants("printed", s.printed(), "+new 29", "+++ b/a.go")
}

// TestStatusFitsTheLine: what matters least is left out where there is no room.
func TestStatusFitsTheLine(t *testing.T) {
	t.Parallel()
	s := newStage(t, ChatOptions{})
	s.f.info = Info{Agent: "helper", Model: "anthropic/claude-sonnet-4-5", Profile: "standard", Mode: "plan", Sandbox: "bwrap", Window: 10_000}
	s.put(starts()...)
	s.put(asking(1, 1), says(1, 1, "Hello."), ends(chat.EndDone))
	for width, want := range map[int]string{
		120: "helper · anthropic/claude-sonnet-4-5 · mode plan · standard · bwrap · context 10% · 1.0k tokens · $0.012",
		91:  "helper · anthropic/claude-sonnet-4-5 · mode plan · standard · bwrap · context 10% · $0.012",
		82:  "anthropic/claude-sonnet-4-5 · mode plan · standard · bwrap · context 10% · $0.012",
		75:  "anthropic/claude-sonnet-4-5 · mode plan · standard · context 10% · $0.012",
		64:  "claude-sonnet-4-5 · mode plan · standard · context 10% · $0.012",
	} {
		s.w.width = width
		if got := s.w.statusText(); got != want {
			t.Errorf("%d columns: %s", width, got)
		}
	}
	if got := s.w.presenter.withContext("/status", "model  m\n", 10_000); got != "model  m\ncontext       10% of 10.0k tokens" {
		t.Errorf("/status: %q", got)
	}
	if got := s.w.presenter.withContext("/cost", "$1", 10_000); got != "$1" {
		t.Errorf("/cost: %q", got)
	}
	s.put(chat.Cleared{})
	if got := s.w.statusText(); strings.Contains(got, "context") {
		t.Errorf("after a clear: %s", got)
	}
}
