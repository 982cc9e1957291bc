package backup

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"chorus/internal/chat"
	"chorus/internal/database"
	"chorus/internal/journal"
	"chorus/internal/store"
	"chorus/internal/store/dbcopy"
)

const thread = chat.ThreadID("cli:home:one@main")

// home is a home with conversations, blobs, agents and things that are not backed up.
func home(t *testing.T) (string, *store.DB) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "home")
	for name, text := range map[string]string{
		"agents/ada/agent.json": `{"name":"ada"}`, "config/shared.yaml": "sandbox: host\n", "token": "secret\n",
		"logs/x.log": "no", "cache/y": "no", "locks/z.lock": "1", "walls/a/b/big": "no", "search.db": "no",
	} {
		path := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("agents/ada", filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	db := open(t, dir)
	for n := range 3 {
		hash, err := db.PutBlob(t.Context(), bytes.Repeat([]byte{byte(n)}, 100_000))
		if err != nil {
			t.Fatal(err)
		}
		say(t, db, fmt.Sprint("word ", n), chat.Image{Blob: hash, MediaType: "image/png"})
	}
	return dir, db
}

func open(t *testing.T, dir string) *store.DB {
	t.Helper()
	db, err := store.Open(t.Context(), store.Options{Path: filepath.Join(dir, "chorus.db"), BlobDir: filepath.Join(dir, "blobs")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

func say(t *testing.T, db *store.DB, text string, more ...chat.Block) {
	t.Helper()
	_, err := db.Commit(context.Background(), journal.Commit{Thread: thread, Create: &journal.Thread{}, Events: []chat.Event{{Body: chat.Received{Blocks: append(chat.TextBlocks(text), more...)}}}})
	if err != nil {
		t.Error(err)
	}
}

func source(dir string, db *store.DB) Source {
	return Source{Dir: dir, Blobs: filepath.Join(dir, "blobs"), DB: dbcopy.Source{DB: db}, Copies: dbcopy.Copies{}}
}

// A backup that is taken while others write is one state of the home, and comes back as it was.
func TestBackupOfAHomeInUse(t *testing.T) {
	t.Parallel()
	dir, db := home(t)
	stop, wrote := make(chan struct{}), 0
	var writing sync.WaitGroup
	writing.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				say(t, db, strings.Repeat("more ", 500))
				wrote++
			}
		}
	})
	var file bytes.Buffer
	_, err := Write(t.Context(), &file, source(dir, db), nil)
	close(stop)
	writing.Wait()
	if err != nil || wrote == 0 {
		t.Fatal(err, wrote)
	}

	to := filepath.Join(t.TempDir(), "restored")
	got, err := Restore(t.Context(), &file, Target{Copies: dbcopy.Copies{}, Dir: to})
	if err != nil || got.Aside != "" {
		t.Fatal(got.Aside, err)
	}
	for name, want := range map[string]bool{"agents/ada/agent.json": true, "link/agent.json": true, "config/shared.yaml": true, "token": true, "logs": false, "cache": false, "locks": false, "walls": false, "search.db": false} {
		if _, err := os.Stat(filepath.Join(to, name)); (err == nil) != want {
			t.Errorf("%s is there: %v, want %v", name, err == nil, want)
		}
	}
	restored := open(t, to)
	events, err := restored.Events(t.Context(), thread, 0, 100_000)
	if err != nil || len(events) < 3 {
		t.Fatal(len(events), err)
	}
	for n, ev := range events {
		if ev.Seq != int64(n+1) {
			t.Fatalf("event %d has the number %d", n+1, ev.Seq)
		}
	}
	if faults, looked, err := restored.CheckBlobs(t.Context(), true); err != nil || len(faults) > 0 || looked != 3 {
		t.Errorf("%v %d %v", faults, looked, err)
	}
}

