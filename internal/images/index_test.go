package images

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func read(t testing.TB, data []byte) *index {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, indexName), data, 0o600); err != nil {
		t.Fatal(err)
	}
	x := openIndex(dir)
	if err := x.refresh(); err != nil {
		t.Fatal(err)
	}
	return x
}

func sample(i int) entry {
	return entry{Key: keyOf(fmt.Sprint("url", i)), Hash: keyOf(fmt.Sprint("bytes", i)), Type: PNG, W: 1, H: 2, Size: 3, At: int64(1000 + i)}
}

func lines(t testing.TB, n int) []byte {
	t.Helper()
	var buf bytes.Buffer
	for i := range n {
		line, err := json.Marshal(sample(i))
		if err != nil {
			t.Fatal(err)
		}
		buf.Write(append(line, '\n'))
	}
	return buf.Bytes()
}

// TestIndexIsTorn: wherever the file is cut, all entries before the cut are there, and
// what is added afterwards is found.
func TestIndexIsTorn(t *testing.T) {
	t.Parallel()
	whole := lines(t, 3)
	size := len(whole) / 3
	dir := t.TempDir()
	for cut := range len(whole) + 1 {
		if err := os.WriteFile(filepath.Join(dir, indexName), whole[:cut], 0o600); err != nil {
			t.Fatal(err)
		}
		x := openIndex(dir)
		if err := errors.Join(x.refresh(), x.add(sample(9))); err != nil {
			t.Fatal(err)
		}
		y := openIndex(dir)
		if err := y.refresh(); err != nil {
			t.Fatal(err)
		}
		want := (cut+1)/size + 1 // a line is whole without its newline
		if len(y.entries) != want || y.entries[sample(9).Key] != sample(9) {
			t.Fatalf("cut at %d: %d entries, want %d", cut, len(y.entries), want)
		}
	}
}

func TestIndexStaysSmall(t *testing.T) {
	t.Parallel()
	x := openIndex(t.TempDir())
	for i := range maxEntries + 50 {
		x.put(sample(i))
	}
	if len(x.entries) > maxEntries || len(x.entries) < maxEntries*8/10 {
		t.Errorf("%d entries", len(x.entries))
	}
	if _, ok := x.entries[sample(0).Key]; ok {
		t.Error("the oldest is still there")
	}
	if _, ok := x.entries[sample(maxEntries+49).Key]; !ok {
		t.Error("the newest is gone")
	}
	big := read(t, bytes.Join([][]byte{bytes.Repeat([]byte("x"), maxIndexBytes), lines(t, 2)}, []byte("\n")))
	if len(big.entries) != 2 {
		t.Errorf("of a large file: %d entries", len(big.entries))
	}
}

func TestIndexIsWrittenAnew(t *testing.T) {
	t.Parallel()
	x := read(t, lines(t, 500))
	other := &index{path: x.path, entries: map[string]entry{}}
	if err := other.refresh(); err != nil {
		t.Fatal(err)
	}
	if err := x.prune(time.Unix(1000+490, 0), func(e entry) bool { return e.At%2 == 0 }); err != nil {
		t.Fatal(err)
	}
	if len(x.entries) != 5 {
		t.Errorf("%d entries", len(x.entries))
	}
	if data, err := os.ReadFile(x.path); err != nil || bytes.Count(data, []byte("\n")) != 5 {
		t.Errorf("%d lines, %v", bytes.Count(data, []byte("\n")), err)
	}
	// Another process that had the old file goes on with the new one.
	if err := errors.Join(x.add(sample(900)), other.refresh()); err != nil {
		t.Fatal(err)
	}
	if _, ok := other.entries[sample(900).Key]; !ok {
		t.Error("the other process does not see the new file")
	}
}

// FuzzIndex: no file keeps a cache from opening, and only entries that make sense
// come out of it.
func FuzzIndex(f *testing.F) {
	f.Add(lines(f, 2))
	f.Add([]byte("{}\n[]\nnull\n\"x\"\n"))
	f.Add([]byte(strings.Replace(string(lines(f, 1)), PNG, "text/html", 1)))
	f.Add([]byte("\xef\xbb\xbf\r\n\x00{\"url\":"))
	f.Add(append(lines(f, 1), []byte("{\"url\":\"torn")...))
	f.Fuzz(func(t *testing.T, data []byte) {
		x := openIndex("")
		x.absorb(data)
		for key, e := range x.entries {
			if key != e.Key || !e.valid() || strings.ContainsAny(e.Hash, "/.") {
				t.Fatalf("%+v", e)
			}
		}
	})
}

