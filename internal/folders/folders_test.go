package folders

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

func TestChangesAreTold(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	w := Watch(func(path string) bool { return filepath.Ext(path) == ".json" })
	w.Add(filepath.Join(dir, "missing"), dir)
	write := func(name string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("a.json")
	select {
	case <-w.Changes():
	case <-time.After(10 * time.Second):
		t.Fatal("nothing was told")
	}
	w.Close()
	for range 2 { // what came before it was closed
		select {
		case <-w.Changes():
		default:
		}
	}
	write("b.json")
	select {
	case <-w.Changes():
		t.Error("told after it was closed")
	default:
	}
}
