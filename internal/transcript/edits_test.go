package transcript

import (
	"encoding/json"
	"strings"
	"testing"

	"chorus/internal/chat"
	"chorus/internal/model"
)

// script folds events and shows what the next request has.
type script struct {
	*testing.T
	log *Log
	seq int64
}

func (s *script) tell(bodies ...chat.Body) {
	s.Helper()
	for _, body := range bodies {
		s.seq++
		if err := s.log.Apply(chat.Event{Seq: s.seq, Body: body}); err != nil {
			s.Fatal(err)
		}
	}
}

func (s *script) shown() string {
	s.Helper()
	req, err := s.log.Request(&model.Head{}, s.log.Seq())
	if err != nil {
		s.Fatal(err)
	}
	var out []string
	for _, m := range req.Messages {
		out = append(out, m.Blocks.Text())
	}
	return strings.Join(out, "|")
}

// asked puts words into the window that the model has seen.
func asked(t *testing.T, renderer string) *script {
	s := &script{T: t, log: New(nil)}
	s.tell(chat.Received{From: chat.Participant{Name: "Bob"}, Blocks: chat.TextBlocks("my password is hunter2")},
		chat.Received{From: chat.Participant{Name: "Ada"}, Blocks: chat.TextBlocks("first"), Prompt: true},
		chat.RunStarted{Run: "1", Renderer: renderer}, chat.Took{Seqs: []int64{2}}, chat.Asked{Sees: 4}, chat.Said{Blocks: chat.TextBlocks("ok")})
	return s
}

// Deleted, hidden and edited-away words went on to the model until the next roll.
func TestWordsTakenAwayAreGoneFromTheNextRequest(t *testing.T) {
	t.Parallel()
	face := chat.Reacted{Seq: 1, Emoji: "\U0001FAE5", Added: true}
	unface := face
	unface.Added = false
	end := chat.RunEnded{Run: "1"}
	for name, c := range map[string]struct {
		bodies []chat.Body
		want   string
	}{
		"deleted":                  {[]chat.Body{end, chat.Deleted{Seq: 1}}, "first|ok"},
		"an answer deleted":        {[]chat.Body{end, chat.Deleted{Seq: 6}}, "my password is hunter2|first"},
		"hidden":                   {[]chat.Body{end, face}, "first|ok"},
		"hidden and shown again":   {[]chat.Body{end, face, unface}, "my password is hunter2|first|ok"},
		"hidden, then deleted":     {[]chat.Body{end, face, chat.Deleted{Seq: 1}, unface}, "first|ok"},
		"edited to a dot":          {[]chat.Body{end, chat.Edited{Seq: 1, Blocks: chat.TextBlocks(".x")}}, "first|ok"},
		"edited away":              {[]chat.Body{end, chat.Edited{Seq: 1, Blocks: chat.TextBlocks("my password")}}, "my password|first|ok|<note about=\"edit\">\nBob changed an earlier message; it is shown as it reads now.\n</note>"},
		"added, then deleted":      {[]chat.Body{end, chat.Edited{Seq: 1, Blocks: chat.TextBlocks("my password is hunter2 or 3")}, chat.Deleted{Seq: 1}}, "first|ok"},
		"added, shown and deleted": {[]chat.Body{chat.Edited{Seq: 1, Blocks: chat.TextBlocks("my password is hunter2 or 3")}, chat.Asked{Sees: 7}, chat.Said{Blocks: chat.TextBlocks("hm")}, chat.Deleted{Seq: 1}}, "first|ok|hm"},
	} {
		s := asked(t, Renderer)
		s.tell(c.bodies...)
		if got := s.shown(); got != c.want {
			t.Errorf("%s: the model sees %s", name, got)
		}
		data, err := s.log.Snapshot()
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(data), "hunter2") && !strings.Contains(c.want, "hunter2") && !strings.HasPrefix(name, "hidden") {
			t.Errorf("%s: the snapshot still has it: %s", name, data)
		}
	}
}

// A run whose prompt is deleted while it is asked again still has a request that can be sent.
func TestTheLastWordsAreDeletedInARun(t *testing.T) {
	t.Parallel()
	s := asked(t, Renderer)
	s.tell(chat.RunEnded{Run: "1"}, chat.Received{Blocks: chat.TextBlocks("second"), Prompt: true}, chat.RunStarted{Run: "2", Renderer: Renderer},
		chat.Took{Seqs: []int64{8}}, chat.Asked{Sees: 10}, chat.Deleted{Seq: 8})
	if got := s.shown(); got != "my password is hunter2|first|ok|"+textDeleted {
		t.Error(got)
	}
}

// What was only added to words that the model has seen is told by a note, so that the cache
// serves; so were all changes, until the next roll, where the first renderer made the requests.
func TestEditsThatWaitForTheRoll(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ renderer, text string }{{Renderer, "first, mended at last"}, {firstRenderer, "second"}} {
		s := &script{T: t, log: New(nil)}
		s.tell(chat.Received{From: chat.Participant{Name: "Ada"}, Blocks: chat.TextBlocks("first"), Prompt: true},
			chat.Edited{Seq: 1, Blocks: chat.TextBlocks("first, mended")}, chat.RunStarted{Run: "1", Renderer: c.renderer}, chat.Took{Seqs: []int64{1}},
			chat.Asked{Sees: 4}, chat.Said{Blocks: chat.TextBlocks("ok")}, chat.Edited{Seq: 1, Blocks: chat.TextBlocks(c.text)})
		if got := s.shown(); !strings.HasPrefix(got, "first, mended|ok|<note") || !strings.Contains(got, c.text) {
			t.Fatal(got)
		}
		s.tell(chat.Asked{Sees: s.seq}, chat.Rolled{KeepFrom: 1})
		if got := s.shown(); !strings.HasPrefix(got, c.text+"|ok") {
			t.Fatal(got)
		}
		s.tell(chat.Deleted{Seq: 1})
		if got := s.shown(); strings.HasPrefix(got, c.text) != (c.renderer == firstRenderer) {
			t.Fatal(got)
		}
		s.tell(chat.RunEnded{Run: "1"}, chat.RunStarted{Run: "2", Renderer: Renderer})
		if got := s.shown(); strings.Contains(got, c.text+"|") {
			t.Fatal(got)
		}
	}
}

// A message that was read from a channel's history can be deleted like one that was heard.
func TestDeletedLineOfAnImport(t *testing.T) {
	t.Parallel()
	for _, seen := range []bool{false, true} {
		s := &script{T: t, log: New(func(string) ([]byte, error) {
			return json.Marshal([]chat.Line{{Role: "user", ID: "1", Blocks: chat.TextBlocks("one")}, {Role: "assistant", ID: "3 2", Blocks: chat.TextBlocks("two three")},
				{Role: "user", ID: "4", Blocks: chat.TextBlocks("four")}})
		})}
		s.tell(chat.Imported{Blob: "x", Count: 3})
		if seen {
			s.tell(chat.Asked{Sees: 1})
		}
		s.tell(chat.Deleted{Message: "4"}, chat.Deleted{Message: "2"}, chat.Edited{Message: "1", Blocks: chat.TextBlocks("won")})
		if got := s.shown(); got != "won" {
			t.Errorf("seen %v: %s", seen, got)
		}
	}
}
