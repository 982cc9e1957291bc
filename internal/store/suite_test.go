package store_test

import (
	"path/filepath"
	"testing"

	"go.uber.org/goleak"

	"chorus/internal/store"
	"chorus/internal/store/storetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestSuite(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t *testing.T) func() storetest.Store {
		path := filepath.Join(t.TempDir(), "home", "chorus.db")
		return func() storetest.Store {
			db, err := store.Open(t.Context(), store.Options{Path: path})
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
	})
}
