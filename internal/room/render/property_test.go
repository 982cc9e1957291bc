package render

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"chorus/internal/chat"
	"chorus/internal/room/split"

	"pgregory.net/rapid"
)

// history draws a journal in which everything has come to its end.
func history(t *rapid.T) []chat.Event {
	var s tape
	var waiting []int64
	words := rapid.SampledFrom([]string{"", "short", strings.Repeat("long words ", 400), "```go\n" + strings.Repeat("code()\n", 400), strings.Repeat("endless ", 1300)})
	for i := range rapid.IntRange(1, 4).Draw(t, "runs") {
		for range rapid.IntRange(1, 3).Draw(t, "prompts") {
			p := s.prompt(fmt.Sprintf("m%d", len(s.events)))
			switch rapid.IntRange(0, 5).Draw(t, "fate") {
			case 0:
				s.add("", chat.Refused{Seq: p, Why: "full"})
			case 1:
				s.add("", chat.Deleted{Seq: p})
			default:
				waiting = append(waiting, p)
			}
		}
		run := fmt.Sprintf("run%d", i)
		s.begin(run, waiting...)
		waiting = nil
		for step := range rapid.IntRange(0, 4).Draw(t, "steps") {
			call := fmt.Sprintf("%s-%d", run, step)
			switch rapid.IntRange(0, 5).Draw(t, "step") {
			case 0:
				s.add(run, chat.Said{Step: step, Stop: chat.StopError, Error: &chat.Failure{Message: "again"}})
			case 1:
				s.calls(run, words.Draw(t, "preamble"), call)
				s.add(run, chat.ToolRan{Call: call, Outcome: chat.Ran, Blocks: chat.TextBlocks("out")})
			case 2:
				s.calls(run, "", call)
				s.add(run, chat.ApprovalAsked{ID: "a" + call, Call: call, Name: "bash"})
				if rapid.Bool().Draw(t, "answered") {
					s.add(run, chat.ApprovalAnswered{ID: "a" + call, Call: call, OK: true, By: "discord:1"})
				}
			case 3:
				q := s.prompt(fmt.Sprintf("m%d", len(s.events)))
				s.add(run, chat.Took{Run: run, Step: step, Seqs: []int64{q}})
			case 4:
				s.add(run, chat.Asked{Step: step, Attempt: 1, Purpose: chat.ForTurn})
			default:
				s.says(run, words.Draw(t, "words"), rapid.SampledFrom([]chat.Stop{chat.StopEnd, chat.StopLength, chat.StopRefused}).Draw(t, "stop"))
			}
		}
		s.end(run, rapid.SampledFrom([]chat.Reason{chat.EndDone, chat.EndDone, chat.EndAborted, chat.EndFailed, chat.EndLimit, chat.EndBudget, chat.EndDenied}).Draw(t, "reason"))
	}
	for _, p := range waiting {
		s.add("", chat.Refused{Seq: p, Why: "stopped"})
	}
	return s.events
}

func drawOptions(t *rapid.T) Options {
	b := func(name string) bool { return rapid.Bool().Draw(t, name) }
	return Options{Status: b("status"), Apart: b("apart"), Reactions: b("reactions"), Footer: b("footer"), Preambles: b("preambles"), Thinking: b("thinking"), ToolOutput: b("output"), Name: "Claude"}
}

// TestTheEndIsAlwaysTheSame: whoever reads, however often it dies on the way, whatever
// pieces it sees or misses, in the end the platform shows the same.
func TestTheEndIsAlwaysTheSame(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		events, o := history(t), drawOptions(t)
		want := fold(o, events).Wanted(at(1000))

		var shown Shown
		v := viewOf(o)
		for i, ev := range events {
			switch rapid.IntRange(0, 5).Draw(t, "what happens") {
			case 0: // a crash: the journal is folded again
				v = fold(o, events[:i])
			case 1: // pieces that may be of anything
				v.Live(chat.Delta{Run: ev.Run, Step: rapid.IntRange(0, 3).Draw(t, "step"), Attempt: 1, What: chat.DeltaText, Offset: rapid.IntRange(0, 9).Draw(t, "offset"), Text: "live ```"})
				v.Live(chat.Progress{Run: ev.Run, Text: "progress"})
			case 2: // the same again
				if i > 0 {
					v.Apply(events[i-1])
				}
			}
			v.Apply(ev)
			if rapid.Bool().Draw(t, "shows") {
				catchUp(t, &shown, v.Wanted(at(i)), rapid.IntRange(0, 9).Draw(t, "as far as"))
			}
		}
		catchUp(t, &shown, v.Wanted(at(1000)), 1<<30)
		check(t, o, events, want, shown)
		if rest := Diff(shown, fold(o, events).Wanted(at(2000))); len(rest) != 0 {
			t.Fatalf("after the end there is still something to do: %+v", rest)
		}
	})
}

