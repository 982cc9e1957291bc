package documents

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"chorus/internal/datadir"
	"chorus/internal/lockfile"
)

// Kind is a kind of documents: which files of a home are copies of documents, and what is special about them.
type Kind struct {
	// Patterns are paths below the home as path.Match understands them, with slashes. Names that begin with a dot never match a *.
	Patterns []string
	// Check says why a text that a person left in a file cannot become a version; nil: every text can. The last version holds then.
	Check func(name string, body []byte) error
	// Gone reports whether a missing file means that somebody removed the document; nil: it does.
	Gone func(name string) bool
	// Write makes a copy where there is none; nil: the folder and the file. Remove takes one away; nil: the file.
	Write  func(ctx context.Context, name string, body []byte) error
	Remove func(ctx context.Context, name string) error
}

func (k Kind) owns(name string) bool {
	if !filepath.IsLocal(filepath.FromSlash(name)) || path.Clean(name) != name || strings.Contains(name, "/.") {
		return false
	}
	return slices.ContainsFunc(k.Patterns, func(p string) bool {
		ok, _ := path.Match(p, name) // the patterns are ours
		return ok
	})
}

// Copies keeps the files of one home and the documents of a store equal. Several processes may do so for one home at the same
// time. It is safe for concurrent use. Without a Store there are only files.
type Copies struct {
	Home  *datadir.Home
	Store Store
	Kinds []Kind
	// By is who changes documents from here, for people who look later.
	By string
	// Warn hears what people should know: a text that was put aside, a file that cannot be taken over. nil: nobody does.
	Warn func(string)
	// Notify tells other machines to look; nil: they look by themselves.
	Notify func()
	// Changed hears which files were written or removed because their documents were changed elsewhere. nil: nobody does.
	Changed func(names []string)

	mu       sync.Mutex
	identity string
	told     map[string]bool
	seen     int64        // the number of the last change that a pass has seen
	step     func(string) // tests stop the process here
}

// FilesOnly changes files where there is no database.
func FilesOnly(home *datadir.Home) *Copies { return &Copies{Home: home} }

// largest is more than anybody writes by hand.
const largest = 1 << 20

// Path is the file that is the copy of a document.
func (c *Copies) Path(name string) string {
	return filepath.Join(c.Home.Dir(), filepath.FromSlash(name))
}

func (c *Copies) kind(name string) (Kind, bool) {
	for _, k := range c.Kinds {
		if k.owns(name) {
			return k, true
		}
	}
	return Kind{}, false
}

func (c *Copies) did(step string) {
	if c.step != nil {
		c.step(step)
	}
}

// tell says something once.
func (c *Copies) tell(text string) {
	c.mu.Lock()
	known := c.told[text]
	if c.told == nil {
		c.told = map[string]bool{}
	}
	c.told[text] = true
	c.mu.Unlock()
	if !known && c.Warn != nil {
		c.Warn(text)
	}
}

// read looks at a file.
func (c *Copies) read(k Kind, name string) (copyFile, error) {
	at := c.Path(name)
	info, err := os.Stat(at)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return copyFile{gone: c.gone(k, name)}, nil
	case err != nil:
		return copyFile{}, err
	case !info.Mode().IsRegular():
		return copyFile{}, fmt.Errorf("%s is no plain file; other machines cannot have a copy of it", at)
	case info.Size() > largest:
		return copyFile{}, fmt.Errorf("%s is longer than %d bytes, so it stays on this machine; make it shorter", at, largest)
	}
	body, err := os.ReadFile(at)
	if errors.Is(err, fs.ErrNotExist) {
		return copyFile{gone: c.gone(k, name)}, nil
	}
	if err != nil {
		return copyFile{}, err
	}
	return copyFile{there: true, body: body, digest: Digest(body)}, nil
}

// gone reports whether somebody removed a file that is missing.
func (c *Copies) gone(k Kind, name string) bool { return k.Gone == nil || k.Gone(name) }

// forgetMissing drops the notes below folders of the home that are missing as a whole: nobody has removed their files, a disk
// is not mounted.
func (c *Copies) forgetMissing() error {
	entries, err := os.ReadDir(c.Home.DocumentNotes())
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, e := range entries {
		if _, missing := os.Stat(c.Path(e.Name())); e.IsDir() && missing != nil {
			err = errors.Join(err, os.RemoveAll(c.notePath(e.Name())))
		}
	}
	return err
}

