package images

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/gif"
	"image/jpeg"
	"image/png"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var ctx = context.Background()

// painted is a picture with something in it; seed tells pictures apart.
func painted(w, h, seed int) *image.NRGBA {
	img := image.NewNRGBA(image.Rect(0, 0, w, h))
	for y := range h {
		for x := range w {
			img.SetNRGBA(x, y, color.NRGBA{uint8(x * 7), uint8(y*5 + seed), uint8(x*y + seed*31), 255})
		}
	}
	return img
}

func pngOf(t testing.TB, w, h, seed int) []byte {
	t.Helper()
	var buf bytes.Buffer
	if err := png.Encode(&buf, painted(w, h, seed)); err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
}

func jpegOf(t testing.TB, img image.Image) []byte {
	t.Helper()
	var buf bytes.Buffer
	if err := jpeg.Encode(&buf, img, nil); err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
}

func gifOf(t testing.TB, w, h, frames int) []byte {
	t.Helper()
	g := &gif.GIF{Config: image.Config{Width: w, Height: h}}
	for i := range frames {
		// Frames need not fill the screen.
		frame := image.NewPaletted(image.Rect(w/4, h/4, w-w/4, h-h/4), color.Palette{color.Black, color.RGBA{uint8(200 + i), 0, 0, 255}})
		for p := range frame.Pix {
			frame.Pix[p] = 1
		}
		g.Image, g.Delay = append(g.Image, frame), append(g.Delay, 10)
	}
	var buf bytes.Buffer
	if err := gif.EncodeAll(&buf, g); err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
}

func unbase64(t testing.TB, s string) []byte {
	t.Helper()
	data, err := base64.StdEncoding.DecodeString(s)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

const (
	webpLossy    = "UklGRiIAAABXRUJQVlA4IBYAAAAwAQCdASoBAAEADsD+JaQAA3AAAAAA"
	webpLossless = "UklGRhoAAABXRUJQVlA4TA0AAAAvAAAAEAcQERGIiP4HAA=="
)

// clock is a clock that stands until it is moved.
type clock struct{ ns atomic.Int64 }

func newClock() *clock {
	c := &clock{}
	c.ns.Store(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC).UnixNano())
	return c
}

func (c *clock) now() time.Time       { return time.Unix(0, c.ns.Load()) }
func (c *clock) move(d time.Duration) { c.ns.Add(int64(d)) }

func open(t testing.TB, dir string, opt Options) *Cache {
	t.Helper()
	c, err := Open(dir, opt)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// server serves with a handler and counts requests.
func server(t testing.TB, h http.HandlerFunc) (*httptest.Server, *atomic.Int64) {
	t.Helper()
	count := &atomic.Int64{}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { count.Add(1); h(w, r) }))
	t.Cleanup(s.Close)
	return s, count
}

func own(s *httptest.Server) []string { return []string{strings.TrimPrefix(s.URL, "http://")} }

func TestFetchKeepsWhatItGot(t *testing.T) {
	t.Parallel()
	data := pngOf(t, 20, 10, 1)
	// B68: the bytes decide, whatever the server declares.
	s, count := server(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "image/jpeg")
		w.Write(data)
	})
	dir := t.TempDir()
	c := open(t, dir, Options{AllowPrivate: own(s)})
	p, err := c.Fetch(ctx, s.URL+"/a/cat.jpg?x=1#part")
	if err != nil {
		t.Fatal(err)
	}
	if p.Type != PNG || p.Width != 20 || p.Height != 10 || p.Size != int64(len(data)) || p.Name != "cat.jpg" || p.Tokens() != 1 {
		t.Errorf("%+v", p)
	}
	if _, err := os.Stat(filepath.Join(dir, p.Hash+".png")); err != nil {
		t.Error(err)
	}
	q, got, err := c.Get(p.Hash)
	if err != nil || !bytes.Equal(got, data) || q.Width != 20 {
		t.Errorf("%+v %v", q, err)
	}
	for _, cache := range []*Cache{c, open(t, dir, Options{AllowPrivate: own(s)})} { // also after a restart
		if again, err := cache.Fetch(ctx, s.URL+"/a/cat.jpg?x=1"); err != nil || again != p {
			t.Errorf("%+v %v", again, err)
		}
	}
	if count.Load() != 1 {
		t.Errorf("%d downloads", count.Load())
	}
	if index, _ := os.ReadFile(filepath.Join(dir, indexName)); bytes.Contains(index, []byte("cat")) {
		t.Error("the index holds the URL, which may be a secret")
	}
}

