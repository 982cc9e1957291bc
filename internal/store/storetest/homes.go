package storetest

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"chorus/internal/approval"
	"chorus/internal/chat"
	"chorus/internal/database"
	"chorus/internal/journal"
	"chorus/internal/store"
	"chorus/internal/store/audit"
)

// Open opens a store until the test ends.
func Open(t testing.TB, o store.Options) *store.DB {
	t.Helper()
	db, err := store.Open(t.Context(), o)
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

// Say commits a prompt.
func Say(t testing.TB, db *store.DB, text string) {
	t.Helper()
	_, err := db.Commit(t.Context(), journal.Commit{Thread: "cli:home:one@main", Create: &journal.Thread{},
		Events: []chat.Event{{Body: chat.Received{Blocks: chat.TextBlocks(text), Prompt: true}}}})
	if err != nil {
		t.Fatal(err)
	}
}

// Script runs SQL on a file without opening it as a store.
func Script(t testing.TB, path, text string) {
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

// Closed creates a store with some content, closes it and returns its path.
func Closed(t testing.TB) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "chorus.db")
	db, err := store.Open(t.Context(), store.Options{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	for range 50 {
		Say(t, db, "words and "+strings.Repeat("more ", 200))
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

// Put writes a file.
func Put(t testing.TB, path string, data []byte) {
	t.Helper()
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
}

// Flip changes four bytes of a file.
func Flip(t testing.TB, path string, at int64) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for i := range data[at : at+4] {
		data[at+int64(i)] ^= 0xff
	}
	Put(t, path, data)
}

// AuditLine returns a line of the audit log.
func AuditLine(n int) approval.Audit {
	return approval.Audit{Agent: "main", Thread: "cli:home:one@main", Run: fmt.Sprintf("r%d", n/3), Call: fmt.Sprintf("c%d", n),
		Principal: chat.Principal{Kind: chat.LocalUser, ID: "ada", Name: "Ada"},
		Action:    fmt.Sprintf("shell echo %d", n), Decision: "allow", Rule: "allow shell", Detail: strings.Repeat("d", n%4)}
}

// Audits adds lines that belong to no thread.
func Audits(t testing.TB, db *store.DB, lines int) {
	t.Helper()
	for n := range lines {
		if err := db.Audit(t.Context(), AuditLine(n)); err != nil {
			t.Fatal(err)
		}
	}
}

// CheckAudit verifies the audit log.
func CheckAudit(t testing.TB, db *store.DB, since string) audit.Check {
	t.Helper()
	c, err := db.VerifyAudit(t.Context(), since, nil)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// Hold keeps SQLite's writer busy until the returned function is called.
func Hold(db *store.DB) (release func()) {
	begun, end, ended := make(chan struct{}), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		_ = db.WithoutTx(context.Background(), func(database.Tx) error {
			close(begun)
			<-end
			return nil
		})
	}()
	<-begun
	return func() {
		close(end)
		<-ended
	}
}

// AwaitQueued yields until so many callers wait for SQLite's writer.
func AwaitQueued(db *store.DB, callers int) {
	for deadline := time.Now().Add(time.Minute); db.Queued() != callers; runtime.Gosched() {
		if time.Now().After(deadline) {
			panic("waited a minute for the queue to fill")
		}
	}
}
