package documents

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"chorus/internal/digest"
)

// Change lets a program change a document. change is given the document's text, nil if there is
// none, and returns the new text, or nil to remove the document. It may be called more than
// once if others are faster. When Change returns, the file here has the new text too. A file
// that a person left with a mistake in it is not overwritten: that is a *CheckError. A file
// that is not a document is changed only here.
func (c *Copies) Change(ctx context.Context, name string, change func(text []byte) ([]byte, error)) error {
	unlock, err := c.lock(ctx)
	if err != nil {
		return err
	}
	var changed []string
	defer func() {
		unlock()
		c.announce(changed)
	}()
	k, ok := c.kind(name)
	if c.Store == nil || !ok {
		return c.changeFile(ctx, name, change)
	}
	for range tries {
		if changed, err = c.sync(ctx, k, name); err != nil {
			return err
		}
		if err = c.changeOnce(ctx, k, name, change); !errors.Is(err, ErrMoved) {
			return err
		}
	}
	return fmt.Errorf("change %s: %w", name, errBusy)
}

// Delete removes a document whose file is already gone from this home.
func (c *Copies) Delete(ctx context.Context, name string) error {
	unlock, err := c.lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	for range tries {
		doc, err := c.Store.Head(ctx, name)
		if err == nil && doc.There() {
			_, err = c.Store.Delete(ctx, name, doc.Version, c.By)
		}
		if errors.Is(err, ErrMoved) {
			continue
		}
		if err != nil {
			return err
		}
		c.did("document removed")
		c.notify()
		return c.dropNote(name)
	}
	return fmt.Errorf("remove %s: %w", name, errBusy)
}

// Removed reports whether the document existed and somebody removed it.
func (c *Copies) Removed(ctx context.Context, name string) (bool, error) {
	doc, err := c.Store.Head(ctx, name)
	return doc.Deleted, err
}

func (c *Copies) changeOnce(ctx context.Context, k Kind, name string, change func([]byte) ([]byte, error)) error {
	doc, err := c.Store.Get(ctx, name)
	if err != nil {
		return err
	}
	var now content
	if doc.There() {
		if now, err = k.unpack(name, doc.Body); err != nil {
			return fmt.Errorf("change %s: %w", name, err)
		}
		now.body = append([]byte{}, now.body...)
	}
	next, err := change(now.body)
	if err != nil {
		return err
	}
	text, err := k.pack(name, content{body: next, exec: now.exec})
	switch {
	case err != nil:
		return err
	case next == nil && !doc.There(), next != nil && doc.There() && digest.Of(text) == doc.Digest:
		return nil
	case next == nil:
		_, err = c.Store.Delete(ctx, name, doc.Version, c.By)
	default:
		_, err = c.Store.Put(ctx, name, text, doc.Version, c.By)
	}
	if err != nil {
		return err
	}
	c.did("document changed")
	c.notify()
	_, err = c.sync(ctx, k, name) // the file follows as on any other machine
	return err
}

func (c *Copies) changeFile(ctx context.Context, name string, change func([]byte) ([]byte, error)) error {
	if !filepath.IsLocal(filepath.FromSlash(name)) {
		return fmt.Errorf("%s is no file of the home", name)
	}
	file, err := c.read(Kind{}, name)
	if err != nil {
		return err
	}
	next, err := change(file.body)
	if err != nil {
		return err
	}
	if next == nil {
		return c.removeCopy(ctx, Kind{}, name)
	}
	return c.writeCopy(ctx, Kind{}, name, file, next)
}

// Owns reports whether a file is the copy of a document.
func (c *Copies) Owns(name string) bool {
	_, ok := c.kind(name)
	return ok && c.Store != nil
}

// LargestKept is the size of the longest text that is kept without a file.
const LargestKept = 25 << 20

// Keep writes a document that no home has a copy of. An existing one is not changed.
func (c *Copies) Keep(ctx context.Context, name string, body []byte) error {
	if len(body) > LargestKept {
		return tooLong(name, body)
	}
	_, err := c.Store.Put(ctx, name, body, 0, c.By)
	if errors.Is(err, ErrMoved) {
		return nil
	}
	return err
}

// KeepAnew is like Keep, but replaces an existing document.
func (c *Copies) KeepAnew(ctx context.Context, name string, body []byte) error {
	if len(body) > LargestKept {
		return tooLong(name, body)
	}
	for range tries {
		doc, err := c.Store.Head(ctx, name)
		if err == nil && !(doc.There() && doc.Digest == digest.Of(body)) {
			_, err = c.Store.Put(ctx, name, body, doc.Version, c.By)
		}
		if !errors.Is(err, ErrMoved) {
			return err
		}
	}
	return fmt.Errorf("keep %s: %w", name, errBusy)
}

func tooLong(name string, body []byte) error {
	return fmt.Errorf("keep %s: it has %d bytes, and at most %d are kept", name, len(body), LargestKept)
}

// Kept reads a document, or returns nil if there is none.
func (c *Copies) Kept(ctx context.Context, name string) ([]byte, error) {
	doc, err := c.Store.Get(ctx, name)
	if err != nil || !doc.There() {
		return nil, err
	}
	return doc.Body, nil
}