func TestAddTakesPicturesOnly(t *testing.T) {
	t.Parallel()
	c := open(t, t.TempDir(), Options{MaxImage: 50_000, MaxPixels: 10_000, MaxFrames: 3})
	for _, test := range []struct {
		name string
		data []byte
		want string // a type
		err  error
	}{
		{"png", pngOf(t, 3, 4, 0), PNG, nil},
		{"jpeg", jpegOf(t, painted(3, 4, 0)), JPEG, nil},
		{"gif", gifOf(t, 8, 8, 3), GIF, nil},
		{"webp", unbase64(t, webpLossy), WebP, nil},
		{"webp", unbase64(t, webpLossless), WebP, nil},
		{"empty", nil, "", ErrNotPicture},
		{"text", []byte("hello"), "", ErrNotPicture},
		{"svg", []byte(`<svg xmlns="http://www.w3.org/2000/svg"/>`), "", ErrNotPicture},
		{"page", []byte("<html>"), "", ErrNotPicture},
		{"only a magic number", []byte("\x89PNG\r\n\x1a\n"), "", ErrNotPicture},
		{"a RIFF that is no WebP", []byte("RIFF\x00\x00\x00\x00WAVEfmt "), "", ErrNotPicture},
		{"too many pixels", pngOf(t, 101, 100, 0), "", ErrTooLarge},
		{"too many frames", gifOf(t, 8, 8, 4), "", ErrTooLarge},
		{"a gif without a frame", gifOf(t, 8, 8, 1)[:13], "", ErrNotPicture},
		{"too many bytes", append(pngOf(t, 3, 4, 0), make([]byte, 50_000)...), "", ErrTooLarge},
	} {
		p, err := c.Add(ctx, test.data, test.name)
		if p.Type != test.want || !errors.Is(err, test.err) {
			t.Errorf("%s: %+v %v", test.name, p, err)
		}
		if test.want != "" && p.Name != test.name {
			t.Errorf("%s: name %q", test.name, p.Name)
		}
	}
	gone, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := c.Add(gone, pngOf(t, 1, 1, 0), ""); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

func TestGetOfNothing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	c := open(t, dir, Options{})
	for _, hash := range []string{"", "../../etc/passwd", strings.Repeat("z", 64), strings.Repeat("a", 64)} {
		if _, _, err := c.Get(hash); !errors.Is(err, ErrGone) {
			t.Errorf("%q: %v", hash, err)
		}
	}
	p, err := c.Add(ctx, pngOf(t, 4, 4, 0), "")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, p.Hash+".png")
	if err := os.WriteFile(path, pngOf(t, 4, 4, 9), 0o600); err != nil { // a picture, but another one
		t.Fatal(err)
	}
	if _, _, err := c.Get(p.Hash); !errors.Is(err, ErrGone) {
		t.Errorf("damaged: %v", err)
	}
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		t.Error("the damaged file is still there")
	}
}