// What a copy was made from is one small file for each. They are not synced to the disk: a note that is lost, or is behind,
// costs at most a copy that is put aside.

func (c *Copies) notePath(name string) string {
	return filepath.Join(c.Home.DocumentNotes(), filepath.FromSlash(name))
}

func (c *Copies) noted(ctx context.Context, name string) (note, error) {
	data, err := os.ReadFile(c.notePath(name))
	if errors.Is(err, fs.ErrNotExist) {
		return note{}, nil
	}
	if err != nil {
		return note{}, err
	}
	database, err := c.database(ctx)
	if err != nil {
		return note{}, err
	}
	words := strings.Fields(string(data))
	if len(words) != 3 || words[0] != database {
		return note{}, nil
	}
	version, err := strconv.ParseInt(words[1], 10, 64)
	if err != nil {
		return note{}, nil
	}
	return note{version, words[2]}, nil
}

func (c *Copies) setNote(ctx context.Context, name string, to note) error {
	database, err := c.database(ctx)
	if err != nil {
		return err
	}
	at := c.notePath(name)
	if err := os.MkdirAll(filepath.Dir(at), 0o700); err != nil {
		return err
	}
	tmp := at + ".new"
	if err := os.WriteFile(tmp, fmt.Appendf(nil, "%s %d %s\n", database, to.version, to.digest), 0o600); err != nil {
		return err
	}
	return os.Rename(tmp, at)
}

func (c *Copies) dropNote(name string) error {
	if err := os.Remove(c.notePath(name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// database names the database; one without a name is "-".
func (c *Copies) database(ctx context.Context) (string, error) {
	c.mu.Lock()
	known := c.identity
	c.mu.Unlock()
	if known != "" {
		return known, nil
	}
	id, err := c.Store.Identity(ctx)
	if err != nil {
		return "", err
	}
	if id = strings.Join(strings.Fields(id), "-"); id == "" {
		id = "-"
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.identity = id
	return id, nil
}

// How long others may hold the copies of this home: they write a few small files.
const (
	lockTime = 10 * time.Second
	lockWait = 10 * time.Millisecond
)

// lock lets one process, and one part of it, change copies at a time.
func (c *Copies) lock(ctx context.Context) (unlock func(), err error) {
	ctx, cancel := context.WithTimeout(ctx, lockTime)
	defer cancel()
	again := time.NewTicker(lockWait) // a lock does not ring
	defer again.Stop()
	for {
		l, err := lockfile.Try(filepath.Join(c.Home.Locks(), "documents.lock"), nil)
		if err == nil {
			if err := c.forgetMissing(); err != nil {
				l.Release()
				return nil, err
			}
			return l.Release, nil
		}
		if !errors.Is(err, lockfile.ErrHeld) {
			return nil, err
		}
		select {
		case <-again.C:
		case <-ctx.Done():
			return nil, errors.New("another process is changing the files of this home; try again")
		}
	}
}

// keepBeside puts the text of a file that gives way beside it, under a name that says which text it is, so that doing it twice
// leaves one.
func (c *Copies) keepBeside(name string, file copyFile) error {
	beside := c.Path(name) + ".replaced-" + file.digest[:8]
	if err := datadir.WriteFile(beside, file.body, 0o600); err != nil {
		return err
	}
	c.tell(fmt.Sprintf("%s was changed here and on another machine; the other change holds, and what stood here is in %s", c.Path(name), beside))
	return nil
}

func (c *Copies) writeCopy(ctx context.Context, k Kind, name string, file copyFile, body []byte) error {
	if !file.there && k.Write != nil {
		return k.Write(ctx, name, body)
	}
	at := c.Path(name)
	if _, err := c.Home.Ensure(filepath.Dir(at)); err != nil {
		return err
	}
	return datadir.WriteFile(at, body, 0o600)
}

func (c *Copies) removeCopy(ctx context.Context, k Kind, name string) error {
	if k.Remove != nil {
		return k.Remove(ctx, name)
	}
	if err := os.Remove(c.Path(name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
