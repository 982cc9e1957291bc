package store_test

import (
	"testing"

	"chorus/internal/store"
	"chorus/internal/store/pgtest"
	"chorus/internal/store/storetest"
)

// The whole suite, on PostgreSQL: each home is a database, each handle a node.
func TestSuiteOnPostgres(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t *testing.T) func() storetest.Store {
		url := pgtest.Database(t)
		return func() storetest.Store {
			db, err := store.Open(t.Context(), store.Options{URL: url})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				if err := db.Close(); err != nil {
					t.Error(err)
				}
			})
			return storetest.Of(db)
		}
	})
}
