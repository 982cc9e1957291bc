package notes

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"chorus/internal/tool"
)

func call(t *testing.T, book Notebook, name, args string) (string, bool) {
	t.Helper()
	set, err := tool.NewSet(New(book))
	if err != nil {
		t.Fatal(err)
	}
	n, corrected, err := set.Resolve(name, []byte(args))
	if err != nil {
		return err.Error(), true
	}
	res, err := n.Run(t.Context(), corrected)
	if err != nil {
		t.Fatal(err)
	}
	return res.Blocks.Text(), res.Failed
}

func TestNotes(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "deep", "notes.json")
	steps := []struct {
		name, args, want string
		failed           bool
	}{
		{"work_notes", `{"action":"list"}`, "There are no notes.", false},
		{"work_notes", `{"action":"get","key":"a"}`, "There is no note a.", false},
		{"WorkNotes", `{"action":"set","key":"a","value":"1"}`, "Noted a.", false},
		{"work_notes", `{"action":"set","key":" b ","value":"two\nlines"}`, "Noted b.", false},
		{"work_notes", `{"action":"get","key":"b"}`, "two\nlines", false},
		{"work_notes", `{"action":"list"}`, "a: 1\nb: two\nlines", false},
		{"work_notes", `{"action":"clear","key":"a"}`, "Cleared 1 notes.", false},
		{"work_notes", `{"action":"list"}`, "b: two\nlines", false},
		{"work_notes", `{"action":"clear","key":"zz"}`, "Cleared 0 notes.", false},
		{"work_notes", `{"action":"clear"}`, "Cleared 1 notes.", false},
		{"work_notes", `{"action":"list"}`, "There are no notes.", false},
		{"work_notes", `{"action":"set"}`, "set needs a key.", true},
		{"work_notes", `{"action":"get","key":" "}`, "get needs a key.", true},
		{"work_notes", `{"action":"set","key":"a","value":"` + strings.Repeat("x", maxValue+1) + `"}`, "A key may have 100 bytes and a value 16384; write longer texts to a file.", true},
	}
	for _, step := range steps {
		// A new File each time: what counts is on disk.
		text, failed := call(t, NewFile(path), step.name, step.args)
		if text != step.want || failed != step.failed {
			t.Errorf("%s: %q failed=%v, want %q", step.args, text, failed, step.want)
		}
	}
	if text, failed := call(t, NewFile(path), "work_notes", `{"action":"dance"}`); !failed || !strings.Contains(text, "one of [set get list clear]") {
		t.Errorf("unknown action: %q", text)
	}
}

func TestBrokenFileIsSetAside(t *testing.T) {
	t.Parallel()
	for i, broken := range []string{"{half", "[]", "null", ""} {
		dir := t.TempDir()
		path := filepath.Join(dir, "notes.json")
		for round := 1; round <= 2; round++ {
			if err := os.WriteFile(path, []byte(broken), 0o600); err != nil {
				t.Fatal(err)
			}
			text, failed := call(t, NewFile(path), "work_notes", `{"action":"set","key":"a","value":"1"}`)
			if want := fmt.Sprintf("the notes could not be read and were renamed to notes.json.broken-%d; start over", round); text != want || !failed {
				t.Errorf("%d: %q", i, text)
			}
			data, err := os.ReadFile(fmt.Sprintf("%s.broken-%d", path, round))
			if err != nil || string(data) != broken {
				t.Errorf("%d: set aside %q, %v", i, data, err)
			}
		}
		if text, failed := call(t, NewFile(path), "work_notes", `{"action":"set","key":"a","value":"1"}`); text != "Noted a." || failed {
			t.Errorf("%d: the next one: %q", i, text)
		}
	}
}

func TestManyAtOnce(t *testing.T) {
	t.Parallel()
	book := NewFile(filepath.Join(t.TempDir(), "notes.json"))
	var group sync.WaitGroup
	for i := range 20 {
		group.Go(func() {
			if err := book.Set(t.Context(), fmt.Sprint("k", i), "v"); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	if all, err := book.List(t.Context()); err != nil || len(all) != 20 {
		t.Errorf("%d notes, %v", len(all), err)
	}
}

func TestUnwritable(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if text, failed := call(t, NewFile(filepath.Join(file, "notes.json")), "work_notes", `{"action":"set","key":"a","value":"1"}`); !failed {
		t.Errorf("%q", text)
	}
}
