package imagecache

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
	"time"
)

var png = []byte("\x89PNG\r\n\x1a\n-picture")

func newCache(t *testing.T) (*Cache, *time.Time) {
	t.Helper()
	now := time.Now()
	return &Cache{Dir: filepath.Join(t.TempDir(), "cache", "images"), Now: func() time.Time { return now }}, &now
}

func files(t *testing.T, c *Cache) (count int, size int64) {
	t.Helper()
	entries, err := os.ReadDir(c.Dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		info, err := e.Info()
		if err != nil {
			t.Fatal(err)
		}
		count, size = count+1, size+info.Size()
	}
	return count, size
}

// Pictures were fetched anew by every bot and every reading of the history: nothing was kept
// in cache/images.
func TestKeepsPicturesByAddress(t *testing.T) {
	t.Parallel()
	c, now := newCache(t)
	const at = "https://cdn.discordapp.com/attachments/1/2/a.png"
	if _, ok := c.Get(at); ok {
		t.Error("found before it was put")
	}
	for range 2 {
		if err := c.Put(at+"?ex=1&is=2&hm=3", png, 1<<20); err != nil {
			t.Fatal(err)
		}
	}
	if got, ok := c.Get(at + "?ex=9&is=9&hm=9"); !ok || !bytes.Equal(got, png) {
		t.Errorf("%q, %v", got, ok)
	}
	if _, ok := c.Get(at + "?width=10"); ok {
		t.Error("another picture was given")
	}
	if n, _ := files(t, c); n != 1 {
		t.Errorf("%d files", n)
	}
	if err := c.Put("https://x/text", []byte("no picture"), 1<<20); err != nil {
		t.Fatal(err)
	}
	if _, ok := c.Get("https://x/text"); ok {
		t.Error("kept what is no picture")
	}
	// Another process sees it; a damaged file is not given.
	if _, ok := (&Cache{Dir: c.Dir}).Get(at); !ok {
		t.Error("another process does not see it")
	}
	if err := os.WriteFile(filepath.Join(c.Dir, key(at)+".png"), []byte("oops"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, ok := c.Get(at); ok {
		t.Error("gave a damaged file")
	}
	if err := c.Put(at, png, 1<<20); err != nil {
		t.Fatal(err)
	}
	*now = now.Add(MaxAge + time.Minute)
	if _, ok := c.Get(at); ok {
		t.Error("gave one of yesterday")
	}
}

func TestIsBounded(t *testing.T) {
	t.Parallel()
	c, now := newCache(t)
	size := int64(len(png))
	other := filepath.Join(c.Dir, "url-map.json")
	for i := range 50 {
		at := string(rune('a'+i%26)) + string(rune('a'+i/26))
		if err := c.Put(at, png, 5*size); err != nil {
			t.Fatal(err)
		}
		past := now.Add(-time.Duration(60-i) * time.Minute)
		if err := os.Chtimes(filepath.Join(c.Dir, key(at)+".png"), past, past); err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
		if n, held := files(t, c); held > 5*size {
			t.Fatalf("%d files with %d bytes after %d", n, held, i+1)
		}
	}
	if _, ok := c.Get("xb"); !ok {
		t.Error("the newest is gone")
	}
	if err := os.WriteFile(other, []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := c.Put("large", append(png, make([]byte, 6*size)...), 5*size); err != nil {
		t.Fatal(err)
	}
	if _, ok := c.Get("large"); ok {
		t.Error("kept one that is larger than all together may be")
	}
	*now = now.Add(MaxAge)
	if err := c.Put("fresh", png, 5*size); err != nil {
		t.Fatal(err)
	}
	if err := c.Drop("fresh"); err != nil {
		t.Fatal(err)
	}
	if _, ok := c.Get("fresh"); ok {
		t.Error("gave one that was dropped")
	}
	if err := c.Put("fresh", png, 5*size); err != nil {
		t.Fatal(err)
	}
	if err := c.Clear(); err != nil {
		t.Fatal(err)
	}
	if n, _ := files(t, c); n != 1 {
		t.Errorf("%d files are left, want somebody else's alone", n)
	}
	if err := (&Cache{Dir: filepath.Join(c.Dir, "none")}).Clear(); err != nil {
		t.Error(err)
	}
}
