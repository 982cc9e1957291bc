package render

import (
	"strings"
	"testing"
	"time"

	"chorus/internal/chat"
)

func TestTell(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 15, 12, 0, 0, 0, time.UTC)
	var events []chat.Event
	tell := func(after time.Duration, body chat.Body) {
		at = at.Add(after)
		events = append(events, chat.Event{Seq: int64(len(events) + 1), At: at, Body: body})
	}
	use := func(id, name, args string) chat.ToolUse {
		return chat.ToolUse{ID: id, Name: name, Args: []byte(args)}
	}
	tell(0, chat.RunStarted{Run: "r1", Model: "demo/script", Settings: chat.Settings{Profile: "standard", ContextWindow: 1000}, Head: "h"})
	tell(0, chat.Took{Run: "r1", Seqs: []int64{7}})
	tell(0, chat.Noted{What: "date"})
	tell(0, chat.Asked{Step: 1, Attempt: 1, Model: "demo/script", Purpose: chat.ForTurn})
	tell(time.Second, chat.Said{Step: 1, Blocks: chat.Blocks{use("a", "read", "x"), use("b", "bash", "y")}, Usage: chat.Usage{Input: 10, Output: 5}})
	tell(50*time.Millisecond, chat.ToolRan{Call: "a", Name: "read", Outcome: chat.Ran, TookMS: 40, Read: []string{"a.go"}})
	tell(0, chat.ApprovalAsked{ID: "q", Call: "b", Name: "bash"})
	if got := StepsOf(events, nil).Doing(); got != "waiting for a yes to bash" {
		t.Errorf("it is %q", got)
	}
	tell(90*time.Second, chat.ApprovalAnswered{ID: "q", Call: "b", OK: true})
	tell(0, chat.ToolBegan{Call: "b", Name: "bash"})
	tell(1500*time.Millisecond, chat.ToolRan{Call: "b", Name: "bash", Outcome: chat.Ran, Failed: true, Changed: []string{"b.go"}})
	tell(0, chat.Asked{Step: 2, Attempt: 1, Model: "demo/script", Purpose: chat.ForTurn})
	tell(time.Second, chat.Asked{Step: 2, Attempt: 2, Model: "demo/script", Purpose: chat.ForTurn})
	if got := StepsOf(events, nil); got.Doing() != "waiting for the model" || got.Step != 2 || got.End != nil {
		t.Errorf("it is %q in step %d", got.Doing(), got.Step)
	}
	tell(time.Second, chat.Said{Step: 2, Blocks: chat.TextBlocks("done"), Usage: chat.Usage{Input: 20, CacheRead: 10, Output: 5}})
	tell(0, chat.RunEnded{Run: "r1", Reason: chat.EndDone, Steps: 2, Usage: chat.Usage{Input: 30, CacheRead: 10, Output: 10}})

	got := StepsOf(events, func(name string, args []byte) string { return name + " " + string(args) })
	want := strings.Join([]string{
		"1. `the model` wanted 2 calls, 1 s", "2. `read x` ok, 40 ms", "3. `a yes to bash y` yes, 1m 30s", "4. `bash y` failed, 1.5 s",
		"5. `the model` lost, no time", "6. `the model` answered, 1 s",
	}, "\n")
	if lines := strings.Join(got.Lines(at), "\n"); lines != want {
		t.Errorf("steps:\n%s\nwant:\n%s", lines, want)
	}
	if got.Doing() != "" || got.End == nil || got.Usage.Input != 30 || got.Profile != "standard" || got.Window != 1000 ||
		len(got.Read) != 1 || len(got.Changed) != 1 || got.Prompts[0] != 7 || got.Noted[0] != "date" {
		t.Errorf("told: %+v", got)
	}
}

// A request that was open when the process died is lost, also the very first.
func TestTellOfADeath(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 15, 12, 0, 0, 0, time.UTC)
	got := StepsOf([]chat.Event{
		{Seq: 1, At: at, Body: chat.Asked{Step: 1, Attempt: 1, Purpose: chat.ForTurn}},
		{Seq: 2, At: at, Body: chat.Asked{Step: 1, Attempt: 2, Purpose: chat.ForTurn}},
	}, nil)
	if lines := strings.Join(got.Lines(at), "\n"); lines != "1. `the model` lost, no time\n2. `the model` still on, no time" {
		t.Errorf("steps:\n%s", lines)
	}
}

// Small print is put under an answer only where somebody wants it, and in short where it says something.
func TestFooterIsWanted(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		o    Options
		cost int64
		want string
	}{
		"off":             {Options{}, 42_000_000, "the answer"},
		"full":            {Options{Footer: true}, 0, "the answer\n*1 step · 3 in / 2 out · 1.0s*"},
		"full and dear":   {Options{Footer: true}, 42_000_000, "the answer\n*1 step · 3 in / 2 out · $0.042 · 1.0s*"},
		"short":           {Options{Footer: true, Brief: true}, 42_000_000, "the answer\n*$0.042 · 1.0s*"},
		"short and cheap": {Options{Footer: true, Brief: true}, 0, "the answer"},
	} {
		at := time.Date(2026, 11, 15, 12, 0, 0, 0, time.UTC)
		v := viewOf(c.o)
		v.Apply(chat.Event{Seq: 1, At: at, Body: chat.RunStarted{Run: "r"}})
		v.Apply(chat.Event{Seq: 2, At: at, Run: "r", Body: chat.Said{Blocks: chat.TextBlocks("the answer")}})
		v.Apply(chat.Event{Seq: 3, At: at.Add(time.Second), Run: "r", Body: chat.RunEnded{Run: "r", Reason: chat.EndDone, Steps: 1, Usage: chat.Usage{Input: 3, Output: 2}, Cost: c.cost}})
		if got := v.Wanted(at).Messages[0].Text; got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}
