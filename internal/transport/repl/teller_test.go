package repl

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"chorus/internal/chat"
)

// Whatever pieces are dropped, doubled or cut, the text is shown exactly once.
func TestTextIsToldExactlyOnce(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		tell := newPresenter(func(name string, _ []byte) string { return name })
		var seq int64
		var shown strings.Builder
		var voids, complete int
		feed := func(it Item) {
			for _, n := range tell.tell(it) {
				switch n := n.(type) {
				case wrote:
					shown.WriteString(n.text)
				case wroteVoid:
					voids++
					shown.Reset()
				case wroteAll:
					complete++
					if shown.String() != n.text {
						t.Fatalf("shown %q of %q", shown.String(), n.text)
					}
					shown.Reset()
				}
			}
		}
		event := func(b chat.Body) {
			seq++
			feed(Item{Event: &chat.Event{Seq: seq, Run: "r1", Body: b}})
		}
		event(chat.RunStarted{Run: "r1"})
		steps := rapid.IntRange(1, 4).Draw(t, "steps")
		for step := 1; step <= steps; step++ {
			attempts := rapid.IntRange(1, 3).Draw(t, "attempts")
			for attempt := 1; attempt <= attempts; attempt++ {
				if rapid.Bool().Draw(t, "asked") {
					event(chat.Asked{Step: step, Attempt: attempt, Purpose: chat.ForTurn})
				}
				text := rapid.StringOfN(rapid.RuneFrom([]rune("aé漢\n* ")), 0, 30, -1).Draw(t, "text")
				for range rapid.IntRange(0, 6).Draw(t, "deltas") {
					from := rapid.IntRange(0, len(text)).Draw(t, "from")
					to := rapid.IntRange(from, len(text)).Draw(t, "to")
					feed(Item{Live: chat.Delta{Run: "r1", Step: step, Attempt: attempt, What: chat.DeltaText, Offset: from, Text: text[from:to]}})
				}
				switch {
				case attempt == attempts:
					event(chat.Said{Step: step, Attempt: attempt, Blocks: chat.TextBlocks(text), Stop: chat.StopEnd})
				case rapid.Bool().Draw(t, "lost"): // a crash: no Said at all
				default:
					event(chat.Said{Step: step, Attempt: attempt, Blocks: chat.TextBlocks(text), Error: &chat.Failure{Kind: "network"}})
				}
			}
			// Late pieces of what is over mean nothing.
			feed(Item{Live: chat.Delta{Run: "r1", Step: step, Attempt: 1, What: chat.DeltaText, Offset: 0, Text: "late"}})
		}
		event(chat.RunEnded{Run: "r1", Reason: chat.EndDone})
		feed(Item{Live: chat.Delta{Run: "r1", Step: 9, Attempt: 1, What: chat.DeltaText, Offset: 0, Text: "late"}})
		if complete != steps || shown.Len() != 0 || tell.run != "" {
			t.Fatalf("%d messages of %d, left over %q, run %q", complete, steps, shown.String(), tell.run)
		}
	})
}

// A piece may come after the run that it belongs to has ended, and another one after that.
func TestLatePiecesOpenNoRun(t *testing.T) {
	t.Parallel()
	tell := newPresenter(func(name string, _ []byte) string { return name })
	for seq, run := range []string{"r1", "r1", "r2", "r2"} {
		e := chat.Event{Seq: int64(seq + 1), Run: run, Body: chat.RunStarted{Run: run}}
		if seq%2 == 1 {
			e.Body = chat.RunEnded{Run: run, Reason: chat.EndDone}
		}
		tell.tell(Item{Event: &e})
	}
	for _, run := range []string{"r1", "r2"} {
		late := chat.Delta{Run: run, Step: 9, Attempt: 1, What: chat.DeltaText, Text: "late"}
		if n := tell.tell(Item{Live: late}); len(n) > 0 || tell.run != "" {
			t.Errorf("a piece of %s, which is over: %v, run %q", run, n, tell.run)
		}
	}
}

func TestEventsSeenTwiceAreToldOnce(t *testing.T) {
	t.Parallel()
	tell := newPresenter(func(name string, _ []byte) string { return name })
	it := Item{Event: &chat.Event{Seq: 4, Body: chat.Refused{Seq: 3, Why: "full"}}}
	if n := len(tell.tell(it)); n != 1 {
		t.Fatalf("%d news", n)
	}
	if n := len(tell.tell(it)); n != 0 {
		t.Fatalf("%d news the second time", n)
	}
}

func TestWhatIsGoingOn(t *testing.T) {
	t.Parallel()
	f := newFake()
	tell := newPresenter(f.Label)
	steps := []struct {
		put  any
		want string
	}{
		{chat.RunStarted{Run: "r1"}, "waiting for the model"},
		{chat.Asked{Step: 1, Attempt: 1, Purpose: chat.ForCompaction}, "summarizing the conversation"},
		{delta(1, 1, 0, "a summary"), "summarizing the conversation"},
		{chat.Compacted{Step: 1, Attempt: 1}, "waiting for the model"},
		{asking(2, 1), "waiting for the model"},
		{chat.Delta{Run: "r1", Step: 2, Attempt: 1, What: chat.DeltaThinking, Text: "hm"}, "thinking"},
		{delta(2, 1, 0, "So"), "writing"},
		{says(2, 1, "So.", use("c1", "read", ""), use("c2", "bash", "")), "→ read"},
		{chat.ToolBegan{Call: "c2", Name: "bash"}, "→ bash"},
		{chat.Progress{Run: "r1", Call: "c2", Text: "10%\r20%\x1b[K\r\n"}, "→ bash"},
		{ran("c2", "bash", 1), "→ read"},
		{chat.ApprovalAsked{ID: "a", Call: "c1"}, "waiting for an answer: read"},
		{chat.ApprovalAnswered{ID: "a", Call: "c1", OK: true}, "→ read"},
		{ran("c1", "read", 1), "waiting for the model"},
		{chat.Said{Step: 3, Attempt: 1, Error: &chat.Failure{Kind: "network", RetryMS: 60_000}}, "waiting before the next attempt"},
		{asking(3, 2), "waiting for the model"},
		{ends(chat.EndDone), ""},
	}
	var seq int64
	for i, step := range steps {
		it := Item{}
		switch v := step.put.(type) {
		case chat.Body:
			seq++
			it.Event = &chat.Event{Seq: seq, Run: "r1", Body: v}
		case chat.Live:
			it.Live = v
		}
		tell.tell(it)
		if got, _ := tell.doing(); got != step.want {
			t.Errorf("step %d (%T): doing %q, want %q", i, step.put, got, step.want)
		}
		if i == 9 && strings.Join(tell.output(), "|") != "20%" {
			t.Errorf("output %q", tell.output())
		}
	}
}
