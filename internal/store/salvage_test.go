package store

import (
	"bytes"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"chorus/internal/chat"
	"chorus/internal/database"
	"chorus/internal/journal"
)

// doctor's advice about a damaged database ended in an error and an empty home. What can be read
// is saved, the rest is whole, and nothing that was on goes on by itself.
func TestSalvage(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "chorus.db")
	db, err := Open(t.Context(), Options{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	const threads, each = 6, 60
	for n := range threads * each {
		_, err := db.Commit(t.Context(), journal.Commit{Thread: chat.ThreadID(fmt.Sprintf("cli:home:t%d@main", n%threads)), Create: &journal.Thread{},
			Events: []chat.Event{{Body: chat.Received{Blocks: chat.TextBlocks(strings.Repeat("words ", 200) + fmt.Sprintf("number-%d;", n)), Prompt: n%10 == 0}}}})
		if err != nil {
			t.Fatal(err)
		}
	}
	for n := range 40 {
		if err := db.Audit(t.Context(), auditLine(n)); err != nil {
			t.Fatal(err)
		}
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	at := bytes.Index(data, []byte(fmt.Sprintf("number-%d;", threads*each/2))) &^ 4095
	for i := range 4096 { // one page of the events
		data[at+i] = 0xa5
	}
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := database.CheckFile(t.Context(), path); !errors.Is(err, database.ErrDamaged) {
		t.Fatalf("it is not damaged: %v", err)
	}

	got, err := Salvage(t.Context(), path, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(got.Damaged, []string{"events"}) || got.Audit != 40 || len(got.Cut) == 0 || got.Events < threads*each/3 || got.Events >= threads*each {
		t.Errorf("%+v", got)
	}
	if kept, err := os.ReadFile(filepath.Join(got.Folder, "chorus.db")); err != nil || !bytes.Equal(kept, data) {
		t.Errorf("the damaged file was not kept: %v", err)
	}
	if err := database.CheckFile(t.Context(), path); err != nil {
		t.Fatal(err)
	}
	db = open(t, path)
	if c, err := db.VerifyAudit(t.Context(), "", nil); err != nil || c.Break != nil || c.Lines != 40 {
		t.Errorf("%+v", c.Break)
	}
	stopped, err := db.StopWork(t.Context(), chat.Principal{Kind: chat.TheSystem, ID: "doctor"})
	if err != nil || stopped == 0 {
		t.Errorf("%d threads were stopped: %v", stopped, err)
	}
	var n int
	for i := range threads {
		thread := chat.ThreadID(fmt.Sprintf("cli:home:t%d@main", i))
		events, err := db.Events(t.Context(), thread, 0, 1000)
		if err != nil {
			t.Fatal(err)
		}
		for j, ev := range events {
			if ev.Seq != int64(j+1) {
				t.Fatalf("%s has event %d as number %d", thread, ev.Seq, j+1)
			}
			if r, ok := ev.Body.(chat.Received); ok {
				n++
				if want := fmt.Sprintf("number-%d;", j*threads+i); !strings.HasSuffix(r.Blocks.Text(), want) {
					t.Fatalf("%s event %d is not %s", thread, ev.Seq, want)
				}
			}
		}
		row, err := db.Thread(t.Context(), thread)
		if err != nil || row.Waiting != 0 || row.Next != int64(len(events)+1) {
			t.Errorf("%+v %v", row, err)
		}
	}
	if int64(n) != got.Events {
		t.Errorf("%d events are there, %d were saved", n, got.Events)
	}
}

// A database whose file was removed while it was open is saved whole, and can be put back.
func TestRemovedDatabaseIsSaved(t *testing.T) {
	t.Parallel()
	path := closed(t)
	db, err := Open(t.Context(), Options{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	say(t, db, "the last word")
	if err := errors.Join(os.Remove(path), os.Remove(path+"-wal"), os.Remove(path+"-shm")); err != nil {
		t.Fatal(err)
	}
	if err := db.Ready(t.Context()); !errors.Is(err, database.ErrReplaced) || !strings.Contains(err.Error(), "rescued-") {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(t.Context(), Options{Path: path}); !errors.Is(err, database.ErrMissing) {
		t.Fatal(err)
	}
	if from, err := database.PutBack(t.Context(), path); err != nil || from == "" {
		t.Fatal(from, err)
	}
	events, err := open(t, path).Events(t.Context(), "cli:home:one@main", 0, 1000)
	if err != nil || len(events) == 0 {
		t.Fatal(err)
	}
	if last, ok := events[len(events)-1].Body.(chat.Received); !ok || last.Blocks.Text() != "the last word" {
		t.Errorf("%+v", events[len(events)-1])
	}
}

// A reader that is opened after somebody removed the file leaves nothing in its place: that would be in the way of putting it back.
func TestReadersDoNotCreateTheFile(t *testing.T) {
	t.Parallel()
	path := closed(t)
	db, err := Open(t.Context(), Options{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	none := func(*sql.Rows) error { return nil }
	err = db.Query(t.Context(), "SELECT 1", nil, func(*sql.Rows) error { // holds the first reader, so that the next query needs another one
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		if err := db.Query(t.Context(), "SELECT 2", nil, none); err == nil {
			t.Error("a new reader found a database")
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("there is a file again: %v", err)
	}
	_ = db.Close()
}
