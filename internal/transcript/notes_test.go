package transcript

import (
	"testing"

	"chorus/internal/chat"
)

// After a cut every note is to be shown again, but for one that has not been shown at all yet.
func TestNotesAfterACut(t *testing.T) {
	t.Parallel()
	s := &script{T: t, log: New(nil)}
	s.tell(chat.Received{Blocks: chat.TextBlocks("hello"), Prompt: true}, chat.RunStarted{Run: "1", Renderer: Renderer},
		chat.Noted{What: "date", Text: "Monday"}, chat.Took{Seqs: []int64{1}}, chat.Asked{Sees: 4}, chat.Said{Blocks: chat.TextBlocks("hi")},
		chat.Noted{What: "memory", Text: "likes tea"}, chat.Compacted{UpTo: 3, Summary: "they greeted"})
	for range 2 {
		if s.log.Note("date") != "" || s.log.Note("memory") != "likes tea" {
			t.Fatalf("date %q, memory %q", s.log.Note("date"), s.log.Note("memory"))
		}
		data, err := s.log.Snapshot()
		if err != nil {
			t.Fatal(err)
		}
		if s.log, err = Restore(data, nil); err != nil {
			t.Fatal(err)
		}
	}
	s.tell(chat.Asked{Sees: s.seq}, chat.Rolled{KeepFrom: 4})
	if s.log.Note("memory") != "" {
		t.Fatal("a note that was placed before the cut counts as shown")
	}
}

// A difference counts as what is known after it, and after a cut the whole must be said again though the difference is
// still to be shown.
func TestNotedDifferences(t *testing.T) {
	t.Parallel()
	s := &script{T: t, log: New(nil)}
	s.tell(chat.Received{Blocks: chat.TextBlocks("hello"), Prompt: true}, chat.RunStarted{Run: "1", Renderer: Renderer},
		chat.Noted{What: "memory", Text: "likes tea"}, chat.Took{Seqs: []int64{1}}, chat.Asked{Sees: 4}, chat.Said{Blocks: chat.TextBlocks("hi")},
		chat.Noted{What: "memory", Text: "+ and rain", Whole: "likes tea and rain"})
	if got := s.log.Note("memory"); got != "likes tea and rain" {
		t.Errorf("known is %q", got)
	}
	s.tell(chat.Compacted{UpTo: 3, Summary: "they greeted"})
	if got := s.log.Note("memory"); got != "" {
		t.Errorf("after the cut %q counts as shown", got)
	}
}
