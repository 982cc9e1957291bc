// Package imagecache caches pictures by their address, so that several bots, and
// repeated reads of history, fetch each of them only once.
//
// It returns exactly the bytes that were put for an address. It stores no more
// than its limit and nothing older than a day. Losing its folder only costs new
// downloads. Several processes may share a folder.
package imagecache

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"chorus/internal/chat"
	"chorus/internal/digest"
)

// MaxAge is how long a picture is kept after it was fetched.
const MaxAge = 24 * time.Hour

// pruneEvery is how often the folder is searched for old pictures. Its size is checked with every Put.
const pruneEvery = 10 * time.Minute

// Cache is a folder of pictures, named by the hash of their address
// and their type. It is safe for concurrent use.
type Cache struct {
	Dir string
	Now func() time.Time // nil: time.Now

	mu     sync.Mutex
	pruned time.Time
	held   int64 // bytes in the folder at the last check, plus what was put since
}

func (c *Cache) now() time.Time {
	if c.Now != nil {
		return c.Now()
	}
	return time.Now()
}

// extensions are the file extensions of the cached types.
var extensions = map[string]string{"image/png": ".png", "image/jpeg": ".jpg", "image/gif": ".gif", "image/webp": ".webp"}

// key returns the name for an address, without extension. It ignores the
// signature that Discord adds to links and changes.
func key(address string) string {
	if u, err := url.Parse(address); err == nil {
		q := u.Query()
		for _, signed := range []string{"ex", "is", "hm"} {
			q.Del(signed)
		}
		u.RawQuery, u.Fragment = q.Encode(), ""
		address = u.String()
	}
	return digest.Of(address)
}

// Get returns the picture at an address. It returns false if there is none or it is too old.
func (c *Cache) Get(address string) ([]byte, bool) {
	for _, ext := range extensions {
		file := filepath.Join(c.Dir, key(address)+ext)
		info, err := os.Stat(file)
		if err != nil || c.now().Sub(info.ModTime()) > MaxAge {
			continue
		}
		// A truncated file, or one from somebody else, is not a picture of that type.
		if data, err := os.ReadFile(file); err == nil && int64(len(data)) == info.Size() && extensions[chat.ImageType(data)] == ext {
			return data, true
		}
	}
	return nil, false
}

// Put stores a picture, and removes the oldest until the folder has at most maxBytes.
// It does not store anything else, or pictures larger than that.
func (c *Cache) Put(address string, data []byte, maxBytes int64) error {
	ext, ok := extensions[chat.ImageType(data)]
	if !ok || int64(len(data)) > maxBytes {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := os.MkdirAll(c.Dir, 0o700); err != nil {
		return err
	}
	temp, err := os.CreateTemp(c.Dir, tempPrefix+"*")
	if err != nil {
		return err
	}
	_, err = bytes.NewReader(data).WriteTo(temp)
	if err = cmp.Or(err, temp.Close()); err == nil {
		err = os.Rename(temp.Name(), filepath.Join(c.Dir, key(address)+ext))
	}
	if err != nil {
		return errors.Join(err, os.Remove(temp.Name()))
	}
	c.held += int64(len(data))
	if c.held > maxBytes || c.pruned.IsZero() || c.now().Sub(c.pruned) > pruneEvery {
		return c.prune(maxBytes)
	}
	return nil
}

const tempPrefix = "tmp-"

// prune removes what is too old, then the oldest until the rest fits.
func (c *Cache) prune(maxBytes int64) error {
	list, err := c.list()
	if err != nil {
		return err
	}
	slices.SortFunc(list, func(a, b fs.FileInfo) int { return b.ModTime().Compare(a.ModTime()) })
	c.held, c.pruned = 0, c.now()
	for _, info := range list {
		if c.held+info.Size() <= maxBytes && c.now().Sub(info.ModTime()) <= MaxAge {
			c.held += info.Size()
			continue
		}
		if err := remove(filepath.Join(c.Dir, info.Name())); err != nil {
			return err
		}
	}
	return nil
}

// Drop removes the picture at an address, because the message with it was deleted.
func (c *Cache) Drop(address string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, ext := range extensions {
		if err := remove(filepath.Join(c.Dir, key(address)+ext)); err != nil {
			return err
		}
	}
	return nil
}

// Clear removes every picture, because somebody wants to be forgotten.
func (c *Cache) Clear() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	list, err := c.list()
	if err != nil {
		return err
	}
	for _, info := range list {
		if err := remove(filepath.Join(c.Dir, info.Name())); err != nil {
			return err
		}
	}
	c.held = 0
	return nil
}

// list returns our files; other files in the folder are left alone.
func (c *Cache) list() ([]fs.FileInfo, error) {
	entries, err := os.ReadDir(c.Dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var out []fs.FileInfo
	for _, e := range entries {
		info, err := e.Info()
		if err != nil || !info.Mode().IsRegular() {
			continue
		}
		name, ext := strings.TrimSuffix(e.Name(), filepath.Ext(e.Name())), filepath.Ext(e.Name())
		_, hexed := hex.DecodeString(name)
		ours := hexed == nil && len(name) == 2*sha256.Size && slices.Contains([]string{".png", ".jpg", ".gif", ".webp"}, ext)
		left := strings.HasPrefix(e.Name(), tempPrefix) && c.now().Sub(info.ModTime()) > time.Hour // from a process that died
		if ours || left {
			out = append(out, info)
		}
	}
	return out, nil
}

func remove(file string) error {
	if err := os.Remove(file); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
