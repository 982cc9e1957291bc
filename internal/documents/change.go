package documents

import (
	"context"
	"errors"
	"fmt"
)

// Change is how a program changes a document: change is given its text, nil where there is none, and returns the next one, nil
// to remove it. It may be called more than once, when others are quicker. The file here says so, too, when Change returns.
// A file that a person left with a mistake in it is not written over: that is a *CheckError.
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
	if c.Store == nil {
		return c.changeFile(ctx, name, change)
	}
	k, ok := c.kind(name)
	if !ok {
		return fmt.Errorf("%s is no document", name)
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

// Delete removes a document whose file is gone from this home already.
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
		c.ring()
		return c.dropNote(name)
	}
	return fmt.Errorf("remove %s: %w", name, errBusy)
}

// Removed reports whether there was such a document and somebody removed it.
func (c *Copies) Removed(ctx context.Context, name string) (bool, error) {
	doc, err := c.Store.Head(ctx, name)
	return doc.Deleted, err
}

func (c *Copies) changeOnce(ctx context.Context, k Kind, name string, change func([]byte) ([]byte, error)) error {
	doc, err := c.Store.Get(ctx, name)
	if err != nil {
		return err
	}
	var text []byte
	if doc.There() {
		text = append([]byte{}, doc.Body...)
	}
	next, err := change(text)
	switch {
	case err != nil:
		return err
	case next == nil && !doc.There(), next != nil && doc.There() && Digest(next) == doc.Digest:
		return nil
	case next == nil:
		_, err = c.Store.Delete(ctx, name, doc.Version, c.By)
	default:
		_, err = c.Store.Put(ctx, name, next, doc.Version, c.By)
	}
	if err != nil {
		return err
	}
	c.did("document changed")
	c.ring()
	_, err = c.sync(ctx, k, name) // the file follows as it would on any other machine
	return err
}

func (c *Copies) changeFile(ctx context.Context, name string, change func([]byte) ([]byte, error)) error {
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

// LargestKept is the longest text that is kept without a file.
const LargestKept = 25 << 20

// Keep writes a document that no home has a copy of. One that is there stays as it is.
func (c *Copies) Keep(ctx context.Context, name string, body []byte) error {
	if len(body) > LargestKept {
		return fmt.Errorf("keep %s: it has %d bytes, and at most %d are kept", name, len(body), LargestKept)
	}
	_, err := c.Store.Put(ctx, name, body, 0, c.By)
	if errors.Is(err, ErrMoved) {
		return nil
	}
	return err
}

// Kept reads a document; nil: there is none.
func (c *Copies) Kept(ctx context.Context, name string) ([]byte, error) {
	doc, err := c.Store.Get(ctx, name)
	if err != nil || !doc.There() {
		return nil, err
	}
	return doc.Body, nil
}
