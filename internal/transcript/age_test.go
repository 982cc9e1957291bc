package transcript

import (
	"testing"
	"time"

	"chorus/internal/chat"
)

// A message of last week was in every request of a conversation, however old it was: only a
// clear took it out.
func TestOldMessagesLeaveWhenARunBegins(t *testing.T) {
	t.Parallel()
	day := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	l := New(nil)
	seq, now := int64(0), day
	tell := func(bodies ...chat.Body) {
		t.Helper()
		for _, body := range bodies {
			seq++
			if err := l.Apply(chat.Event{Seq: seq, At: now, Body: body}); err != nil {
				t.Fatal(err)
			}
		}
	}
	settings := chat.Settings{Window: chat.Window{AgeSeconds: 86400}}
	shown := func() string { return (&script{T: t, log: l}).shown() }
	begin := func(text string) {
		t.Helper()
		tell(chat.Received{Prompt: true, Blocks: chat.TextBlocks(text)})
		tell(chat.RunStarted{Run: text, Renderer: Renderer, Settings: settings}, chat.Took{Seqs: []int64{seq}})
		if roll, due := l.RollDue(settings, now); due {
			tell(roll)
		}
	}
	answer := func(text string) {
		t.Helper()
		tell(chat.Asked{Sees: seq}, chat.Said{Blocks: chat.TextBlocks(text)}, chat.RunEnded{Run: text, Reason: chat.EndDone})
	}

	begin("one")
	answer("first")
	now = day.Add(2 * time.Hour)
	tell(chat.Received{Blocks: chat.TextBlocks("heard")}) // nobody asked for an answer
	now = day.Add(23 * time.Hour)
	begin("two")
	if got := shown(); got != "one|first|heard|two" {
		t.Errorf("within the window: %s", got)
	}
	// While it works nothing leaves, even when it takes two days.
	now = day.Add(71 * time.Hour)
	tell(chat.Asked{Sees: seq})
	if roll, due := l.RollDue(settings, now); due {
		t.Errorf("in the middle of a run: %+v", roll)
	}
	tell(chat.Said{Blocks: chat.TextBlocks("second")}, chat.RunEnded{Run: "two", Reason: chat.EndDone})
	data, err := l.Snapshot() // a restart does not change how old things are
	if err != nil {
		t.Fatal(err)
	}
	if l, err = Restore(data, nil); err != nil {
		t.Fatal(err)
	}
	begin("three")
	if got := shown(); got != textEarlier+"|second|three" {
		t.Errorf("after three days: %s", got)
	}
	answer("third")
	// A prompt that waited for days is as young as the run that takes it.
	now = now.Add(time.Hour)
	tell(chat.Received{Prompt: true, Blocks: chat.TextBlocks("four")})
	waited := seq
	now = now.Add(48 * time.Hour)
	tell(chat.RunStarted{Run: "four", Renderer: Renderer, Settings: settings}, chat.Took{Seqs: []int64{waited}})
	roll, due := l.RollDue(settings, now)
	if !due || roll.Because != "3 messages are older than 24h" {
		t.Errorf("%v %+v", due, roll)
	}
	tell(roll)
	if got := shown(); got != "four" {
		t.Errorf("a prompt that waited: %s", got)
	}
}