func TestSweepByAge(t *testing.T) {
	t.Parallel()
	s, count := server(t, func(w http.ResponseWriter, r *http.Request) { w.Write(pngOf(t, 5, 5, len(r.URL.Path))) })
	now, dir := newClock(), t.TempDir()
	c := open(t, dir, Options{AllowPrivate: own(s), Now: now.now})
	fetch := func(path string) Picture {
		t.Helper()
		p, err := c.Fetch(ctx, s.URL+path)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	used, unused := fetch("/used"), fetch("/un-used")
	for _, name := range []string{"notes.txt", "short.png", unused.Hash + ".txt"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("mine"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	now.move(20 * time.Hour)
	if _, _, err := c.Get(used.Hash); err != nil {
		t.Fatal(err)
	}
	now.move(5 * time.Hour)
	got, err := c.Sweep()
	if err != nil || got.Files != 1 || got.Bytes != unused.Size || got.FilesLeft != 1 || got.BytesLeft != used.Size {
		t.Errorf("%+v %v", got, err)
	}
	if _, _, err := c.Get(unused.Hash); !errors.Is(err, ErrGone) {
		t.Errorf("unused for 25 h: %v", err)
	}
	if _, _, err := c.Get(used.Hash); err != nil {
		t.Errorf("used 5 h ago: %v", err)
	}
	for _, name := range []string{"notes.txt", "short.png", unused.Hash + ".txt"} {
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
			t.Errorf("somebody else's file: %v", err)
		}
	}
	// The bytes are here, but nobody asked the URL for 25 hours: it may have changed.
	if before := count.Load(); fetch("/used") != (Picture{used.Hash, PNG, 5, 5, used.Size, "used"}) || count.Load() != before+1 {
		t.Errorf("%d downloads after %d", count.Load(), before)
	}
}

func TestSweepBySize(t *testing.T) {
	t.Parallel()
	now, dir := newClock(), t.TempDir()
	var size int64
	var hashes []string
	c := open(t, dir, Options{Now: now.now})
	for i := range 10 {
		p, err := c.Add(ctx, append(pngOf(t, 8, 8, 0), fmt.Sprintf("%08d", i)...), "")
		if err != nil {
			t.Fatal(err)
		}
		hashes, size = append(hashes, p.Hash), p.Size
		now.move(time.Second)
	}
	if _, _, err := c.Get(hashes[0]); err != nil { // the oldest is the last one used
		t.Fatal(err)
	}
	now.move(time.Second)
	small := open(t, dir, Options{MaxBytes: 10 * size, Now: now.now})
	p, err := small.Add(ctx, append(pngOf(t, 8, 8, 0), "99999999"...), "") // one too many: down to nine tenths
	if err != nil {
		t.Fatal(err)
	}
	hashes = append(hashes, p.Hash)
	want := "+--++++++++"
	got := ""
	for _, hash := range hashes {
		_, err := os.Stat(filepath.Join(dir, hash+".png"))
		got += map[bool]string{true: "+", false: "-"}[err == nil]
	}
	if got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// TestNeverMoreThanTheLimit: a cache that is only written to stays within its limits by itself.
func TestNeverMoreThanTheLimit(t *testing.T) {
	t.Parallel()
	now, dir := newClock(), t.TempDir()
	picture := pngOf(t, 8, 8, 0)
	limit := int64(len(picture)+8) * 20
	c := open(t, dir, Options{MaxBytes: limit, Now: now.now})
	for i := range 100 {
		if _, err := c.Add(ctx, append(picture[:len(picture):len(picture)], fmt.Sprintf("%08d", i)...), ""); err != nil {
			t.Fatal(err)
		}
		now.move(time.Second)
		files, err := c.list()
		if err != nil {
			t.Fatal(err)
		}
		var sum int64
		for _, f := range files {
			sum += f.size
		}
		if sum > limit {
			t.Fatalf("%d bytes after %d pictures", sum, i+1)
		}
	}
}

func TestSweepRemovesWhatCrashesLeft(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	c := open(t, dir, Options{})
	for name, age := range map[string]time.Duration{"tmp-old": 2 * time.Hour, "tmp-new": 0} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte("half"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, time.Now().Add(-age), time.Now().Add(-age)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := c.Sweep(); err != nil {
		t.Fatal(err)
	}
	left, _ := filepath.Glob(filepath.Join(dir, "*"))
	if len(left) != 1 || filepath.Base(left[0]) != "tmp-new" {
		t.Errorf("left: %v", left)
	}
}

// TestFitOnce: a picture that is too large is made smaller once, also for the next process.
func TestFitOnce(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	c := open(t, dir, Options{Send: Limits{Edge: 50}})
	fits, err := c.Add(ctx, pngOf(t, 50, 20, 0), "")
	if err != nil {
		t.Fatal(err)
	}
	if p, _, err := c.Fit(ctx, fits.Hash); err != nil || p.Hash != fits.Hash {
		t.Errorf("%+v %v", p, err)
	}
	large, err := c.Add(ctx, pngOf(t, 100, 40, 0), "")
	if err != nil {
		t.Fatal(err)
	}
	p, data, err := c.Fit(ctx, large.Hash)
	if err != nil || p.Type != JPEG || p.Width != 50 || p.Height != 20 || int64(len(data)) != p.Size {
		t.Fatalf("%+v %v", p, err)
	}
	if err := os.Remove(filepath.Join(dir, large.Hash+".png")); err != nil { // now it cannot be done again
		t.Fatal(err)
	}
	for _, cache := range []*Cache{c, open(t, dir, Options{Send: Limits{Edge: 50}})} {
		if q, again, err := cache.Fit(ctx, large.Hash); err != nil || q != p || !bytes.Equal(again, data) {
			t.Errorf("%+v %v", q, err)
		}
	}
	if _, _, err := open(t, dir, Options{Send: Limits{Edge: 40}}).Fit(ctx, large.Hash); !errors.Is(err, ErrGone) {
		t.Errorf("other limits: %v", err)
	}
}
