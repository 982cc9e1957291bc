// Package images keeps pictures on disk: downloaded once, named by the hash of
// their bytes, forgotten when they are old or too many.
//
// It promises that a stranger's URL reaches public addresses only, whatever it
// resolves or redirects to; that nothing is kept which is not a PNG, JPEG, GIF or
// WebP by its own bytes, within limits that were checked before anything was
// decoded; and that no picture stays in memory. The folder may be shared by several
// processes and deleted at any time: what is missing is fetched again.
package images

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"chorus/internal/text"
)

// maxFrames bounds an animation; a model sees the first frame of it anyway.
const maxFrames = 1000

// Options are the limits of a cache. Zero fields mean the default.
type Options struct {
	MaxAge    time.Duration // since a picture was last used, and since a URL was last asked: 24 h
	MaxBytes  int64         // all pictures together: 500 MB
	MaxImage  int64         // one picture: 20 MB
	MaxPixels int64         // one picture: 40 million
	MaxFrames int           // one animation: 1000
	Timeout   time.Duration // one download, from look-up to last byte: 30 s
	Parallel  int           // downloads at once: 4
	Send      Limits        // what Fit makes pictures for

	// AllowPrivate lists hosts ("nas.lan", "10.0.0.5", "localhost:8080") that may be
	// reached although their addresses are private.
	AllowPrivate []string

	// Proxy, when set, is used for downloads. The proxy then resolves the names, so only it
	// can keep them from leading inside; its own host must be public or allowed. The environment's
	// proxies are not used unless http.ProxyFromEnvironment is given here.
	Proxy func(*http.Request) (*url.URL, error)

	// Hooks for tests; nil means the real thing. Addresses are checked before Dial is asked.
	Resolve func(ctx context.Context, host string) ([]netip.Addr, error)
	Dial    func(ctx context.Context, network, address string) (net.Conn, error)
	Now     func() time.Time
}

func (o Options) filled() Options {
	o.MaxAge = cmp.Or(max(o.MaxAge, 0), 24*time.Hour)
	o.MaxBytes = cmp.Or(max(o.MaxBytes, 0), 500<<20)
	o.MaxImage = min(cmp.Or(max(o.MaxImage, 0), 20<<20), o.MaxBytes)
	o.MaxPixels = cmp.Or(max(o.MaxPixels, 0), 40_000_000)
	o.MaxFrames = cmp.Or(max(o.MaxFrames, 0), maxFrames)
	o.Timeout = cmp.Or(max(o.Timeout, 0), 30*time.Second)
	o.Parallel = cmp.Or(max(o.Parallel, 0), 4)
	o.Send = o.Send.filled()
	if o.Now == nil {
		o.Now = time.Now
	}
	return o
}

// Picture describes a picture in the cache.
type Picture struct {
	Hash   string // sha256 of the bytes, in hex
	Type   string // PNG, JPEG, GIF or WebP
	Width  int
	Height int
	Size   int64
	Name   string // as it was added or as its URL ends; may be empty
}

// Tokens estimates what the picture costs in a prompt.
func (p Picture) Tokens() int { return Tokens(p.Width, p.Height) }

// Cache is a folder of pictures. It is safe for many goroutines, and many caches may
// share a folder.
type Cache struct {
	dir    string
	opt    Options
	door   *addressGuard
	client *http.Client
	slots  chan struct{} // downloads that may run
	fits   chan struct{} // one decoding at a time: it is what costs memory

	mu      sync.Mutex // guards what follows
	index   *index
	flights map[string]*flight
	total   int64 // bytes on disk as far as we know
	swept   time.Time
	closed  bool
	group   sync.WaitGroup // one for each flight
}

// Open uses a folder, which is made if it is not there. Whatever is in it, also what a crash
// left, opens; what is not ours stays.
func Open(dir string, opt Options) (*Cache, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("open picture cache: %w", err)
	}
	opt = opt.filled()
	door := &addressGuard{resolve: opt.Resolve, dial: opt.Dial}
	for _, host := range opt.AllowPrivate {
		door.allow = append(door.allow, strings.ToLower(host))
	}
	return &Cache{
		dir: dir, opt: opt, door: door, client: door.client(opt.Proxy), index: openIndex(dir), flights: map[string]*flight{},
		slots: make(chan struct{}, opt.Parallel), fits: make(chan struct{}, 1),
	}, nil
}

// Close ends the downloads that are on and waits for their end. The cache fetches
// nothing more; what it holds can still be read.
func (c *Cache) Close() {
	c.mu.Lock()
	c.closed = true
	for _, f := range c.flights {
		f.cancel()
	}
	c.mu.Unlock()
	c.group.Wait()
}

func (c *Cache) limit() bounds { return bounds{c.opt.MaxPixels, c.opt.MaxFrames} }

func (c *Cache) path(hash, mediaType string) string {
	return filepath.Join(c.dir, hash+"."+extensions[mediaType])
}

