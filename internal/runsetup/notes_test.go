package runsetup

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"chorus/internal/chat"
	"chorus/internal/logging"
	"chorus/internal/transcript"
)

// What is asked when a run begins is not asked again before each request, also when there was nothing to say; when a cut takes the note
// out of the window, it is.
func TestNotesAtBegin(t *testing.T) {
	t.Parallel()
	log := transcript.New(nil)
	tell := func(seq int64, body chat.Body) {
		t.Helper()
		if err := log.Apply(chat.Event{Seq: seq, Body: body}); err != nil {
			t.Fatal(err)
		}
	}
	said := map[string]string{"shown": "one"}
	var asked []string
	source := func(what string, begin bool) NoteSource {
		return NoteSource{What: what, AtBegin: begin, Text: func(context.Context, NoteContext) (string, error) {
			asked = append(asked, what)
			return said[what], nil
		}}
	}
	sources := []NoteSource{source("shown", true), source("nothing", true), source("always", false)}
	s, silent := &Setup{Logs: &logging.Logs{}}, map[string]int64{}
	look := func(when string, want ...string) []chat.Noted {
		t.Helper()
		asked = nil
		notes := s.notes(t.Context(), sources, NoteContext{Log: log}, silent)
		if !slices.Equal(asked, want) {
			t.Errorf("%s: %q are asked and not %q", when, asked, want)
		}
		return notes
	}
	tell(1, chat.Received{Blocks: chat.TextBlocks("hello"), Prompt: true})
	for _, note := range look("at the beginning", "shown", "nothing", "always") {
		tell(2, note)
	}
	tell(3, chat.RunStarted{Run: "1", Renderer: transcript.Renderer})
	tell(4, chat.Took{Seqs: []int64{1}})
	look("at a request", "always")
	tell(5, chat.Asked{Sees: 4})
	tell(6, chat.Said{Blocks: chat.TextBlocks("hi")})
	tell(7, chat.Compacted{UpTo: 4, Summary: "they greeted"})
	look("after a cut", "shown", "nothing", "always") // the agent may have written something itself, which is cut as well
	look("and then", "shown", "always")
	silent = map[string]int64{} // another process goes on with the run
	look("after a restart", "shown", "nothing", "always")
}

// A source that hangs costs its own note, whatever place it has, and is told to give up.
func TestNoteThatHangs(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var told atomic.Int32
		sources := []NoteSource{
			{What: "first", Text: func(context.Context, NoteContext) (string, error) { return "1", nil }},
			{What: "hangs", Text: func(ctx context.Context, _ NoteContext) (string, error) {
				<-ctx.Done()
				told.Add(1)
				return "late", nil
			}},
			{What: "fails", Text: func(context.Context, NoteContext) (string, error) { return "", errors.New("no disk") }},
			{What: "hangs too", Text: func(ctx context.Context, _ NoteContext) (string, error) {
				<-ctx.Done()
				told.Add(1)
				return "", ctx.Err()
			}},
			{What: "last", Text: func(context.Context, NoteContext) (string, error) { return "5", nil }},
		}
		answers := ask(t.Context(), sources, NoteContext{})
		synctest.Wait()
		var got []string
		for _, a := range answers {
			if a.err != nil {
				a.text = a.err.Error()
			}
			got = append(got, a.text)
		}
		if want := "1|no answer within 1s|no disk|no answer within 1s|5"; strings.Join(got, "|") != want || told.Load() != 2 {
			t.Errorf("%q, %d were told", got, told.Load())
		}
	})
}
