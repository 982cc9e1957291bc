package store

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"syscall"
	"testing"

	"chorus/internal/approval"
	"chorus/internal/chat"
	"chorus/internal/database"
	"chorus/internal/journal"
	"chorus/internal/store/blobs"
)

func open(t *testing.T, path string) *DB {
	t.Helper()
	db, err := Open(t.Context(), Options{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return db
}

func say(t *testing.T, db *DB, text string) {
	t.Helper()
	_, err := db.Commit(t.Context(), journal.Commit{Thread: "cli:home:one@main", Create: &journal.Thread{},
		Events: []chat.Event{{Body: chat.Received{Blocks: chat.TextBlocks(text), Prompt: true}}}})
	if err != nil {
		t.Fatal(err)
	}
}

func auditLine(n int) approval.Audit {
	return approval.Audit{Agent: "main", Thread: "cli:home:one@main", Principal: chat.Principal{Kind: chat.LocalUser, ID: "ada", Name: "Ada"},
		Action: fmt.Sprintf("shell echo %d", n), Decision: "allow"}
}

// script runs SQL on a file beside the store.
func script(t *testing.T, path, text string) {
	t.Helper()
	db, err := database.OpenFile(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.ExecContext(t.Context(), text); err != nil {
		t.Fatal(err)
	}
}

// closed makes a store with some content, closes it and gives its path.
func closed(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "chorus.db")
	db, err := Open(t.Context(), Options{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	for range 50 {
		say(t, db, "words and "+strings.Repeat("more ", 200))
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestProblemsWithTheFile(t *testing.T) {
	t.Parallel()
	overwrite := func(t *testing.T, path string, data []byte) {
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, c := range map[string]struct {
		make func(t *testing.T) string
		want error
		says string
	}{
		"garbage": {func(t *testing.T) string {
			path := filepath.Join(t.TempDir(), "chorus.db")
			overwrite(t, path, bytes.Repeat([]byte("not a database "), 1000))
			return path
		}, database.ErrForeign, "move it away"},
		"somebody else's": {func(t *testing.T) string {
			path := filepath.Join(t.TempDir(), "chorus.db")
			script(t, path, `CREATE TABLE recipes (name TEXT)`)
			return path
		}, database.ErrForeign, "not a Chorus database"},
		"newer": {func(t *testing.T) string {
			path := closed(t)
			script(t, path, `PRAGMA user_version = 999`)
			return path
		}, database.ErrNewer, "upgrade chorus"},
		"cut": {func(t *testing.T) string {
			path := closed(t)
			if err := os.Truncate(path, 10_000); err != nil {
				t.Fatal(err)
			}
			return path
		}, database.ErrDamaged, "chorus restore"},
		"a folder in its place": {func(t *testing.T) string {
			path := filepath.Join(t.TempDir(), "chorus.db")
			if err := os.MkdirAll(path, 0o700); err != nil {
				t.Fatal(err)
			}
			return path
		}, database.ErrDenied, "permissions"},
		"a file in the folder's place": {func(t *testing.T) string {
			path := filepath.Join(t.TempDir(), "home")
			overwrite(t, path, nil)
			return filepath.Join(path, "chorus.db")
		}, database.ErrDenied, "another CHORUS_HOME"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := c.make(t)
			before, _ := os.ReadFile(path)
			db, err := Open(t.Context(), Options{Path: path})
			if err == nil {
				t.Fatal(errors.Join(errors.New("it opened"), db.Close()))
			}
			if !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.says) || !strings.Contains(err.Error(), filepath.Dir(path)) {
				t.Fatalf("error %q: want kind %q, the path, and %q", err, c.want, c.says)
			}
			if after, _ := os.ReadFile(path); !bytes.Equal(before, after) {
				t.Fatal("the file was changed")
			}
		})
	}
}

// Permissions mean nothing to root, so this one needs somebody else.
func TestReadOnlyFolder(t *testing.T) {
	t.Parallel()
	if os.Geteuid() == 0 {
		t.Skip("root may write everywhere")
	}
	path := closed(t)
	dir := filepath.Dir(path)
	if err := errors.Join(os.Chmod(path, 0o400), os.Chmod(dir, 0o500)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Chmod(dir, 0o700) })
	if db, err := Open(t.Context(), Options{Path: path}); err == nil {
		defer db.Close()
		_, err = db.Commit(t.Context(), journal.Commit{Thread: "cli:home:one@main", Events: []chat.Event{{Body: chat.Received{}}}})
		if !errors.Is(err, database.ErrDenied) {
			t.Fatalf("writing: %v", err)
		}
	} else if !errors.Is(err, database.ErrDenied) {
		t.Fatalf("opening: %v", err)
	}
}

func TestProblemSentences(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		err  error
		want error
		says string
	}{
		{&os.PathError{Op: "write", Path: "x", Err: syscall.ENOSPC}, database.ErrFull, "the disk is full"},
		{&os.PathError{Op: "open", Path: "x", Err: syscall.EACCES}, database.ErrDenied, "permissions"},
		{&database.Problem{What: database.ErrBusy, Path: "x"}, database.ErrBusy, "another process"},
		{&database.Problem{What: database.ErrClosed, Path: "x"}, database.ErrClosed, "closed"},
	} {
		got := database.Explain("/home/chorus.db", c.err)
		if !errors.Is(got, c.want) || !errors.Is(got, c.err) || !strings.Contains(got.Error(), c.says) {
			t.Errorf("%v became %v", c.err, got)
		}
	}
	plain := errors.New("anything else")
	if database.Explain("x", plain) != plain || database.Explain("x", nil) != nil {
		t.Error("an error that is not the file's was changed")
	}
}

// A full disk is played by SQLite's own limit on the number of pages.
func TestDiskFull(t *testing.T) {
	t.Parallel()
	db := open(t, filepath.Join(t.TempDir(), "chorus.db"))
	say(t, db, "before")
	err := db.WithoutTx(t.Context(), func(tx database.Tx) error { return tx.Exec(`PRAGMA max_page_count = 1`) })
	if err != nil {
		t.Fatal(err)
	}
	big := journal.Commit{Thread: "cli:home:one@main", Events: []chat.Event{
		{Body: chat.Received{Blocks: chat.TextBlocks(strings.Repeat("x", 500_000))}}}}
	if _, err := db.Commit(t.Context(), big); !errors.Is(err, database.ErrFull) {
		t.Fatalf("got %v", err)
	}
	// In a group it takes nobody with it.
	release := hold(db)
	var wg sync.WaitGroup
	errs := make([]error, 3)
	for i := range errs {
		c := big
		if i != 1 {
			c.Events = []chat.Event{{Body: chat.Refused{Seq: 1}}}
		}
		wg.Go(func() { _, errs[i] = db.Commit(context.Background(), c) })
		await(func() bool { return db.Queued() == i+1 })
	}
	release()
	wg.Wait()
	if errs[0] != nil || !errors.Is(errs[1], database.ErrFull) || errs[2] != nil {
		t.Fatalf("errors %v", errs)
	}
	events, err := db.Events(t.Context(), "cli:home:one@main", 0, 0)
	if err != nil || len(events) != 3 {
		t.Fatalf("%d events, %v", len(events), err)
	}
}

// A process that dies leaves its write-ahead log behind; the next one reads it.
func TestOpenAfterUncleanEnd(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	db := open(t, filepath.Join(dir, "chorus.db"))
	say(t, db, "committed")
	dead := t.TempDir()
	for _, name := range []string{"chorus.db", "chorus.db-wal"} {
		data, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		// Half a frame behind it: what a commit leaves that was cut off.
		if name == "chorus.db-wal" {
			data = append(data, bytes.Repeat([]byte{7}, 2000)...)
		}
		if err := os.WriteFile(filepath.Join(dead, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	again := open(t, filepath.Join(dead, "chorus.db"))
	events, err := again.Events(t.Context(), "cli:home:one@main", 0, 0)
	if err != nil || len(events) != 1 {
		t.Fatalf("%d events, %v", len(events), err)
	}
	say(t, again, "goes on")
}

func TestDamageInside(t *testing.T) {
	t.Parallel()
	path := closed(t)
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for i := 3 * 4096; i < len(data); i++ {
		data[i] = 0xa5
	}
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Inspect(t.Context(), path, ""); !errors.Is(err, database.ErrDamaged) {
		t.Fatalf("got %v", err)
	}
}

func TestOnlyTheOwnerMayRead(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "a", "home # 100%?")
	db := open(t, filepath.Join(dir, "chorus.db"))
	say(t, db, "secret")
	if _, err := db.IndexNew(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := db.PutBlob(t.Context(), make([]byte, blobs.MaxInline+1)); err != nil {
		t.Fatal(err)
	}
	err := filepath.WalkDir(filepath.Dir(dir), func(path string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err == nil && info.Mode().Perm()&0o077 != 0 {
			err = fmt.Errorf("%s has mode %v", path, info.Mode())
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestOptions(t *testing.T) {
	t.Parallel()
	for _, o := range []Options{{}, {Path: filepath.Join(t.TempDir(), "x.db"), Durability: "sometimes"}} {
		if _, err := Open(t.Context(), o); err == nil {
			t.Errorf("%+v opened", o)
		}
	}
	db, err := Open(t.Context(), Options{Path: filepath.Join(t.TempDir(), "x.db"), Durability: "full"})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	var sync int
	err = db.WithoutTx(t.Context(), func(tx database.Tx) error { return tx.Row(`PRAGMA synchronous`, nil, &sync) })
	if err != nil || sync != 2 {
		t.Fatalf("synchronous is %d, %v", sync, err)
	}
}

// The sweep must never read more than what is active.
func TestQueriesUseTheirIndexes(t *testing.T) {
	t.Parallel()
	db := open(t, filepath.Join(t.TempDir(), "chorus.db"))
	for query, index := range map[string]string{
		`SELECT ` + threadColumns + ` FROM threads WHERE wake = 1 OR status = 'running'`:                                                                                 "threads_stirring",
		`SELECT seq FROM events WHERE thread_id = 'x' AND taken = 0 ORDER BY seq`:                                                                                        "events_waiting",
		`SELECT run_id FROM events WHERE thread_id = 'x' AND kind = 'run_started' ORDER BY seq DESC LIMIT 1`:                                                             "events_runs",
		`SELECT seq FROM events WHERE thread_id = 'x' AND platform = 'p' AND platform_id = 'i' AND kind = 'k' AND version = 0 AND platform_id <> ''`:                     "events_platform",
		`SELECT seq FROM outbox WHERE platform = 'p' AND bot = 'b' AND channel = 'c' AND ` + isOpen + ` ORDER BY seq LIMIT 9`:                                            "outbox_open",
		`SELECT channel FROM outbox WHERE platform = 'p' AND bot = 'b' AND ` + isOpen:                                                                                    "outbox_open",
		`SELECT seq FROM events WHERE platform = 'p' AND platform_id = 'i' AND kind = 'received' AND platform_id <> ''`:                                                  "events_heard",
		`SELECT id FROM approvals WHERE state = 'pending' AND deadline <= 5`:                                                                                             "approvals_pending",
		`SELECT id FROM threads WHERE id IN (SELECT id FROM threads WHERE wake = 1 OR status = 'running' UNION SELECT thread_id FROM approvals WHERE state = 'pending')`: "threads_stirring",
	} {
		var plan string
		err := db.Query(t.Context(), `EXPLAIN QUERY PLAN `+query, nil, func(rows *sql.Rows) error {
			var a, b, c int
			var line string
			err := rows.Scan(&a, &b, &c, &line)
			plan += line + "\n"
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(plan, index) {
			t.Errorf("%s\nis planned as %s", query, plan)
		}
	}
}

func TestMigrate(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "home", "chorus.db")
	all, err := database.Migrations(migrationsFor("sqlite"))
	if err != nil {
		t.Fatal(err)
	}
	if all[len(all)-1].Version != schemaVersion {
		t.Fatalf("the newest migration is %d, schemaVersion %d", all[len(all)-1].Version, schemaVersion)
	}
	up := database.MigrateReport{From: 0, To: schemaVersion, Steps: all}
	do := func(o database.MigrateOptions, want database.MigrateReport) {
		t.Helper()
		got, err := Migrate(t.Context(), path, o)
		if err != nil {
			t.Fatal(err)
		}
		if o.Down > 0 && !o.DryRun {
			if copied, err := Inspect(t.Context(), got.Copy, ""); err != nil || copied.Version != got.From {
				t.Fatalf("the copy %q has version %d: %v", got.Copy, copied.Version, err)
			}
			got.Copy = ""
		}
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("%+v: got %+v, want %+v", o, got, want)
		}
	}
	do(database.MigrateOptions{DryRun: true}, up)
	if _, err := os.Stat(filepath.Dir(path)); !errors.Is(err, os.ErrNotExist) {
		t.Fatal("a dry run made something")
	}
	do(database.MigrateOptions{}, up)
	do(database.MigrateOptions{}, database.MigrateReport{From: schemaVersion, To: schemaVersion})
	last := all[len(all)-1]
	down := database.MigrateReport{From: schemaVersion, To: schemaVersion - 1, Steps: []database.Migration{last}, Down: true}
	do(database.MigrateOptions{Down: 1, DryRun: true}, down)
	do(database.MigrateOptions{Down: 1}, down)
	do(database.MigrateOptions{DryRun: true}, database.MigrateReport{From: schemaVersion - 1, To: schemaVersion, Steps: []database.Migration{last}})
	say(t, open(t, path), "migrated by opening")
}

// Several processes may meet on a new home.
func TestOpenTogether(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "chorus.db")
	var wg sync.WaitGroup
	for range 6 {
		wg.Go(func() {
			db, err := Open(context.Background(), Options{Path: path})
			if err != nil {
				t.Error(err)
				return
			}
			_, err = db.Commit(context.Background(), journal.Commit{Thread: "cli:home:one@main", Create: &journal.Thread{}})
			if err != nil {
				t.Error(err)
			}
			if err := db.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
}

// Somebody who holds the file for ever must not hold us for ever.
func TestBusy(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "chorus.db")
	db := open(t, path)
	say(t, db, "before")
	err := db.WithoutTx(t.Context(), func(tx database.Tx) error { return tx.Exec(`PRAGMA busy_timeout = 20`) })
	if err != nil {
		t.Fatal(err)
	}
	other, err := database.OpenFile(path, nil, "_txlock=immediate")
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	tx, err := other.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	_, err = db.Commit(t.Context(), journal.Commit{Thread: "cli:home:one@main", Events: []chat.Event{{Body: chat.Received{}}}})
	if !errors.Is(err, database.ErrBusy) || !strings.Contains(err.Error(), "another process") {
		t.Fatalf("got %v", err)
	}
	if _, err := db.Thread(t.Context(), "cli:home:one@main"); err != nil {
		t.Fatalf("readers must not wait: %v", err)
	}
	if err := tx.Rollback(); err != nil {
		t.Fatal(err)
	}
	say(t, db, "after")
}
