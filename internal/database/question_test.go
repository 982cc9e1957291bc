package database_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"chorus/internal/database"
	"chorus/internal/store"
	"chorus/internal/store/storetest"
)

func question(key string) database.Question {
	return database.Question{Query: `SELECT 1 FROM memos WHERE kind = 'test' AND key = ?`, Args: []any{key}}
}

func ask(t *testing.T, db *store.DB, keys ...string) []bool {
	t.Helper()
	var questions []database.Question
	for _, key := range keys {
		questions = append(questions, question(key))
	}
	some, err := db.Any(t.Context(), questions...)
	if err != nil {
		t.Fatal(err)
	}
	return some
}

func memo(t *testing.T, db *store.DB, query, key string) {
	t.Helper()
	if err := db.Write(t.Context(), func(tx database.Tx) error { return tx.Exec(query, key) }); err != nil {
		t.Fatal(err)
	}
}

const (
	addMemo    = `INSERT INTO memos (kind, key, value, at) VALUES ('test', ?, '', 0)`
	removeMemo = `DELETE FROM memos WHERE kind = 'test' AND key = ?`
)

// What this process writes counts at once, what another one writes after a second, and neither is queried
// again before. What was rolled back does not count.
func TestAnswersAreRemembered(t *testing.T) {
	t.Parallel()
	db := storetest.Open(t, store.Options{Path: storetest.Closed(t)})
	other := storetest.Open(t, store.Options{Path: db.Path()})
	now := time.Now()
	database.AnswersAt(db.DB, func() time.Time { return now })
	check := func(when string, want ...bool) {
		t.Helper()
		if got := ask(t, db, "a", "b"); !slices.Equal(got, want) {
			t.Errorf("%s: %t, want %t", when, got, want)
		}
	}
	check("at first", false, false)
	memo(t, db, addMemo, "a")
	check("after a write", true, false)
	memo(t, other, addMemo, "b")
	check("just after another process wrote", true, false)
	now = now.Add(time.Second)
	check("a second later", true, true)
	memo(t, db, removeMemo, "a")
	check("after a removal", false, true)

	failed := errors.New("failed")
	err := db.Write(t.Context(), func(tx database.Tx) error { return errors.Join(tx.Exec(addMemo, "a"), failed) })
	if !errors.Is(err, failed) {
		t.Error(err)
	}
	check("after a write that was rolled back", false, true)
}

// Whoever asks while somebody writes gets no answer that outlives the write.
func TestAnAnswerDoesNotOutliveAWrite(t *testing.T) {
	t.Parallel()
	db := storetest.Open(t, store.Options{Path: storetest.Closed(t)})
	database.AnswersAt(db.DB, func() time.Time { return time.Time{} }) // none ages
	err := db.Write(t.Context(), func(tx database.Tx) error {
		if err := tx.Exec(addMemo, "a"); err != nil {
			return err
		}
		if got := ask(t, db, "a"); got[0] {
			t.Error("seen before it was committed")
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if got := ask(t, db, "a"); !got[0] {
		t.Error("not seen when it was committed")
	}
	if _, err := db.Any(cancelled(t), question("never asked before")); !errors.Is(err, context.Canceled) {
		t.Errorf("a question without time: %v", err)
	}
}

func cancelled(t *testing.T) context.Context {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	return ctx
}

func TestTableWritten(t *testing.T) {
	t.Parallel()
	for query, table := range map[string]string{
		"INSERT INTO a (b) VALUES (1) ON CONFLICT (b) DO UPDATE SET c = 1": "a",
		"insert or ignore into a(b) values (1)":                            "a",
		"INSERT OR REPLACE INTO a\n\tSELECT * FROM b":                      "a",
		"UPDATE a SET b = 1 WHERE c IN (SELECT d FROM e)":                  "a",
		"UPDATE OR IGNORE a SET b = 1":                                     "a",
		"DELETE FROM a WHERE b = 1":                                        "a",
		"WITH x AS (SELECT 1) DELETE FROM a":                               "a",
		"SELECT 1 FROM a":                                                  "",
		"COMMIT":                                                           "",
		"":                                                                 "",
		"DELETE FROM":                                                      "",
	} {
		if got := database.TableWritten(query); got != table {
			t.Errorf("%s: %q", query, got)
		}
	}
}
