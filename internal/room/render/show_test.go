package render

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"chorus/internal/chat"
	"chorus/internal/room/split"
)

var start = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// tape is a journal in the making.
type tape struct{ events []chat.Event }

func (s *tape) add(run string, body chat.Body) int64 {
	seq := int64(len(s.events) + 1)
	s.events = append(s.events, chat.Event{Seq: seq, At: start.Add(time.Duration(seq) * time.Second), Run: run, Body: body})
	return seq
}

func (s *tape) prompt(id string) int64 {
	seq := s.add("", chat.Received{Prompt: true, Blocks: chat.TextBlocks("do it")})
	s.events[seq-1].Platform, s.events[seq-1].PlatformID = "discord", id
	return seq
}

func (s *tape) begin(run string, seqs ...int64) {
	s.add(run, chat.RunStarted{Run: run, Model: "demo/echo"})
	s.add(run, chat.Took{Run: run, Step: 1, Seqs: seqs})
	s.add(run, chat.Asked{Step: 1, Attempt: 1, Purpose: chat.ForTurn})
}

func (s *tape) calls(run, preamble string, calls ...string) {
	blocks := chat.TextBlocks(preamble)
	for _, c := range calls {
		blocks = append(blocks, chat.ToolUse{ID: c, Name: "bash", Args: json.RawMessage(`{"command":"go test"}`)})
	}
	s.add(run, chat.Said{Step: 1, Attempt: 1, Blocks: blocks, Stop: chat.StopTools, Usage: chat.Usage{Input: 100, Output: 10}})
}

func (s *tape) says(run, text string, stop chat.Stop) {
	s.add(run, chat.Said{Step: 2, Attempt: 1, Blocks: chat.TextBlocks(text), Stop: stop, Usage: chat.Usage{Input: 50, Output: 5}})
}

func (s *tape) end(run string, reason chat.Reason) {
	s.add(run, chat.RunEnded{Run: run, Reason: reason, Steps: 2, Usage: chat.Usage{Input: 1134, CacheRead: 100, Output: 567}, Cost: 42_100_000})
}

func fold(o Options, events []chat.Event) *View {
	v := viewOf(o)
	for _, ev := range events {
		v.Apply(ev)
	}
	return v
}

func full() Options { return Options{Status: true, Reactions: true, Footer: true} }

func at(s int) time.Time { return start.Add(time.Duration(s) * time.Second) }

// TestFooter is case A59.
func TestFooter(t *testing.T) {
	t.Parallel()
	v := viewOf(Options{Label: "branch #3"})
	r := &run{began: start, ended: start.Add(12500 * time.Millisecond), end: &chat.RunEnded{Steps: 2, Usage: chat.Usage{Input: 1134, CacheRead: 100, Output: 567}, Cost: 42_100_000}}
	if got := v.footer(r); got != "*branch #3 · 2 steps · 1,234 (100 cached) in / 567 out · $0.042 · 12.5s*" {
		t.Error(got)
	}
}

// A status that waits for a person was edited every few seconds, for a day if need be, only because time passed.
func TestNothingIsEditedWhileAPersonIsWaitedFor(t *testing.T) {
	t.Parallel()
	var s tape
	s.begin("r", s.prompt("m1"))
	s.calls("r", "", "c1")
	look := func(second int) Shown {
		var shown Shown
		for _, a := range Diff(shown, fold(full(), s.events).Wanted(at(second))) {
			shown.Done(a)
		}
		return shown
	}
	if before := look(60); len(Diff(before, fold(full(), s.events).Wanted(at(67)))) == 0 {
		t.Error("while it works nobody sees for how long")
	}
	s.add("r", chat.ApprovalAsked{ID: "a", Call: "c1", Name: "bash"})
	if edits := Diff(look(60), fold(full(), s.events).Wanted(at(3600))); len(edits) != 0 {
		t.Errorf("%+v", edits)
	}
	s.add("r", chat.ApprovalAnswered{ID: "a", Call: "c1", By: "discord:1"})
	if edits := Diff(look(60), fold(full(), s.events).Wanted(at(3600))); len(edits) == 0 {
		t.Error("it goes on, and nobody sees that")
	}
}