func TestServersThatMisbehave(t *testing.T) {
	t.Parallel()
	picture := pngOf(t, 30, 30, 0)
	release := make(chan struct{})
	handlers := map[string]http.HandlerFunc{
		"/missing": http.NotFound,
		"/page": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "image/png")
			io.WriteString(w, "<html>")
		},
		"/gzip": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			w.Write([]byte("\x1f\x8b\x08\x00"))
		},
		"/honest": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Length", "200000")
			w.Write(make([]byte, 200_000))
		},
		"/endless": func(w http.ResponseWriter, r *http.Request) {
			for w.Write(picture); ; {
				if _, err := w.Write(make([]byte, 8192)); err != nil {
					return
				}
			}
		},
		"/short": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Length", "100000")
			w.Write(picture)
			w.(http.Flusher).Flush()
			panic(http.ErrAbortHandler)
		},
		"/headers": func(w http.ResponseWriter, r *http.Request) {
			for i := range 100 {
				w.Header().Set(fmt.Sprintf("X-%d", i), strings.Repeat("x", 1000))
			}
			w.Write(picture)
		},
		"/slow": func(w http.ResponseWriter, r *http.Request) {
			w.Write(picture[:20])
			w.(http.Flusher).Flush()
			select {
			case <-release:
			case <-r.Context().Done():
			}
		},
	}
	s, _ := server(t, func(w http.ResponseWriter, r *http.Request) { handlers[r.URL.Path](w, r) })
	defer close(release)
	dir := t.TempDir()
	c := open(t, dir, Options{AllowPrivate: own(s), MaxImage: 100_000})
	hasty := open(t, dir, Options{AllowPrivate: own(s), Timeout: 200 * time.Millisecond})
	for _, test := range []struct {
		path string
		err  error
		says string
	}{
		{"/missing", nil, "404"},
		{"/page", ErrNotPicture, "convert"},
		{"/gzip", ErrNotPicture, ""},
		{"/honest", ErrTooLarge, "limit is 100000"},
		{"/endless", ErrTooLarge, ""},
		{"/short", io.ErrUnexpectedEOF, ""},
		{"/headers", nil, "header"},
		{"/slow", context.DeadlineExceeded, "longer than 200ms"},
	} {
		cache := c
		if test.path == "/slow" {
			cache = hasty
		}
		_, err := cache.Fetch(ctx, s.URL+test.path)
		if err == nil || test.err != nil && !errors.Is(err, test.err) || !strings.Contains(err.Error(), test.says) {
			t.Errorf("%s: %v", test.path, err)
		}
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

// TestManyAskOnceAtOnce: one download however many wait, in one process.
func TestManyAskOnceAtOnce(t *testing.T) {
	t.Parallel()
	data := pngOf(t, 9, 9, 0)
	arrived := make(chan struct{})
	answer := make(chan struct{})
	s, count := server(t, func(w http.ResponseWriter, r *http.Request) {
		close(arrived)
		<-answer
		w.Write(data)
	})
	c := open(t, t.TempDir(), Options{AllowPrivate: own(s)})
	var wg sync.WaitGroup
	ask := func() {
		if p, err := c.Fetch(ctx, s.URL); err != nil || p.Width != 9 {
			t.Errorf("%+v %v", p, err)
		}
	}
	for range 16 {
		wg.Go(ask)
	}
	<-arrived
	// One that leaves does not take the others with it.
	left, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := c.Fetch(left, s.URL); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	wg.Go(ask)
	close(answer)
	wg.Wait()
	if count.Load() != 1 {
		t.Errorf("%d downloads", count.Load())
	}
}

// TestTheLastOneLeaves: a download that nobody waits for is given up.
func TestTheLastOneLeaves(t *testing.T) {
	t.Parallel()
	arrived, gone := make(chan struct{}), make(chan struct{})
	s, _ := server(t, func(w http.ResponseWriter, r *http.Request) {
		close(arrived)
		<-r.Context().Done()
		close(gone)
	})
	c := open(t, t.TempDir(), Options{AllowPrivate: own(s)})
	asking, cancel := context.WithCancel(ctx)
	done := make(chan error)
	go func() { _, err := c.Fetch(asking, s.URL); done <- err }()
	<-arrived
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	<-gone
}

func TestClosed(t *testing.T) {
	t.Parallel()
	arrived := make(chan struct{})
	s, _ := server(t, func(w http.ResponseWriter, r *http.Request) { close(arrived); <-r.Context().Done() })
	c := open(t, t.TempDir(), Options{AllowPrivate: own(s)})
	p, err := c.Add(ctx, pngOf(t, 2, 2, 0), "")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error)
	go func() { _, err := c.Fetch(ctx, s.URL); done <- err }()
	<-arrived
	c.Close()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if _, err := c.Fetch(ctx, s.URL+"/other"); !errors.Is(err, errClosed) {
		t.Error(err)
	}
	if _, _, err := c.Get(p.Hash); err != nil {
		t.Error(err)
	}
}

