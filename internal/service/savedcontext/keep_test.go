package savedcontext

import (
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"chorus/internal/datadir"
	"chorus/internal/journal"
	"chorus/internal/operation"
	"chorus/internal/settings"
	"chorus/internal/store"
	"chorus/internal/store/documents"
	"chorus/internal/store/storetest"
)

// fixture is a home with a clock.
type fixture struct {
	*testing.T
	*Contexts
	later atomic.Int64 // how far the clock is ahead
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	f := &fixture{T: t}
	home := datadir.At(t.TempDir())
	db := storetest.Open(t, store.Options{Path: home.DB(), Now: func() time.Time { return time.Now().Add(time.Duration(f.later.Load())) }})
	s := &settings.Settings{Home: home}
	s.UseDocuments(documents.New(db), true)
	f.Contexts = &Contexts{DB: db, Home: home, Log: slog.New(slog.DiscardHandler), Settings: s}
	return f
}

func (f *fixture) save(id, key string, quiet time.Time) (store.SavedContext, error) {
	row := journal.Thread{ID: room, Agent: "main", Place: "g/1"}
	return f.keep(f.Context(), Saving{Key: key, Quiet: quiet}, row, savedFile{ID: id, At: time.Now(), Summary: "heliotrope", Messages: []savedMessage{by("42", "ada", "heliotrope words")}})
}

// killedAt saves a context, and dies after a step.
func (f *fixture) killedAt(step, id, key string) {
	f.Helper()
	died := make(chan struct{})
	f.step = func(done string) {
		if done == step {
			panic(died)
		}
	}
	defer func() {
		f.step = nil
		if r := recover(); r != died {
			f.Fatalf("it did not die after %s: %v", step, r)
		}
	}()
	_, _ = f.save(id, key, time.Time{})
}

func (f *fixture) sweep(want int) {
	f.Helper()
	if n, err := f.Sweep(f.Context()); n != want || err != nil {
		f.Fatalf("%d were removed, %v; want %d", n, err, want)
	}
}

