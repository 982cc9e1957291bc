package documents

import (
	"context"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"chorus/internal/folders"
)

// How Watch looks. A change elsewhere is seen when somebody rings, or at the next question after the number of the last change.
const (
	askEvery = 400 * time.Millisecond
	lookAll  = 30 * time.Second      // for file systems that tell nothing
	settle   = 50 * time.Millisecond // so that a save is read whole
	passTime = 30 * time.Second
)

// Watch keeps files and documents equal until ctx ends. rings has a value when another machine says that it changed something;
// nil: nobody says so.
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
		return c.watched(rel) // a folder that came or went
	})
	defer watcher.Close()
	ask, all := time.NewTicker(askEvery), time.NewTicker(lookAll)
	defer ask.Stop()
	defer all.Stop()
	settled := time.NewTimer(settle) // what happened since the start
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
		watcher.Add(c.folders()...) // before the look, so that nothing happens between
		c.pass(ctx)
	}
}

func (c *Copies) pass(ctx context.Context) {
	within, cancel := context.WithTimeout(ctx, passTime)
	defer cancel()
	if err := c.SyncAll(within, ""); err != nil && ctx.Err() == nil {
		c.tell("the files of this home and the database could not be compared; it is tried again: " + err.Error())
	}
}

// moved reports whether a document was changed since the last pass.
func (c *Copies) moved(ctx context.Context) bool {
	last, err := c.Store.Last(ctx)
	c.mu.Lock()
	defer c.mu.Unlock()
	return err == nil && last != c.seen
}

// folders are those in which files of ours lie.
func (c *Copies) folders() []string {
	out := []string{c.Home.Dir()}
	for _, k := range c.Kinds {
		out = append(out, c.treeFolders(k)...)
		for _, pattern := range k.Patterns {
			dir := filepath.Dir(filepath.FromSlash(pattern))
			for ; dir != "."; dir = filepath.Dir(dir) {
				found, _ := filepath.Glob(filepath.Join(escapeGlob(c.Home.Dir()), dir)) // the patterns are ours
				out = append(out, found...)
			}
		}
	}
	return out
}

// treeFolders are the folders of trees, and those in which trees would lie.
func (c *Copies) treeFolders(k Kind) []string {
	var out []string
	for _, pattern := range k.Trees {
		tops, _ := filepath.Glob(filepath.Join(escapeGlob(c.Home.Dir()), filepath.FromSlash(pattern))) // the patterns are ours
		for _, top := range tops {
			c.walk(top, func(name string, d fs.DirEntry) bool {
				if d.IsDir() {
					out = append(out, c.Path(name))
				}
				return len(out) < mostInTree
			})
		}
		for dir := filepath.Dir(filepath.FromSlash(pattern)); dir != "."; dir = filepath.Dir(dir) {
			found, _ := filepath.Glob(filepath.Join(escapeGlob(c.Home.Dir()), dir))
			out = append(out, found...)
		}
	}
	return out
}

// watched reports whether a path is a folder in which files of ours lie.
func (c *Copies) watched(rel string) bool {
	for _, k := range c.Kinds {
		if k.tree(rel) != "" { // a folder in one
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