// Add keeps a picture that is at hand.
func (c *Cache) Add(ctx context.Context, data []byte, name string) (Picture, error) {
	if err := ctx.Err(); err != nil {
		return Picture{}, err
	}
	if int64(len(data)) > c.opt.MaxImage {
		return Picture{}, fmt.Errorf("keep picture %s: %w: %d bytes, the limit is %d", text.Clip(name, 100), ErrTooLarge, len(data), c.opt.MaxImage)
	}
	s, err := inspect(bytes.NewReader(data), c.limit())
	if err != nil {
		return Picture{}, fmt.Errorf("keep picture %s: %w", text.Clip(name, 100), err)
	}
	sum := sha256.Sum256(data)
	p := Picture{Hash: hex.EncodeToString(sum[:]), Type: s.Type, Width: s.Width, Height: s.Height, Size: int64(len(data)), Name: name}
	if c.touch(p) {
		return p, nil
	}
	f, err := os.CreateTemp(c.dir, tmpPattern)
	if err != nil {
		return Picture{}, fmt.Errorf("keep picture: %w", err)
	}
	_, err = f.Write(data)
	if err = errors.Join(err, f.Close()); err != nil {
		_ = os.Remove(f.Name())
		return Picture{}, fmt.Errorf("keep picture: %w", err)
	}
	return p, c.settle(f.Name(), p)
}

// settle moves a finished file to its name, and sweeps when it is time.
func (c *Cache) settle(tmp string, p Picture) error {
	path := c.path(p.Hash, p.Type)
	now := c.opt.Now()
	err := os.Chtimes(tmp, now, now)
	if err == nil {
		err = os.Rename(tmp, path)
	}
	if err != nil {
		_ = os.Remove(tmp)
		return fmt.Errorf("keep picture: %w", err)
	}
	c.mu.Lock()
	c.total += p.Size
	due := c.total > c.opt.MaxBytes || now.Sub(c.swept) > c.opt.MaxAge/24
	c.mu.Unlock()
	if due {
		_, err = c.Sweep()
	}
	return err
}

func (c *Cache) has(p Picture) bool {
	info, err := os.Stat(c.path(p.Hash, p.Type))
	return err == nil && info.Size() == p.Size
}

// touch notes that a picture is used, and reports whether it is there whole.
func (c *Cache) touch(p Picture) bool {
	now := c.opt.Now()
	return c.has(p) && os.Chtimes(c.path(p.Hash, p.Type), now, now) == nil
}

// Get gives a picture and its bytes, which are what their hash says. ErrGone: it
// is not here (any more); fetch or add it again.
func (c *Cache) Get(hash string) (Picture, []byte, error) {
	if !isHash(hash) {
		return Picture{}, nil, fmt.Errorf("picture %q: that is no hash: %w", text.Clip(hash, 80), ErrGone)
	}
	hash = strings.ToLower(hash)
	for mediaType := range extensions {
		data, err := readAtMost(c.path(hash, mediaType), c.opt.MaxImage)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return Picture{}, nil, fmt.Errorf("read picture %s: %w", hash, err)
		}
		sum := sha256.Sum256(data)
		s, err := inspect(bytes.NewReader(data), c.limit())
		if err != nil || hex.EncodeToString(sum[:]) != hash || s.Type != mediaType {
			_ = os.Remove(c.path(hash, mediaType)) // damaged: the next fetch brings it again
			continue
		}
		p := Picture{Hash: hash, Type: s.Type, Width: s.Width, Height: s.Height, Size: int64(len(data))}
		c.touch(p)
		return p, data, nil
	}
	return Picture{}, nil, fmt.Errorf("picture %s: %w; fetch it again", hash, ErrGone)
}

// readAtMost reads a file that should not be longer than most, and of a longer one
// only so much that it cannot be taken for a whole one.
func readAtMost(path string, most int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, most+1))
}

// Fit gives a picture as a provider takes it (Options.Send), by the hash of the
// original. The work is done once: its result is kept like any other picture.
func (c *Cache) Fit(ctx context.Context, hash string) (Picture, []byte, error) {
	key := keyOf(fmt.Sprintf("fit:%d:%d:%s", c.opt.Send.Base64, c.opt.Send.Edge, hash))
	if p, ok := c.known(key); ok {
		if p, data, err := c.Get(p.Hash); err == nil {
			return p, data, nil
		}
	}
	p, data, err := c.Get(hash)
	if err != nil || c.opt.Send.fits(p.Size, p.Width, p.Height) {
		return p, data, err
	}
	select {
	case c.fits <- struct{}{}:
		defer func() { <-c.fits }()
	case <-ctx.Done():
		return Picture{}, nil, ctx.Err()
	}
	data, _, _, _, err = Fit(data, c.opt.Send, c.opt.MaxPixels)
	if err != nil {
		return Picture{}, nil, fmt.Errorf("picture %s: %w", hash, err)
	}
	if p, err = c.Add(ctx, data, ""); err != nil {
		return Picture{}, nil, err
	}
	return p, data, c.remember(key, p)
}

func keyOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}
