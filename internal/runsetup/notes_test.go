package runsetup

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"chorus/internal/chat"
	"chorus/internal/database"
	"chorus/internal/logging"
	"chorus/internal/store"
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

// Sources that speak of rows are asked when there are some: with one look for all of them, and again before the next request.
func TestNotesOfRows(t *testing.T) {
	t.Parallel()
	db, err := store.Open(t.Context(), store.Options{Path: filepath.Join(t.TempDir(), "chorus.db")})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	s := &Setup{DB: db, Logs: &logging.Logs{}}
	var asked []string
	source := func(what, key string, certain bool) NoteSource {
		return NoteSource{What: what, Text: func(context.Context, NoteContext) (string, error) {
			asked = append(asked, what)
			return what, nil
		}, Rows: func(NoteContext) (database.Question, bool) {
			return database.Question{Query: `SELECT 1 FROM memos WHERE kind = 'test' AND key = ?`, Args: []any{key}}, !certain
		}}
	}
	sources := []NoteSource{source("one", "1", false), source("two", "2", false), source("always", "3", true)}
	look := func(want ...string) {
		t.Helper()
		asked = nil
		s.notes(t.Context(), sources, NoteContext{Log: transcript.New(nil)}, map[string]int64{})
		if !slices.Equal(asked, want) {
			t.Errorf("%q are asked and not %q", asked, want)
		}
	}
	look("always")
	for _, key := range []string{"2", "1"} {
		if err := db.Remember(t.Context(), "test", key, []byte("x")); err != nil {
			t.Fatal(err)
		}
	}
	look("one", "two", "always")
	if err := db.Write(t.Context(), func(tx database.Tx) error { return tx.Exec(`DELETE FROM memos WHERE kind = 'test' AND key = '1'`) }); err != nil {
		t.Fatal(err)
	}
	look("two", "always")
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