func TestLifeOfARun(t *testing.T) {
	t.Parallel()
	var s tape
	p := s.prompt("m1")
	stages := []struct {
		name  string
		do    func()
		text  string // of the run's first message: a part of it
		signs string
	}{
		{"waiting", func() {}, "", "m1👀"},
		{"taken", func() { s.begin("r", p) }, "**thinking** · step 1", "m1⚙️"},
		{"calls", func() { s.calls("r", "I will look.", "c1", "c2") }, "- `bash` …\n- `bash` …\n\nI will look.", "m1⚙️"},
		{"a result", func() { s.add("r", chat.ToolRan{Call: "c1", Outcome: chat.Ran, TookMS: 2300}) }, "- `bash` ok 2s\n- `bash` …", "m1⚙️"},
		{"a question", func() { s.add("r", chat.ApprovalAsked{ID: "a", Call: "c2", Name: "bash"}) }, "**waiting for an approval**", "m1⚙️"},
		{"an answer to it", func() { s.add("r", chat.ApprovalAnswered{ID: "a", Call: "c2", By: "discord:1"}) }, "**working**", "m1⚙️"},
		{"denied", func() { s.add("r", chat.ToolRan{Call: "c2", Failed: true, Outcome: chat.Denied}) }, "- `bash` denied", "m1⚙️"},
		{"a failed attempt", func() {
			s.add("r", chat.Said{Step: 2, Attempt: 1, Stop: chat.StopError, Error: &chat.Failure{Message: "overloaded"}})
		}, "*trying again: overloaded*", "m1⚙️"},
		{"said", func() { s.says("r", "All done.", chat.StopEnd) }, "**working**", "m1⚙️"},
		{"ended", func() { s.end("r", chat.EndDone) }, "All done.\n*2 steps", "m1✅"},
	}
	for _, stage := range stages {
		stage.do()
		w := fold(full(), s.events).Wanted(at(60))
		if stage.text != "" && (len(w.Messages) == 0 || w.Messages[0].Key != "r/0" || w.Messages[0].ReplyTo != "m1" || !strings.Contains(w.Messages[0].Text, stage.text)) {
			t.Errorf("%s: %+v", stage.name, w.Messages)
		}
		if got := signs(w); got != stage.signs {
			t.Errorf("%s: %s", stage.name, got)
		}
	}
	w := fold(full(), s.events).Wanted(at(60))
	if len(w.Messages) != 2 || w.Messages[1].Card == nil || w.Messages[1].Card.Open || w.Typing {
		t.Errorf("in the end: %+v", w)
	}
}

func signs(w Wanted) string {
	var out []string
	for _, r := range w.Reactions {
		out = append(out, r.On+r.Key+r.Emoji)
	}
	return strings.Join(out, " ")
}

