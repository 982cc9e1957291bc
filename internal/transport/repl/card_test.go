package repl

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"chorus/internal/approval"
	"chorus/internal/chat"
	"chorus/internal/markdown"
	"chorus/internal/theme"
)

// TestCardsAreReadable: what we say ourselves breaks between words, a command is there once, and no expression of the rules is shown.
func TestCardsAreReadable(t *testing.T) {
	t.Parallel()
	const long = "echo one two three four five six seven eight nine ten eleven twelve thirteen fourteen && sleep 0.05"
	a := approval.Approval{Actions: []string{"tool:bash:echo one\nsleep 0.05"}, Rule: "tool:bash:.*", Reason: "a shell reads its commands from somewhere else; give them to bash -c '…', or run a file"}
	a.Call.Name = "bash"
	a.Call.Args, _ = json.Marshal(map[string]string{"command": long})
	a.Parts = []chat.JudgedPart{{Verdict: "ask", Text: "echo one"}, {Verdict: "ask", Text: "sleep 0.05"}}
	a.Risk, a.RiskWhy = "high", "It cannot be told before what it does: "+a.Reason+", and deletes whole folders, which cannot be undone."

	shown := strings.Join(card(a, "", 60, theme.Theme{}), "\n")
	for _, word := range strings.Fields(a.RiskWhy) {
		if !strings.Contains(shown, word) {
			t.Errorf("%q is broken in\n%s", word, shown)
		}
	}
	for _, no := range []string{"does", "tool:", "why "} {
		if strings.Contains(strings.ReplaceAll(shown, "what it does", ""), no) {
			t.Errorf("%q is in\n%s", no, shown)
		}
	}
	var command strings.Builder
	for _, line := range strings.Split(shown, "\n") {
		if markdown.Width(line) > 60 {
			t.Errorf("too wide: %s", line)
		}
		if rest, ok := strings.CutPrefix(line, "│ command  "); ok || command.Len() > 0 && command.Len() < len(long) {
			if !ok {
				rest = strings.TrimPrefix(line, "│          ")
			}
			command.WriteString(rest)
		}
	}
	if command.String() != long {
		t.Errorf("the command is %q", command.String())
	}

	a.Actions = []string{"tool:bash:git push", "tool:write:notes.md"}
	if shown := strings.Join(card(a, "", 60, theme.Theme{}), "\n"); !strings.Contains(shown, "│ does     git push\n│          write:notes.md\n") {
		t.Errorf("what else it does is missing in\n%s", shown)
	}

	always := approval.Always{Where: "in this folder", Steps: []approval.Step{{Means: "echo with any arguments; sleep with any arguments", Rules: []string{"tool:bash:echo(?: .*)?", "tool:bash:sleep(?: .*)?"}, Still: []string{"rm -rf build"}}}}
	shown = strings.Join(offer(always, 60, theme.Theme{}), "\n")
	if strings.Contains(shown, "(?:") || !strings.Contains(shown, "1  echo with any arguments") || !strings.Contains(shown, "still asks   rm -rf build") {
		t.Errorf("always is\n%s", shown)
	}
}

// TestChatNamesWhoSaidNo: in the lines of a command too nobody is a key, and whoever sits here is not told that they said no.
func TestChatNamesWhoSaidNo(t *testing.T) {
	t.Parallel()
	for result, want := range map[string]string{
		"denied by local:ada":              "",
		"denied by local:ada: not today":   "\n  not today",
		"denied by discord:42: not today":  "\n  denied by Bo on Discord: not today",
		"denied by a rule of this channel": "\n  denied by a rule of this channel",
	} {
		teller := newPresenter(nil)
		teller.name = func(key string) string {
			if key != "discord:42" {
				t.Errorf("%s is asked for", key)
			}
			return "Bo on Discord"
		}
		use := command(t, "c1", "make test")
		teller.calls = []*call{{id: "c1", name: "bash", label: "Run the tests", args: use.Args}}
		told := teller.tell(Item{Event: &chat.Event{Seq: 1, Body: chat.ToolRan{Call: "c1", Name: "bash", Outcome: chat.Denied, Failed: true, Blocks: chat.TextBlocks(result)}}})
		lines, _ := toolLines(told[0].(finished), 60, theme.Theme{}, "")
		if got := strings.Join(lines, "\n"); got != "✗ Run the tests denied\n  $ make test"+want {
			t.Errorf("%s:\n%s", result, got)
		}
	}
}

// TestPlainCardsBreakNoCommand: what is read out is one line, however long a command is.
func TestPlainCardsBreakNoCommand(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("word ", 60) + "end"
	a := approval.Approval{Actions: []string{"tool:bash:" + long}, Rule: "tool:bash:.*"}
	a.Call.Name = "bash"
	a.Call.Args, _ = json.Marshal(map[string]string{"command": long})
	rec := &tape{}
	con := rec.console(strings.NewReader(""))
	con.Plain = true
	if shown := newFollower(newFake(), con, nil).card(a); !slices.Contains(shown, "command  "+long) {
		t.Errorf("the card is\n%s", strings.Join(shown, "\n"))
	}
}

// TestAnswersKeepTheirColumns: what does not fit beside a name goes on below itself, and what is no row is wrapped as ever.
func TestAnswersKeepTheirColumns(t *testing.T) {
	t.Parallel()
	answer := "web_fetch  Read one page of the web and what it says there\nno row, only a sentence that is too long to fit\n語語語  two columns each, so nobody can tell\nlong-name-of-a-thing  beyond the middle of it all, so not"
	want := []string{
		"web_fetch  Read one page of the", "           web and what it says", "           there",
		"no row, only a sentence that is", "too long to fit",
		"語語語  two columns each, so", "nobody can tell",
		"long-name-of-a-thing  beyond the", "middle of it all, so not",
	}
	if got := wrapRows(answer, 32); !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
	con := Console{OutTTY: true, Size: func() (int, int) { return 33, 24 }}
	if got := Answer("```\n"+answer+"\n```", con); got != strings.Join(want, "\n") {
		t.Errorf("on a terminal: %q", got)
	}
	if con.OutTTY = false; Answer(answer, con) != answer {
		t.Errorf("in a pipe: %q", Answer(answer, con))
	}
}
