package database_test

import (
	"context"
	"database/sql"
	"errors"
	"sync"
	"testing"

	"chorus/internal/database"
	"chorus/internal/store"
	"chorus/internal/store/storetest"
)

// one reads a row and calls during while it is being read.
func one(ctx context.Context, db *store.DB, during func()) error {
	return db.Query(ctx, `SELECT 1`, nil, func(*sql.Rows) error { during(); return nil })
}

// A second connection costs milliseconds and memory. Queries that follow each other, or meet for a moment, need none.
func TestShortReadsShareAConnection(t *testing.T) {
	t.Parallel()
	db := storetest.Open(t, store.Options{Path: storetest.Closed(t)})
	for range 100 {
		if err := one(t.Context(), db, func() {}); err != nil {
			t.Fatal(err)
		}
	}
	if n := database.Readers(db.DB); n != 1 {
		t.Errorf("%d connections are open", n)
	}
}

// A long read delays nobody: not those who come during it, and not a read inside of it.
func TestALongReadDelaysNobody(t *testing.T) {
	t.Parallel()
	db := storetest.Open(t, store.Options{Path: storetest.Closed(t)})
	err := one(t.Context(), db, func() {
		for range 3 {
			if err := one(t.Context(), db, func() {}); err != nil {
				t.Error(err)
			}
		}
		var all sync.WaitGroup
		for range 8 {
			all.Go(func() {
				if err := one(t.Context(), db, func() {}); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
	})
	if err != nil {
		t.Error(err)
	}
	if n := database.Readers(db.DB); n != 2 {
		t.Errorf("%d connections are open", n)
	}
}

// Whoever waits for a connection may leave.
func TestWaitingForAReaderEnds(t *testing.T) {
	t.Parallel()
	db := storetest.Open(t, store.Options{Path: storetest.Closed(t)})
	err := one(t.Context(), db, func() {
		err := one(t.Context(), db, func() {
			ctx, cancel := context.WithCancel(t.Context())
			left := make(chan error, 1)
			go func() { left <- one(ctx, db, func() {}) }()
			cancel()
			if err := <-left; !errors.Is(err, context.Canceled) {
				t.Errorf("the third reader got %v", err)
			}
		})
		if err != nil {
			t.Error(err)
		}
	})
	if err != nil {
		t.Error(err)
	}
}
