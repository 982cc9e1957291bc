package flaky

import (
	"os"
	"path/filepath"
	"testing"
)

// first reports whether this is the first time that the name is asked for, in this process or in an earlier one.
func first(t *testing.T, name string) bool {
	t.Helper()
	f, err := os.OpenFile(filepath.Join(os.Getenv("TINY_DIR"), name), os.O_CREATE|os.O_EXCL, 0o644)
	if os.IsExist(err) {
		return false
	}
	if err != nil {
		t.Fatal(err)
	}
	return f.Close() == nil
}

func TestOnce(t *testing.T) {
	if first(t, "once") {
		t.Fatal("the first time")
	}
}

func TestSubtests(t *testing.T) {
	t.Run("a (b) [c]|d/e", func(t *testing.T) {
		if first(t, "subtest") {
			t.Fatal("the first time")
		}
	})
	t.Run("other", func(t *testing.T) {
		if !first(t, "other") {
			t.Fatal("a test that passed was run again")
		}
	})
}