// Whatever is cut from a backup or changed in it, nothing of the home is touched.
func TestDamagedBackupChangesNothing(t *testing.T) {
	t.Parallel()
	dir, db := home(t)
	var file bytes.Buffer
	if _, err := Write(t.Context(), &file, source(dir, db), nil); err != nil {
		t.Fatal(err)
	}
	whole := file.Bytes()
	to := filepath.Join(t.TempDir(), "home")
	if err := errors.Join(os.MkdirAll(to, 0o700), os.WriteFile(filepath.Join(to, "mine"), []byte("x"), 0o600)); err != nil {
		t.Fatal(err)
	}
	harmed := map[string][]byte{"empty": nil, "no archive": []byte(strings.Repeat("words ", 1000))}
	for i := range 20 {
		harmed[fmt.Sprint("cut ", i)] = whole[:rand.IntN(len(whole)-2048)]
		changed := bytes.Clone(whole)
		changed[rand.IntN(len(whole)-2048)] ^= 1
		harmed[fmt.Sprint("changed ", i)] = changed
	}
	for name, data := range harmed {
		got, err := Restore(t.Context(), bytes.NewReader(data), Target{Copies: dbcopy.Copies{}, Dir: to, Replace: true})
		if err == nil && !strings.HasPrefix(name, "changed") {
			t.Errorf("%s: it was restored", name)
		}
		if err == nil { // a byte that only pads, or a time of the archive itself
			if got.Aside == "" {
				t.Fatalf("%s: nothing was put aside", name)
			}
			if faults, _, err := open(t, to).CheckBlobs(t.Context(), true); err != nil || len(faults) > 0 {
				t.Errorf("%s: %v %v", name, faults, err)
			}
			return
		}
		if entries, _ := os.ReadDir(to); len(entries) != 1 || entries[0].Name() != "mine" {
			t.Fatalf("%s: the home holds %v", name, entries)
		}
	}
}

// A home that is there is not replaced without being asked for, and is kept.
func TestRestoreOverAHome(t *testing.T) {
	t.Parallel()
	dir, db := home(t)
	var file bytes.Buffer
	if _, err := Write(t.Context(), &file, source(dir, db), nil); err != nil {
		t.Fatal(err)
	}
	say(t, db, "after the backup")
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := Restore(t.Context(), bytes.NewReader(file.Bytes()), Target{Copies: dbcopy.Copies{}, Dir: dir}); !errors.Is(err, ErrInhabited) {
		t.Fatal(err)
	}
	got, err := Restore(t.Context(), bytes.NewReader(file.Bytes()), Target{Copies: dbcopy.Copies{}, Dir: dir, Replace: true})
	if err != nil {
		t.Fatal(err)
	}
	for where, want := range map[string]int{dir: 3, got.Aside: 4} {
		events, err := open(t, where).Events(t.Context(), thread, 0, 100)
		if err != nil || len(events) != want {
			t.Errorf("%s has %d events, want %d: %v", where, len(events), want, err)
		}
	}
}

// Two restores in one second put what was there before into two folders; the second one failed.
func TestTwoRestoresInOneSecond(t *testing.T) {
	t.Parallel()
	dir, db := home(t)
	var file bytes.Buffer
	if _, err := Write(t.Context(), &file, source(dir, db), nil); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	at, asides := time.Now(), map[string]bool{}
	for range 3 {
		got, err := Restore(t.Context(), bytes.NewReader(file.Bytes()), Target{Copies: dbcopy.Copies{}, Dir: dir, Replace: true, Now: func() time.Time { return at }})
		if err != nil {
			t.Fatal(err)
		}
		asides[got.Aside] = true
	}
	if len(asides) != 3 {
		t.Errorf("folders: %v", asides)
	}
}

// A restore that is killed on its way leaves a home that refuses to start, and the next one ends it.
func TestInterruptedRestore(t *testing.T) {
	t.Parallel()
	dir, db := home(t)
	var file bytes.Buffer
	if _, err := Write(t.Context(), &file, source(dir, db), nil); err != nil {
		t.Fatal(err)
	}
	to := filepath.Join(t.TempDir(), "home")
	if _, err := Restore(t.Context(), bytes.NewReader(file.Bytes()), Target{Copies: dbcopy.Copies{}, Dir: to}); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(to, "chorus.db")); err != nil { // its last step
		t.Fatal(err)
	}
	path := filepath.Join(to, "chorus.db")
	if _, err := store.Open(t.Context(), store.Options{Path: path}); !errors.Is(err, database.ErrMissing) {
		t.Fatal(err)
	}
	if _, err := Restore(t.Context(), bytes.NewReader(file.Bytes()), Target{Copies: dbcopy.Copies{}, Dir: to, Replace: true}); err != nil {
		t.Fatal(err)
	}
	open(t, to)
}
