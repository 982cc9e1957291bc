package history

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

func TestHistoryIsThereInTheNextSession(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "home", "history")
	first := In(path)
	for _, one := range [][2]string{{"/a", "fix it"}, {"/a", "two\nlines"}, {"/b", "elsewhere"}, {"/a", " my password"}, {"/a", "  "}, {"/a", "two\nlines"},
		{"/a", strings.Repeat("x", longest+1)}} {
		if err := first.Add(one[0], one[1]); err != nil {
			t.Fatal(err)
		}
	}
	all := In(path).Load()
	if got := Texts(all, "/a"); !slices.Equal(got, []string{"fix it", "two\nlines"}) {
		t.Errorf("of the folder: %q", got)
	}
	if got := Texts(all, ""); !slices.Equal(got, []string{"fix it", "two\nlines", "elsewhere", "two\nlines"}) {
		t.Errorf("of all: %q", got)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("others can read it: %v %v", info.Mode(), err)
	}
}

// TestHistoryAfterAKill: a line that was cut off costs itself alone.
func TestHistoryAfterAKill(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "history")
	f := In(path)
	if err := f.Add("/a", "first"); err != nil {
		t.Fatal(err)
	}
	file, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := file.WriteString(`{"at":"2026-01-01T00:00:00Z","dir":"/a","te`); err != nil {
		t.Fatal(err)
	}
	file.Close()
	if err := f.Add("/a", "second"); err != nil {
		t.Fatal(err)
	}
	if got := Texts(f.Load(), ""); !slices.Equal(got, []string{"first", "second"}) {
		t.Errorf("kept %q", got)
	}
}

func TestHistoryOfTwoTerminals(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "history")
	var both sync.WaitGroup
	for who := range 2 {
		both.Go(func() {
			f := In(path)
			for n := range 40 {
				if err := f.Add("/a", fmt.Sprintf("%d says %d %s", who, n, strings.Repeat("x", 30_000))); err != nil {
					t.Error(err)
				}
			}
		})
	}
	both.Wait()
	all := In(path).Load()
	if _, err := os.Stat(path + ".old"); err != nil {
		t.Errorf("a full file was not set aside: %v", err)
	}
	for who := range 2 {
		last := -1
		for _, e := range all {
			var n int
			if _, err := fmt.Sscanf(e.Text, fmt.Sprintf("%d says %%d", who), &n); err != nil {
				continue
			}
			if last >= 0 && n != last+1 {
				t.Errorf("%d: %d behind %d", who, n, last)
			}
			last = n
		}
		if last != 39 {
			t.Errorf("%d: the last is %d", who, last)
		}
	}
}