// TestOneFolderManyCaches: caches as several processes would have them. Each URL
// is downloaded at most once by each, and everybody ends with the right bytes.
func TestOneFolderManyCaches(t *testing.T) {
	t.Parallel()
	const urls, caches = 12, 3
	want := map[string][]byte{}
	for i := range urls {
		want[fmt.Sprintf("/%d", i)] = pngOf(t, 40, 40, i%4) // some have the same bytes
	}
	s, count := server(t, func(w http.ResponseWriter, r *http.Request) { w.Write(want[r.URL.Path]) })
	dir := t.TempDir()
	var wg sync.WaitGroup
	for range caches {
		c := open(t, dir, Options{AllowPrivate: own(s)})
		for path, data := range want {
			wg.Go(func() {
				p, err := c.Fetch(ctx, s.URL+path)
				if err != nil {
					t.Error(err)
					return
				}
				if _, got, err := c.Get(p.Hash); err != nil || !bytes.Equal(got, data) {
					t.Errorf("%s: %v", path, err)
				}
			})
		}
		wg.Go(func() {
			if _, err := c.Sweep(); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if n := count.Load(); n > urls*caches {
		t.Errorf("%d downloads", n)
	}
	before := count.Load()
	late := open(t, dir, Options{AllowPrivate: own(s)})
	for path := range want {
		if _, err := late.Fetch(ctx, s.URL+path); err != nil {
			t.Error(err)
		}
	}
	if count.Load() != before {
		t.Errorf("%d more downloads by one who came late", count.Load()-before)
	}
	if files, _ := filepath.Glob(filepath.Join(dir, "*.png")); len(files) != 4 {
		t.Errorf("%d files", len(files))
	}
}

// TestAnotherProcessFetched: what another cache wrote is found without a restart.
func TestAnotherProcessFetched(t *testing.T) {
	t.Parallel()
	s, count := server(t, func(w http.ResponseWriter, r *http.Request) { w.Write(pngOf(t, 5, 5, len(r.URL.Path))) })
	dir := t.TempDir()
	a, b := open(t, dir, Options{AllowPrivate: own(s)}), open(t, dir, Options{AllowPrivate: own(s)})
	for _, path := range []string{"/1", "/22", "/333"} {
		p, err := a.Fetch(ctx, s.URL+path)
		if err != nil {
			t.Fatal(err)
		}
		if q, err := b.Fetch(ctx, s.URL+path); err != nil || q != p {
			t.Errorf("%+v %v", q, err)
		}
	}
	if count.Load() != 3 {
		t.Errorf("%d downloads", count.Load())
	}
	// A file that somebody deleted is fetched again.
	files, _ := filepath.Glob(filepath.Join(dir, "*.png"))
	for _, f := range files {
		os.Remove(f)
	}
	if _, err := b.Fetch(ctx, s.URL+"/1"); err != nil || count.Load() != 4 {
		t.Errorf("%d downloads, %v", count.Load(), err)
	}
}

func TestPublicNameThroughHooks(t *testing.T) {
	t.Parallel()
	s, _ := server(t, func(w http.ResponseWriter, r *http.Request) { w.Write(pngOf(t, 5, 5, 0)) })
	var dialled []string
	c := open(t, t.TempDir(), Options{
		Resolve: func(_ context.Context, host string) ([]netip.Addr, error) {
			return []netip.Addr{netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("93.184.215.14")}, nil
		},
		Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
			dialled = append(dialled, address)
			return (&net.Dialer{}).DialContext(ctx, network, s.Listener.Addr().String())
		},
	})
	if _, err := c.Fetch(ctx, "http://pictures.example/a.png"); err != nil {
		t.Fatal(err)
	}
	if len(dialled) != 1 || dialled[0] != "93.184.215.14:80" {
		t.Errorf("dialled %v", dialled)
	}
}
