package atomicfile

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func TestWrite(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "f")
	for _, text := range []string{"one", "two"} {
		if err := Write(path, []byte(text), 0o640); err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(path); err != nil || string(got) != text {
			t.Errorf("got %q (%v)", got, err)
		}
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o640 {
		t.Errorf("mode %v (%v)", info.Mode(), err)
	}
	blocked := filepath.Join(dir, "full")
	if err := os.MkdirAll(filepath.Join(blocked, "x"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := Write(blocked, []byte("x"), 0o600); err == nil {
		t.Error("a folder was overwritten")
	}
	if err := Write(filepath.Join(dir, "no", "f"), nil, 0o600); err == nil {
		t.Error("written into a folder that is not there")
	}
	if left, err := filepath.Glob(filepath.Join(dir, ".*")); err != nil || len(left) != 0 {
		t.Errorf("left behind: %v (%v)", left, err)
	}
}

// A file goes with what killed writers left of it, and nothing else does.
func TestRemove(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "a[1].json")
	for _, name := range []string{"a[1].json", ".a[1].json.tmp-123", ".a1.json.tmp-1", "a[1].json.tmp-1", "b.json"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 { // the second time nothing is there
		if err := Remove(path); err != nil {
			t.Fatal(err)
		}
	}
	var left []string
	entries, err := os.ReadDir(dir)
	for _, e := range entries {
		left = append(left, e.Name())
	}
	if want := []string{".a1.json.tmp-1", "a[1].json.tmp-1", "b.json"}; err != nil || !slices.Equal(left, want) {
		t.Errorf("left are %q (%v), want %q", left, err, want)
	}
	if err := Remove(filepath.Join(dir, "no", "f")); err != nil {
		t.Errorf("in a folder that is not there: %v", err)
	}
	if err := errors.Join(os.MkdirAll(filepath.Join(path, "x"), 0o700), Remove(path)); err == nil {
		t.Error("a folder was removed")
	}
}
