package documents

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"
	"strings"
)

// CheckError is a file that cannot become the next version of its document.
type CheckError struct {
	Path string
	Err  error
}

func (e *CheckError) Error() string {
	return fmt.Sprintf("%s: %v; fix the file; until then the last good version is used", e.Path, e.Err)
}

// Unwrap returns the reason.
func (e *CheckError) Unwrap() error { return e.Err }

// tries is how often others may be faster before we give up.
const tries = 20

var errBusy = errors.New("others keep changing it; try again")

// Sync makes one file and its document equal. A *CheckError means that the file cannot be used as it is.
func (c *Copies) Sync(ctx context.Context, name string) error {
	if c.Store == nil {
		return nil
	}
	k, ok := c.kind(name)
	if !ok {
		return fmt.Errorf("%s is no document", name)
	}
	act, _, _, err := c.look(ctx, k, name)
	if err != nil || act == nothing {
		return err
	}
	unlock, err := c.lock(ctx)
	if err != nil {
		return err
	}
	var changed []string
	defer func() {
		unlock()
		c.announce(changed)
	}()
	changed, err = c.sync(ctx, k, name)
	return err
}

// SyncAll makes all files and documents equal whose names begin with prefix. A
// problem with one is reported and does not stop the others.
func (c *Copies) SyncAll(ctx context.Context, prefix string) error {
	return c.syncMatching(ctx, prefix, "")
}

// SyncMatching is SyncAll for those that match one of a kind's patterns.
func (c *Copies) SyncMatching(ctx context.Context, prefix, pattern string) error {
	return c.syncMatching(ctx, prefix, pattern)
}

func (c *Copies) syncMatching(ctx context.Context, prefix, pattern string) error {
	if c.Store == nil {
		return nil
	}
	last, err := c.Store.Last(ctx)
	if err != nil {
		return err
	}
	names, err := c.different(ctx, prefix, pattern)
	if err != nil {
		return err
	}
	var changed []string
	if len(names) > 0 {
		if changed, err = c.syncNames(ctx, names); err != nil {
			return err
		}
	}
	if prefix == "" && pattern == "" {
		c.mu.Lock()
		c.seen = last
		c.mu.Unlock()
	}
	c.announce(changed)
	return nil
}

func (c *Copies) syncNames(ctx context.Context, names []string) (changed []string, err error) {
	unlock, err := c.lock(ctx)
	if err != nil {
		return nil, err
	}
	defer unlock()
	for _, name := range names {
		k, _ := c.kind(name)
		one, err := c.sync(ctx, k, name)
		changed = append(changed, one...)
		if ctx.Err() != nil {
			return changed, ctx.Err()
		}
		if mistake := (*CheckError)(nil); err != nil && !errors.As(err, &mistake) { // whoever reads the file reports its mistake
			c.tell(err.Error())
		}
	}
	return changed, nil
}

func (c *Copies) announce(names []string) {
	if len(names) > 0 && c.Changed != nil {
		c.Changed(names)
	}
}

// different lists the names of those that differ. It reads every file,
// and the database once. An empty pattern means all.
func (c *Copies) different(ctx context.Context, prefix, pattern string) ([]string, error) {
	heads, err := c.Store.List(ctx, prefix)
	if err != nil {
		return nil, err
	}
	known := map[string]Head{}
	for _, h := range heads {
		if _, ok := c.kind(h.Name); ok && matches(pattern, h.Name) {
			known[h.Name] = h
		}
	}
	for _, name := range c.files(pattern) {
		if _, ok := known[name]; !ok && strings.HasPrefix(name, prefix) {
			known[name] = Head{Name: name}
		}
	}
	var goes, comes []string // removals come first, to make room: a file may have become a folder
	for _, name := range slices.Sorted(maps.Keys(known)) {
		k, _ := c.kind(name)
		file, err := c.glance(k, name)
		if err != nil {
			c.tell(err.Error())
			continue
		}
		was, err := c.noted(ctx, name)
		if err != nil {
			return nil, err
		}
		switch decide(file, was, known[name]) {
		case nothing:
		case drop, remove, keepAndRemove, forget:
			goes = append(goes, name)
		default:
			comes = append(comes, name)
		}
	}
	return append(goes, comes...), nil
}

