package store

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"chorus/internal/store/pgtest"
)

// fullStore makes a database with something of most kinds in it, and closes it.
func fullStore(t *testing.T) (o Options, large []byte, hash string) {
	t.Helper()
	o = Options{Path: filepath.Join(t.TempDir(), "chorus.db")}
	db, err := Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	payingThread(t, db, "cli:paid")
	say(t, db, "words with a NUL \x00 and Ünïcödé")
	audits(t, db, 5)
	large = bytes.Repeat([]byte("bytes "), maxInline)
	if hash, err = db.PutBlob(t.Context(), large); err != nil {
		t.Fatal(err)
	}
	if _, err := db.PutBlob(t.Context(), []byte("small")); err != nil {
		t.Fatal(err)
	}
	if err := db.SetSetting(t.Context(), "scope", "key", "value"); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	return o, large, hash
}

// What is moved to a server and back to a file is the same in all three, attachments and the audit log included.
func TestMoveThereAndBack(t *testing.T) {
	t.Parallel()
	from, large, hash := fullStore(t)
	server := Options{URL: pgtest.Database(t)}
	there, err := Move(t.Context(), from, server, nil)
	if err != nil {
		t.Fatal(err)
	}
	back := Options{Path: filepath.Join(t.TempDir(), "back.db")}
	again, err := Move(t.Context(), server, back, nil)
	if err != nil {
		t.Fatal(err)
	}
	rows := int64(0)
	for i, table := range there {
		rows += table.Rows
		if table != again[i] {
			t.Errorf("%v became %v", table, again[i])
		}
	}
	if rows < 10 {
		t.Errorf("only %d rows were moved", rows)
	}
	for _, o := range []Options{server, back} {
		db, err := Open(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := db.Blob(t.Context(), hash); err != nil || !bytes.Equal(got, large) {
			t.Errorf("%s: %d bytes, %v", db.path, len(got), err)
		}
		audits(t, db, 2) // the chain goes on
		if check := checkAudit(t, db, ""); check.Break != nil || check.Lines < 7 {
			t.Errorf("%s: %+v", db.path, check)
		}
		say(t, db, "and on it goes")
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// A move that cannot be whole leaves the new database empty.
func TestMoveIsWholeOrNothing(t *testing.T) {
	t.Parallel()
	from, _, hash := fullStore(t)
	server := Options{URL: pgtest.Database(t)}
	if err := os.Truncate(filepath.Join(filepath.Dir(from.Path), "blobs", hash[:2], hash), 10); err != nil {
		t.Fatal(err)
	}
	if _, err := Move(t.Context(), from, server, nil); err == nil {
		t.Fatal("a damaged attachment was moved")
	}
	db, err := Open(t.Context(), server)
	if err != nil {
		t.Fatal(err)
	}
	if n, err := db.Count(t.Context(), `SELECT count(*) FROM threads`); n != 0 || err != nil {
		t.Errorf("%d threads are there, %v", n, err)
	}
	if err := db.Audit(t.Context(), auditLine(1)); err != nil { // its triggers are there again
		t.Error(err)
	}
	if err := db.write(t.Context(), func(tx *transaction) error { return tx.exec(`DELETE FROM audit`) }); err == nil {
		t.Error("the audit log of a failed move can be changed")
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	whole, _, _ := fullStore(t)
	if _, err := Move(t.Context(), whole, server, nil); !errors.Is(err, ErrNotEmpty) {
		t.Errorf("moved over what was there: %v", err)
	}
}
