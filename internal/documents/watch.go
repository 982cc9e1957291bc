package documents

import (
	"context"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"chorus/internal/folders"
)

// The timing of Watch. A change elsewhere is noticed on a notification, or
// at the next query for the number of the last change.
const (
	askEvery = 400 * time.Millisecond
	lookAll  = 30 * time.Second      // for file systems that report no changes
	settle   = 50 * time.Millisecond // so that a save is complete when read
	passTime = 30 * time.Second
)

// Watch keeps files and documents equal until ctx ends. notified receives a value when
// another machine says that it changed something; it may be nil.
func (c *Copies) Watch(ctx context.Context, notified <-chan struct{}) {
	watcher := folders.Watch(func(at string) bool {
		rel, err := filepath.Rel(c.Home.Dir(), at)
		if err != nil {
			return false
		}
		rel = filepath.ToSlash(rel)
		if _, ok := c.kind(rel); ok {
			return true
		}
		return c.watched(rel) // a folder that was created or removed
	})
	defer watcher.Close()
	ask, all := time.NewTicker(askEvery), time.NewTicker(lookAll)
	defer ask.Stop()
	defer all.Stop()
	settled := time.NewTimer(settle) // for what happened since the start
	defer settled.Stop()
	watcher.Add(c.folders()...)
	for {
		select {
		case <-ctx.Done():
			return
		case <-watcher.Changes():
			settled.Reset(settle)
			continue
		case <-ask.C:
			if !c.moved(ctx) {
				continue
			}
		case <-notified:
		case <-settled.C:
		case <-all.C:
		}
		watcher.Add(c.folders()...) // before the check, so that nothing is missed in between
		c.pass(ctx)
	}
}

func (c *Copies) pass(ctx context.Context) {
	within, cancel := context.WithTimeout(ctx, passTime)
	defer cancel()
	if err := c.SyncAll(within, ""); err != nil && ctx.Err() == nil {
		c.tell("the files of this home and the database could not be compared and will be compared again: " + err.Error())
	}
}

// moved reports whether a document was changed since the last pass.
func (c *Copies) moved(ctx context.Context) bool {
	last, err := c.Store.Last(ctx)
	c.mu.Lock()
	defer c.mu.Unlock()
	return err == nil && last != c.seen
}

// folders returns the folders with files of ours.
func (c *Copies) folders() []string {
	out := []string{c.Home.Dir()}
	for _, k := range c.Kinds {
		out = append(out, c.treeFolders(k)...)
		for _, pattern := range k.Patterns {
			out = append(out, c.above(pattern)...)
		}
	}
	return out
}

// above returns the folders in which files that match a pattern are or would be.
func (c *Copies) above(pattern string) []string {
	var out []string
	for dir := path.Dir(pattern); dir != "."; dir = path.Dir(dir) {
		for _, name := range c.glob(dir) {
			out = append(out, c.Path(name))
		}
	}
	return out
}

// treeFolders returns the folders of trees, and those in which trees would be.
func (c *Copies) treeFolders(k Kind) []string {
	var out []string
	for _, pattern := range k.Trees {
		for _, top := range c.glob(pattern) {
			c.walk(top, func(name string, d fs.DirEntry) bool {
				if d.IsDir() {
					out = append(out, c.Path(name))
				}
				return len(out) < mostInTree
			})
		}
		out = append(out, c.above(pattern)...)
	}
	return out
}

// watched reports whether a path is a folder with files of ours.
func (c *Copies) watched(rel string) bool {
	for _, k := range c.Kinds {
		if k.tree(rel) != "" { // a folder in a tree
			return true
		}
		patterns := slices.Clone(k.Patterns)
		for _, tree := range k.Trees {
			patterns = append(patterns, tree+"/*")
		}
		for _, pattern := range patterns {
			for dir := filepath.Dir(pattern); dir != "."; dir = filepath.Dir(dir) {
				if ok, _ := filepath.Match(dir, rel); ok && !strings.HasPrefix(filepath.Base(rel), ".") {
					return true
				}
			}
		}
	}
	return false
}