// files returns what is in the folder of saved contexts.
func (f *fixture) files() (names []string) {
	f.Helper()
	entries, err := os.ReadDir(filepath.Join(filepath.Dir(f.Home.ThreadDir(room)), "sessions"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		f.Fatal(err)
	}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// texts returns the texts for other machines.
func (f *fixture) texts() (names []string) {
	f.Helper()
	heads, err := documents.New(f.DB).List(f.Context(), "contexts/")
	if err != nil {
		f.Fatal(err)
	}
	for _, h := range heads {
		if h.There() {
			names = append(names, h.Name)
		}
	}
	return names
}

func (f *fixture) rows() (ids []string) {
	f.Helper()
	list, err := f.DB.SavedContexts(f.Context(), store.ContextFilter{})
	if err != nil {
		f.Fatal(err)
	}
	for _, c := range list {
		ids = append(ids, c.ID)
	}
	return ids
}

// Whatever a killed process left of a context is removed, after a while and not before, and nothing of others is.
func TestWhatAKilledProcessLeftIsRemoved(t *testing.T) {
	t.Parallel()
	for _, step := range []string{"begun", "text", "unfinished", "file"} {
		t.Run(step, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			kept, err := f.save("kept", "", time.Time{})
			if err != nil {
				t.Fatal(err)
			}
			if step == "unfinished" { // in the middle of the file
				f.killedAt("text", "lost", "")
				if err := os.WriteFile(filepath.Join(filepath.Dir(kept.File), ".lost.json.tmp-1"), []byte("heliotr"), 0o600); err != nil {
					t.Fatal(err)
				}
			} else {
				f.killedAt(step, "lost", "")
			}
			before := append(f.files(), f.texts()...)
			f.sweep(0)
			f.later.Store(int64(LeftAfter - time.Minute))
			f.sweep(0)
			if now := append(f.files(), f.texts()...); !slices.Equal(now, before) {
				t.Errorf("there are %q, and there were %q", now, before)
			}
			f.later.Store(int64(LeftAfter + time.Minute))
			f.sweep(1)
			f.sweep(0)
			if got := f.files(); !slices.Equal(got, []string{"kept.json"}) {
				t.Errorf("files: %q", got)
			}
			if got := f.texts(); !slices.Equal(got, []string{"contexts/kept.json"}) {
				t.Errorf("texts: %q", got)
			}
			if got := f.rows(); !slices.Equal(got, []string{"kept"}) {
				t.Errorf("rows: %q", got)
			}
			told, err := documents.New(f.DB).List(t.Context(), "forgotten/")
			if err != nil || len(told) != 1 {
				t.Errorf("other machines are told of %+v, %v", told, err)
			}
		})
	}
}

// Who removes it can be killed too: the next one goes on.
func TestRemovingGoesOn(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.killedAt("file", "lost", "")
	f.later.Store(int64(2 * LeftAfter))
	if left, err := f.DB.LeftContexts(t.Context(), f.DB.Now().Add(-LeftAfter)); err != nil || len(left) != 1 {
		t.Fatalf("%+v, %v", left, err)
	}
	if err := os.Remove(filepath.Join(filepath.Dir(f.Home.ThreadDir(room)), "sessions", "lost.json")); err != nil {
		t.Fatal(err)
	}
	f.sweep(1)
	if got := append(f.files(), f.texts()...); len(got) > 0 {
		t.Errorf("left are %q", got)
	}
}

// A process that slept for so long in the middle of saving keeps nothing, leaves nothing, and says what to do.
func TestSavingThatTookTooLong(t *testing.T) {
	t.Parallel()
	for _, asleep := range []string{"begun", "text", "file"} {
		f := newFixture(t)
		f.step = func(done string) {
			if done == asleep {
				f.later.Add(int64(2 * LeftAfter))
				f.sweep(1)
			}
		}
		if _, err := f.save("slow", "", time.Time{}); operation.KindOf(err) != operation.Conflict || !strings.Contains(err.Error(), "save it again") {
			t.Errorf("asleep after %s: %v", asleep, err)
		}
		if got := slices.Concat(f.files(), f.texts(), f.rows()); len(got) > 0 {
			t.Errorf("asleep after %s, left are %q", asleep, got)
		}
		f.step = nil
		if _, err := f.save("again", "", time.Time{}); err != nil {
			t.Error(err)
		}
		f.later.Add(int64(2 * LeftAfter))
		f.sweep(0)
		if got := f.rows(); !slices.Equal(got, []string{"again"}) {
			t.Errorf("rows: %q", got)
		}
	}
}

// A second attempt with the same key replaces what the first left, also the text for other machines.
func TestSavingAgainAfterAKill(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.killedAt("file", "one", "key")
	f.later.Store(int64(LeftAfter - time.Minute))
	saved, err := f.save("one", "key", time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	f.later.Add(int64(2 * LeftAfter))
	f.sweep(0)
	file, err := os.ReadFile(saved.File)
	if err != nil {
		t.Fatal(err)
	}
	if text, err := f.Settings.Documents.Kept(t.Context(), "contexts/one.json"); err != nil || string(text) != string(file) {
		t.Errorf("other machines read %q, %v; the file has %q", text, err, file)
	}
	// Also if what the first left is removed already.
	f.killedAt("file", "two", "key")
	f.later.Add(int64(2 * LeftAfter))
	f.sweep(1)
	if _, err := f.save("two", "key", time.Time{}); err != nil {
		t.Fatal(err)
	}
	if got := f.texts(); !slices.Equal(got, []string{"contexts/one.json", "contexts/two.json"}) {
		t.Errorf("texts: %q", got)
	}
	// Somebody else was faster.
	if _, err := f.save("two", "key", time.Time{}); err != nil {
		t.Fatal(err)
	}
	f.later.Add(int64(2 * LeftAfter))
	f.sweep(0)
	if got := f.files(); !slices.Equal(got, []string{"one.json", "two.json"}) {
		t.Errorf("files: %q", got)
	}
}

// Of one quiet time one context is kept, and of the other nothing is left.
func TestOneContextForAQuietTime(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	quiet := time.Now()
	for _, id := range []string{"one", "two"} {
		if _, err := f.save(id, "", quiet); err != nil {
			t.Fatal(err)
		}
	}
	f.later.Add(int64(2 * LeftAfter))
	f.sweep(0)
	if got := slices.Concat(f.rows(), f.files(), f.texts()); !slices.Equal(got, []string{"one", "one.json", "contexts/one.json"}) {
		t.Errorf("there are %q", got)
	}
}
