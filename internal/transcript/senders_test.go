package transcript

import (
	"reflect"
	"testing"

	"pgregory.net/rapid"

	"chorus/internal/chat"
)

var (
	ada   = chat.Principal{Kind: chat.LocalUser, ID: "ada", Roles: []string{"owner"}}
	boss  = chat.Principal{Kind: "discord", ID: "1", Roles: []string{"admin"}}
	guest = chat.Principal{Kind: "discord", ID: "2"}
)

// folder writes a thread's events down and folds them.
type folder struct {
	fatal func(...any)
	log   *Log
	all   []chat.Event
}

func (s *folder) tell(body chat.Body) int64 {
	ev := chat.Event{Thread: "cli:a:b", Seq: int64(len(s.all) + 1), Body: body}
	s.all = append(s.all, ev)
	if err := s.log.Apply(ev); err != nil {
		s.fatal(err)
	}
	return ev.Seq
}

func (s *folder) senders() []string {
	var out []string
	if run := s.log.Run(); run != nil {
		for _, who := range run.Senders {
			out = append(out, who.Principal.String())
		}
	}
	return out
}

func TestSendersOfARun(t *testing.T) {
	t.Parallel()
	s := &folder{fatal: t.Fatal, log: New(nil)}
	want := func(when string, who ...string) {
		t.Helper()
		if got := s.senders(); !reflect.DeepEqual(got, who) {
			t.Errorf("%s: %v, want %v", when, got, who)
		}
	}
	words := chat.TextBlocks("x")
	first := s.tell(chat.Received{Principal: ada, Prompt: true, Blocks: words})
	queued := s.tell(chat.Received{Principal: guest, Prompt: true, Blocks: words})
	s.tell(chat.Received{Principal: guest, Blocks: words})
	s.tell(chat.RunStarted{Run: "r", Principal: ada})
	s.tell(chat.Took{Run: "r", Seqs: []int64{first}})
	want("what waits or was only heard does not count", "local:ada")
	steer := s.tell(chat.Steered{Principal: boss, Blocks: words})
	want("nor do words before they are taken", "local:ada")
	s.tell(chat.Took{Run: "r", Seqs: []int64{steer}})
	want("a steer", "local:ada", "discord:1")
	s.tell(chat.Took{Run: "r", Seqs: []int64{queued, 99}})
	want("merged", "local:ada", "discord:1", "discord:2")
	demoted := boss
	demoted.Roles = nil
	for range 2 {
		s.tell(chat.Took{Run: "r", Seqs: []int64{s.tell(chat.Steered{Principal: demoted, Blocks: words})}})
	}
	want("without the role, twice", "local:ada", "discord:1", "discord:2", "discord:1")
	yes := s.tell(chat.Steered{Principal: ada, Blocks: words, Terms: chat.Terms{Yes: true}})
	s.tell(chat.Took{Run: "r", Seqs: []int64{yes}})
	want("on other terms", "local:ada", "discord:1", "discord:2", "discord:1", "local:ada")
	gone := s.tell(chat.Steered{Principal: guest, Blocks: words})
	s.tell(chat.RunEnded{Run: "r"})
	want("ended")
	s.tell(chat.RunStarted{Run: "r2", Principal: guest})
	s.tell(chat.Took{Run: "r2", Seqs: []int64{gone}})
	want("the next run", "discord:2")
}

// A log that is restored anywhere and folded on knows the same senders, and whoever has
// been heard by a run stays heard.
func TestSendersSurviveARestart(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s := &folder{fatal: t.Fatal, log: New(nil)}
		var open []int64
		var snap []byte
		run, before := "", 0
		for range rapid.IntRange(1, 30).Draw(t, "events") {
			who := rapid.SampledFrom([]chat.Principal{ada, boss, guest}).Draw(t, "who")
			terms := chat.Terms{Yes: rapid.Bool().Draw(t, "yes")}
			switch what := rapid.SampledFrom([]string{"say", "steer", "take", "start", "end", "save"}).Draw(t, "what"); {
			case what == "say":
				open = append(open, s.tell(chat.Received{Principal: who, Prompt: true, Blocks: chat.TextBlocks("x"), Terms: terms}))
			case what == "steer":
				open = append(open, s.tell(chat.Steered{Principal: who, Blocks: chat.TextBlocks("x"), Terms: terms}))
			case what == "start" && run == "":
				run, before = "r", 0
				s.tell(chat.RunStarted{Run: run, Principal: who})
			case what == "take" && run != "" && len(open) > 0:
				s.tell(chat.Took{Run: run, Seqs: open[:1]})
				open = open[1:]
			case what == "end" && run != "":
				s.tell(chat.RunEnded{Run: run})
				run = ""
			case what == "save":
				var err error
				if snap, err = s.log.Snapshot(); err != nil {
					t.Fatal(err)
				}
			}
			if now := len(s.senders()); run != "" && now < before {
				t.Fatalf("%d senders after %d", now, before)
			} else {
				before = now
			}
		}
		again := New(nil)
		if snap != nil {
			var err error
			if again, err = Restore(snap, nil); err != nil {
				t.Fatal(err)
			}
		}
		for _, ev := range s.all[again.Seq():] {
			if err := again.Apply(ev); err != nil {
				t.Fatal(err)
			}
		}
		if got, want := again.Run(), s.log.Run(); (got == nil) != (want == nil) || got != nil && !reflect.DeepEqual(got.Senders, want.Senders) {
			t.Fatalf("%+v\n%+v", got, want)
		}
	})
}
