package store_test

import (
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"chorus/internal/store"
)

func TestMemos(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "c.db")
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	open := func() *store.DB {
		db, err := store.Open(t.Context(), store.Options{Path: path, Now: func() time.Time { now = now.Add(time.Second); return now }})
		if err != nil {
			t.Fatal(err)
		}
		return db
	}
	db := open()
	for _, m := range [][3]string{{"fetch", "2", "two"}, {"fetch", "1", "one"}, {"digest", "1", "other"}, {"fetch", "2", "second"}, {"fetch", "3", "three"}} {
		if err := db.Remember(t.Context(), m[0], m[1], []byte(m[2])); err != nil {
			t.Fatal(err)
		}
	}
	if err := db.Forget(t.Context(), "fetch", "3"); err != nil {
		t.Fatal(err)
	}
	if err := db.Forget(t.Context(), "fetch", "none"); err != nil {
		t.Errorf("forgetting what is not there: %v", err)
	}
	if err := db.Remember(t.Context(), "", "1", nil); err == nil {
		t.Error("a memo without a kind was kept")
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	db = open()
	defer db.Close()
	list, err := db.Memos(t.Context(), "fetch")
	if got := fmt.Sprintf("%s", list); err != nil || got != "[{1 one} {2 second}]" {
		t.Errorf("remembered %s, %v", got, err)
	}
	if v, err := db.Recall(t.Context(), "digest", "1"); err != nil || string(v) != "other" {
		t.Errorf("recalled %q, %v", v, err)
	}
	if v, err := db.Recall(t.Context(), "digest", "2"); err != nil || v != nil {
		t.Errorf("recalled %q, %v where nothing was kept", v, err)
	}
}

// What is remembered once stays so when the database is opened again, until it is too old.
func TestRememberOnce(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "c.db")
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for step, want := range []bool{true, false, true} {
		db, err := store.Open(t.Context(), store.Options{Path: path, Now: func() time.Time { return now }})
		if err != nil {
			t.Fatal(err)
		}
		if first, err := db.RememberOnce(t.Context(), "ended", "a", []byte("x"), time.Hour); err != nil || first != want {
			t.Errorf("step %d: %v, %v", step, first, err)
		}
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
		if step == 1 {
			now = now.Add(2 * time.Hour)
		}
	}
}
