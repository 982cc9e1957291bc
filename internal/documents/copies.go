package documents

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"chorus/internal/datadir"
	"chorus/internal/lockfile"
)

// Copies keeps the files of one home and the documents of a store equal. Several
// processes may do so for one home at the same time. It is safe for concurrent
// use. Without a Store there are only files.
type Copies struct {
	Home  *datadir.Home
	Store Store
	Kinds []Kind
	// By says who changes documents from here, for people.
	By string
	// Warn is told what people should know: a text that was set aside,
	// a file that cannot be used. It may be nil.
	Warn func(string)
	// Notify tells other machines to check; nil means that they check by themselves.
	Notify func()
	// Changed is told which files were written or removed because their
	// documents were changed elsewhere. It may be nil.
	Changed func(names []string)

	mu       sync.Mutex
	identity string
	told     map[string]bool
	looked   map[string]looked // files as they were when last read
	seen     int64             // number of the last change seen by a pass
	step     func(string)      // a hook for tests, to stop the process here
}

// FilesOnly changes files without a database.
func FilesOnly(home *datadir.Home) *Copies { return &Copies{Home: home} }

// Path returns the file that is the copy of a document.
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

// gone reports whether a missing file was removed by somebody.
func (c *Copies) gone(k Kind, name string) bool {
	if tree := k.tree(name); tree != "" {
		if _, err := os.Stat(c.Path(tree)); err != nil {
			return false
		}
	}
	return k.Gone == nil || k.Gone(name)
}

// forgetMissing drops the notes for folders of the home that are missing as a
// whole: nobody has removed their files; a disk is not mounted.
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

// What a copy was made from is recorded in one small file each. These are not synced to disk: a
// note that is lost or outdated costs at most a copy that is set aside.

func (c *Copies) notePath(name string) string {
	return filepath.Join(c.Home.DocumentNotes(), filepath.FromSlash(name))
}

func (c *Copies) noted(ctx context.Context, name string) (note, error) {
	data, err := os.ReadFile(c.notePath(name))
	if missing(err) || errors.Is(err, syscall.EISDIR) {
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
	if err := c.roomForNote(name); err != nil {
		return err
	}
	tmp := filepath.Join(c.Home.DocumentNotes(), ".new") // only one process at a time writes here
	if err := os.WriteFile(tmp, fmt.Appendf(nil, "%s %d %s\n", database, to.version, to.digest), 0o600); err != nil {
		return err
	}
	return os.Rename(tmp, at)
}

// roomForNote creates the folder of a note. A former file may now be a folder, and vice versa.
func (c *Copies) roomForNote(name string) error {
	dir := c.Home.DocumentNotes()
	for part := range strings.SplitSeq(path.Dir(name), "/") {
		dir = filepath.Join(dir, part)
		if info, err := os.Lstat(dir); err == nil && !info.IsDir() {
			if err := os.Remove(dir); err != nil {
				return err
			}
		}
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	if info, err := os.Lstat(c.notePath(name)); err == nil && info.IsDir() {
		return os.RemoveAll(c.notePath(name))
	}
	return nil
}

func (c *Copies) dropNote(name string) error {
	if err := os.Remove(c.notePath(name)); err != nil && !missing(err) && !errors.Is(err, syscall.ENOTEMPTY) {
		return err // a folder has notes of others
	}
	return nil
}

// missing reports whether err means that something does not exist, nor a folder that it could be in.
func missing(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)
}

// database returns the name of the database; "-" if it has none.
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

// How long others may lock the copies of this home: they write a few small files.
const (
	lockTime = 10 * time.Second
	lockWait = 10 * time.Millisecond
)

// lock lets only one process, and one goroutine in it, change copies at a time.
func (c *Copies) lock(ctx context.Context) (unlock func(), err error) {
	ctx, cancel := context.WithTimeout(ctx, lockTime)
	defer cancel()
	again := time.NewTicker(lockWait) // a lock sends no signal
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
