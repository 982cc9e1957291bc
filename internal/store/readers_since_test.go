package store

import (
	"database/sql"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"chorus/internal/chat"
	"chorus/internal/journal"
)

// A look from a mark on finds the same as a look at everything, whichever process wrote, and whoever read how far.
func TestBehindSinceMissesNothing(t *testing.T) {
	t.Parallel()
	both(t, testBehindSinceMissesNothing)
}

func testBehindSinceMissesNothing(t *testing.T, open func(Options) *DB) {
	ctx := t.Context()
	processes := []*DB{open(Options{}), open(Options{})}
	dice := rand.New(rand.NewPCG(6, 7))
	var mark int64
	var behind []chat.ThreadID
	for step := range 400 {
		db := processes[dice.IntN(2)]
		for range dice.IntN(4) {
			thread := chat.ThreadID(fmt.Sprintf("%s:1/2:%d@helper", []string{"discord", "cli"}[dice.IntN(2)], dice.IntN(12)))
			var err error
			if next := threadNext(t, db, thread); dice.IntN(3) > 0 || next == 1 {
				_, err = db.Commit(ctx, journal.Commit{Thread: thread, Create: &journal.Thread{}, Events: []chat.Event{{Body: chat.Received{Blocks: chat.TextBlocks("hello")}}}})
			} else {
				err = db.MoveReader(ctx, "out", thread, next-1-int64(dice.IntN(2)))
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		if dice.IntN(3) == 0 && step < 399 {
			continue // several writes lie between two looks
		}
		want, _, err := processes[0].BehindSince(ctx, "out", "discord", 0, nil)
		if err != nil {
			t.Fatal(err)
		}
		if behind, mark, err = processes[0].BehindSince(ctx, "out", "discord", mark, behind); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(behind, want) {
			t.Fatalf("step %d: behind %q, of all %q", step, behind, want)
		}
	}
	if mark == 0 {
		t.Fatal("the mark has not moved")
	}
	// A mark of another journal, which was longer, hides nothing.
	want, _, err := processes[0].BehindSince(ctx, "none", "discord", 0, nil)
	if err != nil {
		t.Fatal(err)
	}
	if processes[0].OnServer() { // whose marks also move, and give more, with what others on the server do
		if got, _, err := processes[0].BehindSince(ctx, "none", "discord", mark+1<<40, nil); err != nil || !slices.Equal(got, want) {
			t.Errorf("%q, %v", got, err)
		}
		return
	}
	if got, next, err := processes[0].BehindSince(ctx, "none", "discord", mark+5, nil); err != nil || !slices.Equal(got, want) || next != mark {
		t.Errorf("%q up to %d, %v", got, next, err)
	}
	if got, _, err := processes[0].BehindSince(ctx, "none", "discord", mark, nil); err != nil || len(got) != 0 {
		t.Errorf("%q has not changed, %v", got, err)
	}
}

func threadNext(t *testing.T, db *DB, thread chat.ThreadID) int64 {
	t.Helper()
	n, err := db.Count(t.Context(), `SELECT next_seq FROM threads WHERE id = ?`, string(thread))
	if err != nil {
		t.Fatal(err)
	}
	return max(n, 1)
}

// What a look reads does not grow with the home: no table is read from end to end.
func TestBehindSinceReadsWhatChanged(t *testing.T) {
	t.Parallel()
	db := open(t, filepath.Join(t.TempDir(), "chorus.db"))
	var plan []string
	for query, args := range map[string][]any{behindSince(&sqliteSQL, `SELECT value FROM json_each(?)`): {"out", "discord", 5, "[]"}, queryJournalEnd: nil} {
		err := db.Query(t.Context(), `EXPLAIN QUERY PLAN `+query, args, func(rows *sql.Rows) error {
			var a, b, c int
			var line string
			err := rows.Scan(&a, &b, &c, &line)
			plan = append(plan, line)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	all := strings.Join(plan, "\n")
	for _, line := range plan {
		if strings.HasPrefix(line, "SCAN") && !strings.Contains(line, "json_each") {
			t.Errorf("%s, in\n%s", line, all)
		}
	}
	for _, want := range []string{"SEARCH t USING PRIMARY KEY (id=?)", "SEARCH events USING INTEGER PRIMARY KEY (rowid>?)"} {
		if !strings.Contains(all, want) {
			t.Errorf("no %q in\n%s", want, all)
		}
	}
}