// files returns the names of the files here that are copies of documents, or will be.
func (c *Copies) files(only string) []string {
	var out []string
	for _, k := range c.Kinds {
		if only == "" {
			out = append(out, c.inTrees(k)...)
		}
		for _, pattern := range k.Patterns {
			if only != "" && pattern != only {
				continue
			}
			for _, name := range c.glob(pattern) {
				if k.owns(name) {
					out = append(out, name)
				}
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func matches(pattern, name string) bool {
	ok, _ := path.Match(pattern, name) // our patterns are valid
	return pattern == "" || ok
}

// glob returns the names in the home that match a pattern of ours.
func (c *Copies) glob(pattern string) []string {
	names, _ := fs.Glob(os.DirFS(c.Home.Dir()), pattern) // our patterns are valid
	return names
}

func (c *Copies) look(ctx context.Context, k Kind, name string) (action, copyFile, Head, error) {
	file, err := c.read(k, name)
	if err != nil {
		return nothing, file, Head{}, err
	}
	was, err := c.noted(ctx, name)
	if err != nil {
		return nothing, file, Head{}, err
	}
	doc, err := c.Store.Head(ctx, name)
	if err != nil {
		return nothing, file, doc, err
	}
	act := decide(file, was, doc)
	if act == write && k.With != nil {
		other, err := c.Store.Head(ctx, k.With(name))
		if err != nil {
			return nothing, file, doc, err
		}
		if other.Deleted && other.Seq > doc.Seq {
			act = drop
		}
	}
	return act, file, doc, nil
}

// sync carries out what decide says, under the lock. The process may die after each step:
// the file, the note and the document then say what is left to do.
func (c *Copies) sync(ctx context.Context, k Kind, name string) (changed []string, err error) {
	for range tries {
		act, file, doc, err := c.look(ctx, k, name)
		if err != nil {
			return changed, err
		}
		switch act {
		case nothing:
			return changed, nil
		case remember:
			return changed, c.setNote(ctx, name, note{doc.Version, doc.Digest})
		case forget:
			return changed, c.dropNote(name)
		case drop:
			err = c.dropDocument(ctx, name, doc)
		case take:
			err = c.takeOver(ctx, k, name, file, doc)
		default:
			changed = []string{name}
			err = c.giveWay(ctx, k, name, act, file, doc)
		}
		if !errors.Is(err, ErrMoved) {
			return changed, err
		}
	}
	return changed, fmt.Errorf("%s: %w", name, errBusy)
}

// dropDocument removes a document whose file is gone.
func (c *Copies) dropDocument(ctx context.Context, name string, doc Head) error {
	if _, err := c.Store.Delete(ctx, name, doc.Version, c.By); err != nil {
		return err
	}
	c.did("document removed")
	c.notify()
	return c.dropNote(name)
}

// takeOver makes a person's change to the file the next version.
func (c *Copies) takeOver(ctx context.Context, k Kind, name string, file copyFile, doc Head) error {
	if k.Check != nil {
		if err := k.Check(name, file.body); err != nil {
			return &CheckError{c.Path(name), err}
		}
	}
	next, err := c.Store.Put(ctx, name, file.text, doc.Version, c.By)
	if err != nil {
		return err
	}
	c.did("document written")
	c.notify()
	return c.setNote(ctx, name, note{next.Version, next.Digest})
}

// giveWay makes the file equal to the document.
func (c *Copies) giveWay(ctx context.Context, k Kind, name string, act action, file copyFile, head Head) error {
	doc, err := c.Store.Get(ctx, name)
	if err != nil {
		return err
	}
	if doc.Version != head.Version {
		return ErrMoved
	}
	if _, err := k.unpack(name, doc.Body); doc.There() && err != nil { // before anything is set aside
		return fmt.Errorf("%s is not written: %w", c.Path(name), err)
	}
	if act == keepAndWrite || act == keepAndRemove {
		if err := c.keepBeside(k, name, file); err != nil {
			return err
		}
		c.did("text kept beside")
	}
	if now, err := c.read(k, name); err != nil || now.there != file.there || now.digest != file.digest {
		return errors.Join(ErrMoved, err) // a person has just saved it: check again
	}
	if act == remove || act == keepAndRemove {
		if err := c.removeCopy(ctx, k, name); err != nil {
			return err
		}
		c.did("file removed")
		return c.dropNote(name)
	}
	if err := c.writeCopy(ctx, k, name, file, doc.Body); err != nil {
		return err
	}
	c.did("file written")
	return c.setNote(ctx, name, note{doc.Version, doc.Digest})
}

func (c *Copies) notify() {
	if c.Notify != nil {
		c.Notify()
	}
}
