package config

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"chorus/internal/folders"
)

// WatchOptions say what to watch and whom to tell. The functions are
// called one at a time, in Watch's goroutine.
type WatchOptions struct {
	Options
	Changed func(*Files)   // a new version without errors; its warnings are in Problems
	Broken  func(Problems) // a new version with errors: the previous one stays in force. Called once for each
	Settle  time.Duration  // quiet time after a change, so that a save is read completely; 0: 100 ms
	Known   *Files         // the version the caller has; nil: the one that exists when Watch begins
	Rescan  time.Duration  // interval for checks without notification, for file systems without any; 0: 30 s
	// Ready is called once all further changes will be noticed; nil: nobody waits for it.
	Ready func()
}

// Watch rereads the folder whenever it changes, until ctx ends. A version that is broken for a reason outside
// the folder (such as a missing file that a variable names) is tried again at every rescan.
func Watch(ctx context.Context, o WatchOptions) error {
	home := filepath.Dir(o.Settings)
	watcher := folders.Watch(func(path string) bool { // in the home only settings.json and the folder itself matter: the database next to them is busy
		return o.Settings == "" || filepath.Dir(path) != home || path == o.Settings || path == o.Dir
	})
	defer watcher.Close()
	look := func() string {
		watcher.Add(watched(o.Options)...)
		return digest(o.Options)
	}
	return watch(ctx, o, watcher.Changes(), look, ReadFiles)
}

// watch implements the sequence: settle, compare, read, report.
// Everything it needs from outside is passed in.
func watch(ctx context.Context, o WatchOptions, changes <-chan struct{}, look func() string, read func(Options) (*Files, Problems)) error {
	o.Settle = cmp.Or(o.Settle, 100*time.Millisecond)
	o.Rescan = cmp.Or(o.Rescan, 30*time.Second)
	known, told := look(), ""
	rescan := time.NewTicker(o.Rescan)
	defer rescan.Stop()
	settled := time.NewTimer(o.Settle)
	settled.Stop()
	defer settled.Stop()
	if o.Known != nil && o.Known.digest != known {
		known = o.Known.digest
		settled.Reset(o.Settle)
	}
	if o.Ready != nil {
		o.Ready()
	}
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-changes:
			settled.Reset(o.Settle)
			continue
		case <-rescan.C:
		case <-settled.C:
		}
		now := look()
		if now == known && told == "" {
			continue
		}
		files, problems := read(o.Options)
		if look() != now { // it was written to meanwhile: that triggers another change, or the next check finds it
			settled.Reset(o.Settle)
			continue
		}
		known = now
		if err := problems.Err(); err != nil {
			if text := err.Error(); text != told {
				told = text
				o.Broken(problems)
			}
			continue
		}
		told = ""
		o.Changed(files)
	}
}

func watched(o Options) []string {
	dirs := []string{o.Dir, filepath.Join(o.Dir, "guilds"), filepath.Join(o.Dir, "bots")}
	if o.Settings != "" {
		dirs = append(dirs, filepath.Dir(o.Settings))
	}
	return dirs
}

// digest changes when a file of the folder changes, including files that prompts are read from.
func digest(o Options) string {
	h := sha256.New()
	paths := []string{o.Settings}
	for _, dir := range watched(o)[:3] {
		entries, _ := os.ReadDir(dir)
		for _, e := range entries {
			if !e.IsDir() {
				paths = append(paths, filepath.Join(dir, e.Name()))
			}
		}
	}
	for _, path := range paths {
		info, err := os.Stat(path)
		if err != nil || !info.Mode().IsRegular() {
			continue
		}
		fmt.Fprintf(h, "%s\x00%d\x00", path, info.Size())
		if err := pour(h, path); err != nil {
			fmt.Fprint(h, err)
		}
	}
	return fmt.Sprintf("%x", h.Sum(nil))
}

func pour(w io.Writer, path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	_, err = io.Copy(w, io.LimitReader(f, largestFile+1))
	return errors.Join(err, f.Close())
}