func TestEndings(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		do   func(s *tape, p int64)
		want []string // texts
		sign string
	}{
		{"nothing said", func(s *tape, p int64) { s.begin("r", p); s.end("r", chat.EndDone) }, []string{""}, "m1✅"},
		{"stopped in mid-sentence", func(s *tape, p int64) {
			s.begin("r", p)
			s.add("r", chat.Said{Step: 1, Partial: true, Stop: chat.StopAborted, Blocks: chat.TextBlocks("half an ans")})
			s.end("r", chat.EndAborted)
		}, []string{"half an ans\n\n*Stopped.*"}, "m1❌"},
		{"stopped between calls", func(s *tape, p int64) { s.begin("r", p); s.calls("r", "Let me see.", "c"); s.end("r", chat.EndAborted) }, []string{"Let me see.\n\n*Stopped.*"}, "m1❌"},
		{"failed", func(s *tape, p int64) {
			s.begin("r", p)
			s.add("r", chat.RunEnded{Run: "r", Reason: chat.EndFailed, Error: &chat.Failure{Message: "the key is wrong"}})
		}, []string{"**This did not work.** the key is wrong"}, "m1❌"},
		{"cut by its length, and on", func(s *tape, p int64) {
			s.begin("r", p)
			s.says("r", "one tw", chat.StopLength)
			s.says("r", "o three", chat.StopEnd)
			s.end("r", chat.EndDone)
		}, []string{"one two three"}, "m1✅"},
		{"two answers", func(s *tape, p int64) {
			s.begin("r", p)
			s.says("r", "first", chat.StopEnd)
			s.says("r", "second", chat.StopEnd)
			s.end("r", chat.EndDone)
		}, []string{"first\n\nsecond"}, "m1✅"},
		{"queue full", func(s *tape, p int64) { s.add("", chat.Refused{Seq: p, Why: "five prompts wait already"}) }, []string{"Not taken: five prompts wait already."}, "m1❌"},
		{"stopped before it began", func(s *tape, p int64) { s.add("", chat.Refused{Seq: p, Why: "stopped by discord:1402"}) }, []string{"Not taken: the work was stopped."}, "m1❌"},
		{"queue full, thrice", func(s *tape, p int64) {
			s.add("", chat.Refused{Seq: p, Why: "queue full: 5 messages are waiting already"})
			for range 2 {
				s.add("", chat.Refused{Seq: s.prompt("m2"), Why: "queue full: 5 messages are waiting already"})
			}
		}, []string{"Not taken: queue full: 5 messages are waiting already; 3 messages were not taken."}, "m1❌ m2❌ m2❌"},
		{"refused by the model", func(s *tape, p int64) { s.begin("r", p); s.says("r", "no", chat.StopRefused); s.end("r", chat.EndDone) }, []string{"no"}, "r/0🛑 m1✅"},
		{"refused without a word", func(s *tape, p int64) { s.begin("r", p); s.says("r", "", chat.StopRefused); s.end("r", chat.EndDone) }, []string{""}, "m1🛑 m1✅"},
		{"the prompt was deleted", func(s *tape, p int64) {
			s.begin("r", p)
			s.add("", chat.Deleted{Seq: p})
			s.says("r", "done", chat.StopEnd)
			s.end("r", chat.EndDone)
		}, []string{"done"}, ""},
		{"a second prompt is taken on the way", func(s *tape, p int64) {
			s.begin("r", p)
			q := s.prompt("m2")
			s.add("r", chat.Took{Run: "r", Step: 2, Seqs: []int64{q}})
			s.says("r", "both", chat.StopEnd)
			s.end("r", chat.EndDone)
		}, []string{"both"}, "m1✅ m2✅"},
	} {
		var s tape
		c.do(&s, s.prompt("m1"))
		v := fold(Options{Reactions: true, Status: true}, s.events)
		w := v.Wanted(at(99))
		var texts []string
		for _, m := range w.Messages {
			texts = append(texts, m.Text)
			if !m.Final {
				t.Errorf("%s: %+v is not final", c.name, m)
			}
		}
		if fmt.Sprintf("%q", texts) != fmt.Sprintf("%q", c.want) || signs(w) != c.sign || !v.Idle() {
			t.Errorf("%s: %q %s", c.name, texts, signs(w))
		}
	}
}

// TestLongAnswers: D9, the footer never makes a message too long; A58's parts; a file.
// TestEveryPromptOfAFailedRun: each of several prompts that a run took is told that it failed, once; a stop is said once.
func TestEveryPromptOfAFailedRun(t *testing.T) {
	t.Parallel()
	for reason, want := range map[chat.Reason]int{chat.EndFailed: 1, chat.EndBudget: 1, chat.EndAborted: 0, chat.EndDone: 0} {
		s := &tape{}
		first, second := s.prompt("m1"), s.prompt("m2")
		s.begin("r", first, second)
		s.add("r", chat.RunEnded{Run: "r", Reason: reason, Error: &chat.Failure{Message: "the key is wrong"}})
		told := map[string]int{}
		for _, m := range fold(full(), s.events).Wanted(at(60)).Messages {
			told[m.ReplyTo]++
		}
		if told["m1"] != min(1, told["m1"]) || reason != chat.EndDone && told["m1"] != 1 || told["m2"] != want {
			t.Errorf("%s: %v", reason, told)
		}
	}
}

