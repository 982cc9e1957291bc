package images

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path"
	"time"

	"chorus/internal/text"
)

// flight is a download that is on. Whoever asks for the same URL waits for it; when
// nobody waits any more it is given up.
type flight struct {
	cancel  context.CancelFunc
	waiters int
	done    chan struct{} // closed when pic and err are set
	pic     Picture
	err     error
}

// Fetch gives the picture at a URL, downloaded at most once in MaxAge however many
// ask for it. Errors are ErrRefused, ErrTooLarge, ErrNotPicture, or those of the network.
func (c *Cache) Fetch(ctx context.Context, address string) (Picture, error) {
	u, err := c.parse(address)
	if err != nil {
		return Picture{}, fmt.Errorf("fetch picture: %w", err)
	}
	name := path.Base(u.Path)
	if name == "." || name == "/" {
		name = ""
	}
	key := keyOf(u.String())
	p, ok := c.known(key)
	if !ok {
		if p, err = c.join(ctx, key, u); err != nil {
			return Picture{}, fmt.Errorf("fetch picture from %s: %w", text.Clip(u.Host, 100), err)
		}
	}
	p.Name = text.Clip(name, 200)
	return p, nil
}

func (c *Cache) parse(address string) (*url.URL, error) {
	if len(address) > maxURL {
		return nil, fmt.Errorf("%w: it is longer than %d bytes", ErrRefused, maxURL)
	}
	u, err := url.Parse(address)
	if err != nil {
		return nil, fmt.Errorf("%w: it is not a URL; check %q", ErrRefused, text.Clip(address, 100))
	}
	u.Fragment, u.RawFragment = "", ""
	return u, c.door.check(u)
}

// known finds a URL in the index, if its picture is here and not too old.
func (c *Cache) known(key string) (Picture, bool) {
	c.mu.Lock()
	e, ok := c.index.entries[key]
	c.mu.Unlock()
	if ok && c.usable(e) {
		return e.picture(), true
	}
	c.mu.Lock() // perhaps another process had it meanwhile
	if ok = c.index.refresh() == nil; ok {
		e, ok = c.index.entries[key]
	}
	c.mu.Unlock()
	if ok && c.usable(e) {
		return e.picture(), true
	}
	return Picture{}, false
}

// skew is how far the clocks of processes that share a folder may differ.
const skew = 5 * time.Minute

func (c *Cache) usable(e entry) bool {
	age := c.opt.Now().Sub(time.Unix(e.At, 0))
	return age <= c.opt.MaxAge && age >= -skew && c.touch(e.picture())
}

func (c *Cache) remember(key string, p Picture) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := entry{Key: key, Hash: p.Hash, Type: p.Type, W: p.Width, H: p.Height, Size: p.Size, At: c.opt.Now().Unix()}
	if err := c.index.add(e); err != nil {
		return fmt.Errorf("note where a picture came from: %w", err)
	}
	return nil
}

var errClosed = errors.New("the picture cache is closed")

// join waits for the download of a URL, beginning it if nobody has.
func (c *Cache) join(ctx context.Context, key string, u *url.URL) (Picture, error) {
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		return Picture{}, errClosed
	}
	f := c.flights[key]
	if f == nil {
		if e, ok := c.index.entries[key]; ok && c.usable(e) { // one that landed since we looked
			c.mu.Unlock()
			return e.picture(), nil
		}
		f = c.begin(context.WithoutCancel(ctx), key, u)
	}
	f.waiters++
	c.mu.Unlock()

	select {
	case <-f.done:
		return f.pic, f.err
	case <-ctx.Done():
	}
	c.mu.Lock()
	if f.waiters--; f.waiters == 0 {
		f.cancel()
		if c.flights[key] == f {
			delete(c.flights, key) // whoever asks now begins anew
		}
	}
	c.mu.Unlock()
	return Picture{}, ctx.Err()
}

// begin starts a download; mu is held.
func (c *Cache) begin(ctx context.Context, key string, u *url.URL) *flight {
	ctx, cancel := context.WithTimeout(ctx, c.opt.Timeout)
	f := &flight{cancel: cancel, done: make(chan struct{})}
	c.flights[key] = f
	c.group.Go(func() {
		defer cancel()
		f.pic, f.err = c.download(ctx, u)
		switch {
		case f.err == nil:
			f.err = c.remember(key, f.pic)
		case errors.Is(ctx.Err(), context.DeadlineExceeded):
			f.err = fmt.Errorf("it took longer than %v; try again or use another host: %w", c.opt.Timeout, f.err)
		}
		c.mu.Lock()
		if c.flights[key] == f {
			delete(c.flights, key)
		}
		c.mu.Unlock()
		close(f.done)
	})
	return f
}

func (c *Cache) download(ctx context.Context, u *url.URL) (Picture, error) {
	select {
	case c.slots <- struct{}{}:
		defer func() { <-c.slots }()
	case <-ctx.Done():
		return Picture{}, ctx.Err()
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return Picture{}, err
	}
	req.Header.Set("Accept", "image/png, image/jpeg, image/gif, image/webp")
	req.Header.Set("User-Agent", "chorus")
	resp, err := c.client.Do(req)
	if err != nil {
		if inner := (*url.Error)(nil); errors.As(err, &inner) {
			err = inner.Err // without the URL, which may be a secret
		}
		return Picture{}, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return Picture{}, fmt.Errorf("the server answered %d %s; check the address", resp.StatusCode, http.StatusText(resp.StatusCode))
	}
	if resp.ContentLength > c.opt.MaxImage {
		return Picture{}, fmt.Errorf("%w: %d bytes, the limit is %d", ErrTooLarge, resp.ContentLength, c.opt.MaxImage)
	}
	return c.receive(resp.Body)
}

// receive writes a body to disk while counting and hashing it, and looks at it there.
func (c *Cache) receive(body io.Reader) (p Picture, err error) {
	f, err := os.CreateTemp(c.dir, tmpPattern)
	if err != nil {
		return Picture{}, err
	}
	defer func() {
		if err != nil {
			_ = f.Close()
			_ = os.Remove(f.Name())
		}
	}()
	hash := sha256.New()
	n, err := io.Copy(io.MultiWriter(f, hash), io.LimitReader(body, c.opt.MaxImage+1))
	if err != nil {
		return Picture{}, fmt.Errorf("read the picture: %w", err)
	}
	if n > c.opt.MaxImage {
		return Picture{}, fmt.Errorf("%w: more than %d bytes", ErrTooLarge, c.opt.MaxImage)
	}
	if _, err = f.Seek(0, io.SeekStart); err != nil {
		return Picture{}, err
	}
	s, err := inspect(f, c.limit())
	if err != nil {
		return Picture{}, err
	}
	if err = f.Close(); err != nil {
		return Picture{}, err
	}
	p = Picture{Hash: hex.EncodeToString(hash.Sum(nil)), Type: s.Type, Width: s.Width, Height: s.Height, Size: n}
	return p, c.settle(f.Name(), p)
}
