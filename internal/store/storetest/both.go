package storetest

import (
	"path/filepath"
	"testing"

	"chorus/internal/store"
	"chorus/internal/store/pgtest"
)

// Both runs a test on SQLite and on PostgreSQL. open opens the same
// database each time; it is closed when the test ends.
func Both(t *testing.T, test func(t *testing.T, open func() *store.DB)) {
	t.Helper()
	for _, where := range []string{"SQLite", "PostgreSQL"} {
		t.Run(where, func(t *testing.T) {
			t.Parallel()
			o := store.Options{}
			if where == "SQLite" {
				o.Path = filepath.Join(t.TempDir(), "chorus.db")
			} else {
				o.URL = pgtest.Database(t)
			}
			test(t, func() *store.DB {
				t.Helper()
				return Open(t, o)
			})
		})
	}
}