func TestLongAnswers(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		length, messages int
		file             bool
	}{{1800, 1, false}, {1801, 2, false}, {9000, 5, false}, {9001, 1, true}} {
		var s tape
		s.begin("r", s.prompt("m1"))
		s.says("r", strings.Repeat("x", c.length), chat.StopEnd)
		s.end("r", chat.EndDone)
		w := fold(full(), s.events).Wanted(at(99))
		if len(w.Messages) != c.messages || (w.Messages[0].File != nil) != c.file {
			t.Errorf("%d: %d messages", c.length, len(w.Messages))
		}
		for i, m := range w.Messages {
			if split.Length(m.Text) > 2000 || (m.ReplyTo != "") != (i == 0) || m.Key != fmt.Sprintf("r/%d", i) {
				t.Errorf("%d: %s has %d and answers %q", c.length, m.Key, split.Length(m.Text), m.ReplyTo)
			}
		}
	}
	texts := underneath([]string{strings.Repeat("x", 1990)}, "*a footer that does not fit*", split.Options{})
	if len(texts) != 2 {
		t.Errorf("%d texts", len(texts))
	}
}

func TestDotMessages(t *testing.T) {
	t.Parallel()
	var s tape
	s.begin("r", s.prompt("m1"))
	s.add("r", chat.Said{Step: 1, Stop: chat.StopTools, Blocks: chat.Blocks{chat.Thinking{Text: "hm"}, chat.Thinking{Text: strings.Repeat("y", 1900)},
		chat.ToolUse{ID: "c", Name: "bash", Args: json.RawMessage(`{"command": "ls"}`)}}})
	s.add("r", chat.ToolRan{Call: "c", Outcome: chat.Ran, Blocks: chat.TextBlocks("a\n b\n" + strings.Repeat("z", 300))})
	w := fold(Options{Thinking: true, ToolOutput: true, Name: "Claude"}, s.events).Wanted(at(9))
	if len(w.Messages) != 3 || w.Messages[0].Text != ".💭 hm" || !w.Messages[0].Aside || !w.Messages[2].Aside || w.Messages[1].File == nil || w.Messages[1].File.Name != "thinking.txt" {
		t.Fatalf("%+v", w.Messages)
	}
	if got := w.Messages[2].Text; !strings.HasPrefix(got, ".Claude>[bash]: {\"command\": \"ls\"}\n.Claude<[bash]: a b zzz") || !strings.HasSuffix(got, "… (304 characters)") {
		t.Error(got)
	}
	if w := fold(Options{}, s.events).Wanted(at(9)); len(w.Messages) != 0 || !w.Typing {
		t.Errorf("a quiet agent shows %+v", w)
	}
}

