package eventfile

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"chorus/internal/await"
	"chorus/internal/digest"
	"chorus/internal/folders"
	"chorus/internal/plainfile"
)

// Handler carries out event files. A Rejected error is about the file, which is set aside. Any
// other error is about the environment, and the file is tried again later.
type Handler interface {
	// Say delivers an immediate event, only once per key.
	Say(ctx context.Context, file, key string, e Event) error
	// Keep stores an event with set times. over means that it was due for
	// the last time and the file is no longer needed.
	Keep(ctx context.Context, file, digest string, e Event) (over bool, err error)
	// Only removes the events of all files but these.
	Only(ctx context.Context, files []string) error
}

// Rejected says what is wrong with a file.
type Rejected struct{ Why string }

func (r *Rejected) Error() string { return r.Why }

// Folder is a folder of event files.
type Folder struct {
	Dir     string
	Handler Handler
	Log     *slog.Logger
	Pause   func(context.Context, time.Duration) // between attempts to read a file that is being written; nil sleeps
}

const (
	settle   = 100 * time.Millisecond // time without changes, so that a file is complete
	tries    = 3
	rescan   = 30 * time.Second
	atOnce   = 32
	rejected = "rejected"
)

// Run processes the folder until the context ends: the files that are there, and changes.
func (f *Folder) Run(ctx context.Context) {
	watcher := folders.Watch(func(path string) bool { return filepath.Ext(path) == ".json" })
	defer watcher.Close()
	tick := time.NewTicker(rescan)
	defer tick.Stop()
	for {
		_ = os.MkdirAll(f.Dir, 0o700) // so that it can be watched; Look reports errors
		watcher.Add(f.Dir)
		if err := f.Look(ctx); err != nil && ctx.Err() == nil {
			f.Log.Warn("event files cannot be read: "+err.Error(), "component", "events", "event", "events_not_read")
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		case <-watcher.Changes():
			f.pause(ctx, settle)
		}
	}
}

func (f *Folder) pause(ctx context.Context, d time.Duration) {
	if f.Pause != nil {
		f.Pause(ctx, d)
		return
	}
	await.For(ctx, d)
}

// Look processes the folder once.
func (f *Folder) Look(ctx context.Context) error {
	if err := os.MkdirAll(f.Dir, 0o700); err != nil {
		return err
	}
	entries, err := os.ReadDir(f.Dir)
	if err != nil {
		return err
	}
	var mu sync.Mutex
	var work sync.WaitGroup
	slots, kept := make(chan struct{}, atOnce), []string{}
	for _, entry := range entries {
		if entry.IsDir() || filepath.Ext(entry.Name()) != ".json" || strings.HasPrefix(entry.Name(), ".") {
			continue
		}
		slots <- struct{}{}
		work.Go(func() {
			defer func() { <-slots }()
			if f.file(ctx, entry.Name()) {
				mu.Lock()
				defer mu.Unlock()
				kept = append(kept, entry.Name())
			}
		})
	}
	work.Wait()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	slices.Sort(kept)
	return f.Handler.Only(ctx, kept)
}

// file carries out one file, and reports whether the file stays.
func (f *Folder) file(ctx context.Context, name string) (stays bool) {
	path := filepath.Join(f.Dir, name)
	data, info, err := read(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false
	}
	e, bad := Parse(data)
	for try := 1; err == nil && bad != nil && try < tries; try++ { // somebody may be writing it
		f.pause(ctx, settle<<(try-1))
		if data, info, err = read(path); err == nil {
			e, bad = Parse(data)
		}
	}
	if ctx.Err() != nil || errors.Is(err, fs.ErrNotExist) {
		return false
	}
	if bad != nil {
		bad = &Rejected{bad.Error()}
	}
	over, sum := false, digest.Of(data)
	switch {
	case err != nil:
	case bad != nil:
		err = bad
	case e.Type == Immediate:
		err = f.Handler.Say(ctx, name, fmt.Sprintf("%s/%s/%d", name, sum[:16], info.ModTime().UnixNano()), e)
		over = true
	default:
		over, err = f.Handler.Keep(ctx, name, sum, e)
	}
	var no *Rejected
	switch {
	case errors.As(err, &no):
		f.reject(name, no.Why)
		return false
	case err != nil:
		f.Log.Warn("an event file is tried again later: "+err.Error(), "component", "events", "event", "event_not_taken", "file", name)
		return true
	case over:
		if err := f.remove(name, sum); err != nil && !errors.Is(err, fs.ErrNotExist) { // it will be processed again without effect
			f.Log.Warn("an event file cannot be removed: "+err.Error(), "component", "events", "event", "event_not_removed", "file", name)
		}
		return false
	}
	return true
}

// remove removes a processed file. If another event was written under its name meanwhile, that one stays.
func (f *Folder) remove(name, sum string) error {
	path, aside := filepath.Join(f.Dir, name), filepath.Join(f.Dir, "."+name+".taken")
	if err := os.Rename(path, aside); err != nil {
		return err
	}
	data, _, err := read(aside)
	if err == nil && digest.Of(data) != sum {
		if err := os.Link(aside, path); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		} else if err != nil { // and one more after it
			return os.Rename(aside, filepath.Join(f.Dir, "again-"+digest.Of(data)+"-"+name))
		}
	}
	return os.Remove(aside)
}

// read reads a regular file of at most the allowed size. It refuses links and pipes.
func read(path string) ([]byte, fs.FileInfo, error) {
	file, info, err := plainfile.OpenNoLink(path)
	if errors.Is(err, plainfile.ErrNotPlain) {
		return nil, nil, &Rejected{"it is not a regular file"}
	}
	if err != nil {
		return nil, nil, err
	}
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(file, maxFile+1))
	return data, info, err
}

// reject sets a file aside, with the reason in a file next to it.
func (f *Folder) reject(name, why string) {
	dir := filepath.Join(f.Dir, rejected)
	err := os.MkdirAll(dir, 0o700)
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, name+".txt"), []byte(why+"\n"), 0o600)
	}
	if err == nil {
		err = os.Rename(filepath.Join(f.Dir, name), filepath.Join(dir, name))
	}
	f.Log.Warn("an event file was rejected: "+why, "component", "events", "event", "event_rejected", "file", name)
	if err != nil {
		f.Log.Warn("a rejected event file cannot be put aside: "+err.Error(), "component", "events", "event", "event_not_removed", "file", name)
	}
}
