package dbcopy_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"chorus/internal/blobstorage"
	"chorus/internal/blobstorage/s3"
	"chorus/internal/blobstorage/s3test"
	"chorus/internal/chat"
	"chorus/internal/database"
	"chorus/internal/journal"
	"chorus/internal/store"
	"chorus/internal/store/blobs"
	"chorus/internal/store/dbcopy"
	"chorus/internal/store/pgtest"
	"chorus/internal/store/storetest"
)

// fullStore makes a database with something of most kinds in it, and closes it.
func fullStore(t *testing.T) (o store.Options, large []byte, hash string) {
	t.Helper()
	o = store.Options{Path: filepath.Join(t.TempDir(), "chorus.db")}
	db, err := store.Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	_, err = db.Commit(t.Context(), journal.Commit{Thread: "cli:paid", Create: &journal.Thread{}, Events: []chat.Event{{Body: chat.Received{Blocks: chat.TextBlocks("hello"), Prompt: true}}}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.Take(t.Context(), "cli:paid"); err != nil {
		t.Fatal(err)
	}
	storetest.Say(t, db, "words with a NUL \x00 and Ünïcödé")
	storetest.Audits(t, db, 5)
	large = bytes.Repeat([]byte("bytes "), blobs.MaxInline)
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
	server := store.Options{URL: pgtest.Database(t)}
	there, err := dbcopy.Move(t.Context(), from, server, nil)
	if err != nil {
		t.Fatal(err)
	}
	back := store.Options{Path: filepath.Join(t.TempDir(), "back.db")}
	again, err := dbcopy.Move(t.Context(), server, back, nil)
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
	for _, o := range []store.Options{server, back} {
		db, err := store.Open(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := db.Blob(t.Context(), hash); err != nil || !bytes.Equal(got, large) {
			t.Errorf("%s: %d bytes, %v", db.Path(), len(got), err)
		}
		storetest.Audits(t, db, 2) // the chain goes on
		if check := storetest.CheckAudit(t, db, ""); check.Break != nil || check.Lines < 7 {
			t.Errorf("%s: %+v", db.Path(), check)
		}
		storetest.Say(t, db, "and on it goes")
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// A move that cannot be whole leaves the new database empty.
func TestMoveIsWholeOrNothing(t *testing.T) {
	t.Parallel()
	from, _, hash := fullStore(t)
	server := store.Options{URL: pgtest.Database(t)}
	if err := os.Truncate(filepath.Join(filepath.Dir(from.Path), "blobs", hash[:2], hash), 10); err != nil {
		t.Fatal(err)
	}
	if _, err := dbcopy.Move(t.Context(), from, server, nil); err == nil {
		t.Fatal("a damaged attachment was moved")
	}
	db, err := store.Open(t.Context(), server)
	if err != nil {
		t.Fatal(err)
	}
	if n, err := db.Count(t.Context(), `SELECT count(*) FROM threads`); n != 0 || err != nil {
		t.Errorf("%d threads are there, %v", n, err)
	}
	if err := db.Audit(t.Context(), storetest.AuditLine(1)); err != nil { // its triggers are there again
		t.Error(err)
	}
	if err := db.Write(t.Context(), func(tx database.Tx) error { return tx.Exec(`DELETE FROM audit`) }); err == nil {
		t.Error("the audit log of a failed move can be changed")
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	whole, _, _ := fullStore(t)
	if _, err := dbcopy.Move(t.Context(), whole, server, nil); !errors.Is(err, dbcopy.ErrNotEmpty) {
		t.Errorf("moved over what was there: %v", err)
	}
}

// A database moves between a file and a server with its bytes in a bucket, which is the same one or another.
func TestMoveWithABucket(t *testing.T) {
	t.Parallel()
	server := s3test.New(t)
	bucket := func(prefix string) blobstorage.Storage {
		s, err := s3.New(s3.Options{Bucket: s3test.Bucket, Prefix: prefix, Endpoint: server.URL, Region: "x", PathStyle: true,
			AccessKey: s3test.AccessKey, SecretKey: s3test.SecretKey, Timeout: 30 * time.Second, RetryFor: time.Millisecond})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	first, second := bucket("first"), bucket("second")
	from, data, hash := fullStore(t)
	places := []store.Options{from, {URL: pgtest.Database(t), Blobs: first}, {Path: filepath.Join(t.TempDir(), "a.db"), Blobs: first},
		{URL: pgtest.Database(t), Blobs: second}, {URL: "", Path: filepath.Join(t.TempDir(), "b.db")}}
	var sums []dbcopy.MovedTable
	for i := range len(places) - 1 {
		done, err := dbcopy.Move(t.Context(), places[i], places[i+1], nil)
		if err != nil {
			t.Fatal(i, err)
		}
		if sums != nil && !slices.Equal(sums, done) {
			t.Errorf("%v became %v", sums, done)
		}
		sums = done
		db, err := store.Open(t.Context(), places[i+1])
		if err != nil {
			t.Fatal(err)
		}
		if got, err := db.Blob(t.Context(), hash); err != nil || !bytes.Equal(got, data) {
			t.Errorf("%d bytes, %v", len(got), err)
		}
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