// catchUp does the first few actions, as a sender does that is then cut off.
func catchUp(t *rapid.T, shown *Shown, want Wanted, most int) {
	for i, a := range Diff(*shown, want) {
		if i >= most {
			return
		}
		if n := split.Length(a.Message.Text); n > 2000 {
			t.Fatalf("%s of %d characters", a.Act, n)
		}
		shown.Done(a)
	}
}

func check(t *rapid.T, o Options, events []chat.Event, want Wanted, shown Shown) {
	keys := map[string]bool{}
	for _, m := range want.Messages {
		if keys[m.Key] || !m.Final {
			t.Fatalf("%s stands twice or is not final", m.Key)
		}
		keys[m.Key] = true
		got, stands := shown.Messages[m.Key]
		if stands == m.Absent() || stands && !same(got, m) {
			t.Fatalf("%s shows %+v\nwant %+v", m.Key, got, m)
		}
		if m.Card != nil && m.Card.Open {
			t.Fatalf("%s still asks", m.Key)
		}
	}
	if len(shown.Messages) > len(keys) {
		t.Fatalf("something is left over: %d of %d", len(shown.Messages), len(keys))
	}
	per, gone := map[string]int{}, takenBack(events)
	for _, r := range shown.Reactions {
		if gone[r.On] {
			continue // its signs went with it
		}
		if r.Emoji == SignAccepted || r.Emoji == SignWorking {
			t.Fatalf("%+v is not terminal", r)
		}
		if r.Emoji != SignRefused {
			per[r.On]++
		}
	}
	for _, ev := range events {
		switch ev.Body.(type) {
		case chat.Received:
			if o.Reactions && !gone[ev.PlatformID] && per[ev.PlatformID] != 1 {
				t.Fatalf("%s has %d terminal signs", ev.PlatformID, per[ev.PlatformID])
			}
		case chat.RunEnded:
			if !keys[ev.Run+"/0"] {
				t.Fatalf("run %s has no answer", ev.Run)
			}
		}
	}
	if want.Typing {
		t.Fatal("somebody still types")
	}
}

// takenBack are the ids of messages that were deleted.
func takenBack(events []chat.Event) map[string]bool {
	out := map[string]bool{}
	for _, ev := range events {
		if d, ok := ev.Body.(chat.Deleted); ok {
			out[events[d.Seq-1].PlatformID] = true
		}
	}
	return out
}

// TestForgetting changes nothing of what is still to come.
func TestForgetting(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		events, o := history(t), drawOptions(t)
		one, other := viewOf(o), viewOf(o)
		var a, b Shown
		for i, ev := range events {
			one.Apply(ev)
			other.Apply(ev)
			for _, act := range Diff(a, one.Wanted(at(i))) {
				a.Done(act)
			}
			for _, act := range Diff(b, other.Wanted(at(i))) {
				b.Done(act)
			}
			if _, ended := ev.Body.(chat.RunEnded); ended {
				other.Forget()
			}
		}
		if !reflect.DeepEqual(a.Messages, b.Messages) || len(a.Reactions) != len(b.Reactions) {
			t.Fatalf("%d and %d messages, %d and %d signs", len(a.Messages), len(b.Messages), len(a.Reactions), len(b.Reactions))
		}
		other.Forget()
		if len(other.runs)+len(other.cards)+len(other.order)+len(other.prompts) != 0 {
			t.Fatalf("%+v is left", other)
		}
	})
}