// The answer stands below what was said beside the conversation while a status was shown; without one it always did.
func TestAnswerBelowAsides(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		o    Options
		call bool
		want []string
	}{
		"status":         {Options{Status: true, ToolOutput: true}, true, []string{"r/tool/0", "r/0 gone", "r/1 to m1"}},
		"nothing beside": {Options{Status: true, ToolOutput: true}, false, []string{"r/0 to m1"}},
		"not shown":      {Options{Status: true}, true, []string{"r/0 to m1"}},
		"no status":      {Options{ToolOutput: true}, true, []string{"r/tool/0", "r/0 to m1"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var s tape
			s.begin("r", s.prompt("m1"))
			if c.call {
				s.add("r", chat.Said{Step: 1, Stop: chat.StopTools, Blocks: chat.Blocks{chat.ToolUse{ID: "c", Name: "bash", Args: json.RawMessage(`{}`)}}})
				s.add("r", chat.ToolRan{Call: "c", Outcome: chat.Ran, Blocks: chat.TextBlocks("a")})
			}
			s.add("r", chat.Said{Step: 2, Stop: chat.StopEnd, Blocks: chat.TextBlocks("done")})
			s.add("r", chat.RunEnded{Run: "r", Reason: chat.EndDone})
			var got []string
			for _, m := range fold(c.o, s.events).Wanted(at(9)).Messages {
				line := m.Key
				if m.Absent() {
					line += " gone"
				}
				if m.ReplyTo != "" {
					line += " to " + m.ReplyTo
				}
				got = append(got, line)
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}

func TestLive(t *testing.T) {
	t.Parallel()
	var s tape
	s.begin("r", s.prompt("m1"))
	v := fold(full(), s.events)
	v.Live(chat.Delta{Run: "r", Step: 1, Attempt: 1, What: chat.DeltaText, Text: "```go\nx :="})
	v.Live(chat.Delta{Run: "r", Step: 1, Attempt: 1, What: chat.DeltaText, Offset: 10, Text: " 1"})
	v.Live(chat.Delta{Run: "r", Step: 1, Attempt: 1, What: chat.DeltaText, Offset: 99, Text: "lost"})
	v.Live(chat.Progress{Run: "r", Text: "waiting `2` s"})
	text := v.Wanted(at(3)).Messages[0].Text
	if !strings.HasSuffix(text, "\n\n```go\nx := 1\n```") || !strings.HasPrefix(text, "**waiting '2' s** · step 1 · 1s") {
		t.Errorf("%q", text)
	}
	for range 40 {
		v.Live(chat.Delta{Run: "r", Step: 1, Attempt: 1, What: chat.DeltaText, Offset: len(v.runs[0].live), Text: strings.Repeat("word ", 30)})
	}
	if n := split.Length(v.Wanted(at(3)).Messages[0].Text); n > 1800 {
		t.Errorf("a status of %d characters", n)
	}
}

// An answer of [SILENT] posts nothing, and takes the status away that was shown meanwhile.
func TestASilentAnswerIsNotShown(t *testing.T) {
	t.Parallel()
	for text, shown := range map[string]bool{" [SILENT]\n": false, "[SILENT] but this": true} {
		var s tape
		s.begin("r", s.prompt("m1"))
		s.add("r", chat.Said{Step: 1, Attempt: 1, Stop: chat.StopEnd, Blocks: chat.TextBlocks(text)})
		s.add("r", chat.RunEnded{Run: "r", Reason: chat.EndDone, Steps: 1})
		w := fold(full(), s.events).Wanted(at(9))
		there := false
		for _, m := range w.Messages {
			there = there || !m.Absent()
		}
		if there != shown || !slices.ContainsFunc(w.Reactions, func(r Reaction) bool { return r.Emoji == SignDone }) {
			t.Errorf("%q shows %+v", text, w)
		}
	}
}

func TestOlderAttemptsAreSilent(t *testing.T) {
	t.Parallel()
	var s tape
	s.begin("r", s.prompt("m1"))
	s.calls("r", "", "c1", "c2")
	s.add("r", chat.ToolRan{Call: "c1", Outcome: chat.Ran})
	s.add("r", chat.Asked{Step: 2, Attempt: 2, Purpose: chat.ForTurn})
	v := fold(full(), s.events)
	v.Live(chat.Delta{Run: "r", Step: 2, Attempt: 1, What: chat.DeltaText, Text: "old"})
	v.Live(chat.Delta{Run: "r", Step: 1, Attempt: 9, What: chat.DeltaText, Text: "older"})
	v.Live(chat.Delta{Run: "r", Step: 2, Attempt: 2, What: chat.DeltaThinking, Text: "thought"})
	v.Live(chat.Progress{Run: "r", Call: "c1", Text: "late"})
	v.Live(chat.Progress{Run: "r", Call: "c2", Text: "10 lines"})
	if text := v.Wanted(at(9)).Messages[0].Text; strings.Contains(text, "old") || strings.Contains(text, "thought") || !strings.HasSuffix(text, "- `bash` ok\n- `bash` 10 lines") {
		t.Errorf("%q", text)
	}
	s.add("r", chat.Asked{Step: 3, Attempt: 1, Purpose: chat.ForCompaction})
	o := full()
	o.Price = func(model string, u chat.Usage) int64 { return int64(u.Output) * 1_000_000 }
	if text := fold(o, s.events).Wanted(at(9)).Messages[0].Text; !strings.HasPrefix(text, "**compacting the conversation** · step 3 · ") || !strings.Contains(text, "$0.01") {
		t.Errorf("%q", text)
	}
}

func TestNotices(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		end  chat.RunEnded
		want string
	}{
		{chat.RunEnded{Reason: chat.EndAborted}, "*Stopped.*"},
		{chat.RunEnded{Reason: chat.EndLimit, Text: "Enough."}, "*Enough.*"},
		{chat.RunEnded{Reason: chat.EndLimit}, "*Stopped at the limit of model calls; the task may be incomplete.*"},
		{chat.RunEnded{Reason: chat.EndBudget, Text: "Today is spent."}, "**Out of budget.** Today is spent."},
		{chat.RunEnded{Reason: chat.EndDenied, Error: &chat.Failure{Message: "no"}}, "**Not allowed.** no"},
	} {
		if got := notice(c.end); got != c.want {
			t.Errorf("%+v: %q", c.end, got)
		}
	}
}

func TestIdle(t *testing.T) {
	t.Parallel()
	var s tape
	idle := func() bool { return fold(full(), s.events).Idle() }
	if !idle() {
		t.Error("nothing has happened")
	}
	p := s.prompt("m1")
	if idle() {
		t.Error("somebody waits")
	}
	s.begin("r", p)
	if idle() {
		t.Error("somebody works")
	}
	if s.end("r", chat.EndDone); !idle() {
		t.Error("all is done")
	}
}

// TestCards: an answered question is edited, a reminder changes nothing, two must say yes.
func TestCards(t *testing.T) {
	t.Parallel()
	var s tape
	s.begin("r", s.prompt("m1"))
	s.add("r", chat.ApprovalAsked{ID: "a", Call: "c", Name: "bash", Actions: []string{"tool:bash:ls"}})
	var shown Shown
	step := func() (acts []Act) {
		for _, a := range Diff(shown, fold(Options{}, s.events).Wanted(at(9))) {
			acts = append(acts, a.Act)
			shown.Done(a)
		}
		return acts
	}
	for _, c := range []struct {
		body chat.Body
		want string
	}{
		{nil, "[create]"},
		{chat.ApprovalNoted{ID: "a", What: chat.Reminder, By: "clock"}, "[]"},
		{chat.ApprovalNoted{ID: "a", What: chat.FirstYes, By: "discord:1"}, "[edit]"},
		{chat.ApprovalAnswered{ID: "a", OK: true, By: "discord:2"}, "[edit]"},
		{chat.ApprovalAnswered{ID: "unknown", OK: true}, "[]"},
	} {
		if c.body != nil {
			s.add("r", c.body)
		}
		if got := fmt.Sprint(step()); got != c.want {
			t.Errorf("%+v: %s, want %s", c.body, got, c.want)
		}
	}
	if card := shown.Messages["ask/a"].Card; card.Open || !card.OK || card.FirstYes != "discord:1" || card.By != "discord:2" {
		t.Errorf("%+v", card)
	}
}

func TestElapsed(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]string{0: "0s", -time.Second: "0s", 59 * time.Second: "59s", 64 * time.Second: "1m 00s", 65 * time.Second: "1m 05s", 600 * time.Second: "10m", 3600 * time.Second: "1h 00m", 2*time.Hour + 3*time.Minute: "2h 03m"} {
		if got := elapsed(d); got != want {
			t.Errorf("%s: %s", d, got)
		}
	}
}

func TestMoney(t *testing.T) {
	t.Parallel()
	for nanos, want := range map[int64]string{0: "", 1: "< $0.0001", 42_100_000: "$0.042", 1_500_000_000: "$1.50"} {
		if got := money(nanos); got != want {
			t.Errorf("%d: %s", nanos, got)
		}
	}
}

// viewOf is a view of a thread on the platform whose ids the tests use.
func viewOf(o Options) *View {
	o.Platform = "discord"
	return New(o)
}

// The live status said only that a call failed, not why.
func TestStatusSaysWhyACallFailed(t *testing.T) {
	t.Parallel()
	c := call{name: "bash", label: "bash make", done: true, failed: true, outcome: chat.Ran, result: "no rule to make target\nmore"}
	if got := c.line(start); got != "- `bash make` failed: no rule to make target" {
		t.Error(got)
	}
}

// What takes long shows for how long it has run, as every edit of the status tells it anew.
func TestRunningCallsTellTheirTime(t *testing.T) {
	t.Parallel()
	c := call{name: "bash", label: "bash make", began: start}
	for after, want := range map[int]string{0: "- `bash make` …", 12: "- `bash make` … 12s", 90: "- `bash make` … 1m 30s"} {
		if got := c.line(at(after)); got != want {
			t.Errorf("after %d s it says %q, not %q", after, got, want)
		}
	}
	r := run{calls: []*call{{id: "c1", name: "bash"}}}
	r.apply(chat.Event{At: at(3), Body: chat.ToolBegan{Call: "c1"}}, full())
	if got := r.calls[0].line(at(8)); got != "- `bash` … 5s" {
		t.Errorf("%q", got)
	}
}
