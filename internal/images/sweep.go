package images

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Swept says what a sweep came to.
type Swept struct {
	Files, Bytes         int64 // that were removed
	FilesLeft, BytesLeft int64
}

// file is a picture on disk; used is its modification time, which every use sets.
type file struct {
	path string
	hash string
	size int64
	used time.Time
}

// tmpAge is when a file in the making counts as left behind by a crash.
const tmpAge = time.Hour

// Sweep removes pictures that nobody used for MaxAge, and then, if there are still more
// than MaxBytes, the least recently used ones down to nine tenths of that, so that
// the next picture does not sweep again. It runs by itself on writes; a process that only
// reads may call it now and then. Files that are not pictures of ours stay.
func (c *Cache) Sweep() (Swept, error) {
	now := c.opt.Now()
	files, err := c.list()
	if err != nil {
		return Swept{}, fmt.Errorf("sweep picture cache: %w", err)
	}
	slices.SortFunc(files, func(a, b file) int {
		if d := a.used.Compare(b.used); d != 0 {
			return d
		}
		return strings.Compare(a.path, b.path)
	})
	var out Swept
	for _, f := range files {
		out.BytesLeft += f.size
	}
	room := c.opt.MaxBytes
	if out.BytesLeft > room {
		room = room / 10 * 9
	}
	oldest := now.Add(-c.opt.MaxAge)
	there := map[string]bool{}
	for i, f := range files {
		// The newest stays in any case: somebody is about to read it.
		crowded := out.BytesLeft > room && i < len(files)-1
		if !f.used.Before(oldest) && !crowded {
			there[f.hash] = true
			continue
		}
		if rmErr := os.Remove(f.path); rmErr != nil && !errors.Is(rmErr, fs.ErrNotExist) {
			err = errors.Join(err, rmErr)
			there[f.hash] = true
			continue
		}
		out.Files, out.Bytes, out.BytesLeft = out.Files+1, out.Bytes+f.size, out.BytesLeft-f.size
	}
	out.FilesLeft = int64(len(there))
	c.mu.Lock()
	defer c.mu.Unlock()
	c.total, c.swept = out.BytesLeft, now
	if err = errors.Join(err, c.index.prune(oldest, func(e entry) bool { return there[e.Hash] || c.has(e.picture()) })); err != nil {
		return out, fmt.Errorf("sweep picture cache: %w", err)
	}
	return out, nil
}

// list finds the pictures, and removes what crashes left half made.
func (c *Cache) list() ([]file, error) {
	names, err := os.ReadDir(c.dir)
	if err != nil {
		return nil, err
	}
	var files []file
	for _, entry := range names {
		name := entry.Name()
		hash, ext, _ := strings.Cut(name, ".")
		left, _ := filepath.Match(tmpPattern, name)
		if !left && (!isHash(hash) || !isExtension(ext)) || !entry.Type().IsRegular() {
			continue
		}
		info, err := entry.Info()
		if err != nil {
			continue // somebody else removed it
		}
		if left {
			// Its time is the file system's own, whatever the cache's clock says.
			if time.Since(info.ModTime()) > tmpAge {
				_ = os.Remove(filepath.Join(c.dir, name))
			}
			continue
		}
		files = append(files, file{filepath.Join(c.dir, name), hash, info.Size(), info.ModTime()})
	}
	return files, nil
}

func isExtension(ext string) bool {
	for _, known := range extensions {
		if ext == known {
			return true
		}
	}
	return false
}
