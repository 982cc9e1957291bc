// Package approved decides which skills are used: those that somebody has reviewed, in the reviewed version.
//
// It promises that:
//   - a skill, whoever wrote it, is off until it is approved, and off again as soon as a name, an executable bit or a byte of its folder changes;
//   - agents read and run a copy of what was approved, kept in the home, and never the folder in which the skill was found;
//   - the copy is checked against its digest before it is used.
//
// The same records contain what MCP servers say about their tools and the files that they start.
package approved

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"chorus/internal/datadir"
	"chorus/internal/digest"
	"chorus/internal/plainfile"
	"chorus/internal/skill"
	"chorus/internal/trust"
)

// Status says whether a skill is used, and if not, why.
type Status string

// The states.
const (
	On         Status = "on"
	New        Status = "new"        // nobody has reviewed it
	Changed    Status = "changed"    // it differs from what was approved
	Off        Status = "off"        // somebody disabled it
	Broken     Status = "broken"     // it cannot be read
	Overridden Status = "overridden" // another one of the same name takes precedence
)

// Skill is a skill that was found, and what is known about it.
type Skill struct {
	skill.Found
	ID        string // short, and stable as long as the skill is not moved
	Status    Status
	Record    trust.Record // what was approved; zero: nothing
	InsteadOf []string     // folders of skills of the same name over which it takes precedence
	Behind    string       // the folder of the skill that takes precedence over it
}

// Library finds skills and keeps the copies of the approved ones. It may be used from any goroutine.
type Library struct {
	Home *datadir.Home
	Lock trust.Store
	Diff func(name, old, content string) string // unified
	Now  func() time.Time

	finder skill.Finder
	mu     sync.Mutex
	lock   lockState
	views  map[string]map[string]string // contents of each view: digests by name
}

// lockState is the file of records as last read.
type lockState struct {
	modified time.Time
	size     int64
	records  map[string]trust.Record
}

const (
	skillPrefix = "skill:"
	shortID     = 10
)

// ShortID returns the id by which people name something in the lock.
func ShortID(key string) string {
	return digest.Of(key)[:shortID]
}

// records returns those of the lock; the map must not be changed.
func (l *Library) records() map[string]trust.Record {
	info, err := os.Stat(l.Lock.File)
	l.mu.Lock()
	defer l.mu.Unlock()
	if err != nil {
		l.lock = lockState{}
		return nil
	}
	if l.lock.records == nil || !info.ModTime().Equal(l.lock.modified) || info.Size() != l.lock.size || l.Now().Sub(info.ModTime()) < time.Second {
		l.lock = lockState{info.ModTime(), info.Size(), l.Lock.All()}
	}
	return l.lock.records
}

// inHome stands for the home folder in the key of a skill, so that the
// key is the same in the homes of other machines.
const inHome = "@home/"

// key returns the name under which the lock has a skill.
func (l *Library) key(dir string) string {
	home := l.Home.Dir()
	if real, err := filepath.EvalSymlinks(home); err == nil {
		home = real
	}
	if rel, err := filepath.Rel(home, dir); err == nil && filepath.IsLocal(rel) {
		return skillPrefix + inHome + filepath.ToSlash(rel)
	}
	return skillPrefix + dir
}

// record returns what the lock says about a skill. Skills of the
// home were once stored under their whole path.
func (l *Library) record(records map[string]trust.Record, dir string) trust.Record {
	if r, ok := records[l.key(dir)]; ok {
		return r
	}
	return records[skillPrefix+dir]
}

// Find lists the skills of a place, narrowest scope first, and problems of the folders themselves.
func (l *Library) Find(where skill.Where) (list []Skill, problems []string) {
	return l.find(where.Sources())
}

func (l *Library) find(sources []skill.Source) (list []Skill, problems []string) {
	found, problems := l.finder.Find(sources, l.Now())
	records := l.records()
	counts := map[string]int{} // which of the list takes precedence for a name
	for _, f := range found {
		s := Skill{Found: f, ID: ShortID(l.key(f.Dir)), Record: l.record(records, f.Dir)}
		s.Status = status(s)
		if s.Status == On {
			if at, ok := counts[s.Name]; ok {
				s.Status, s.Behind = Overridden, list[at].Dir
				list[at].InsteadOf = append(list[at].InsteadOf, s.Dir)
			} else {
				counts[s.Name] = len(list)
			}
		}
		list = append(list, s)
	}
	return list, problems
}

func status(s Skill) Status {
	switch {
	case s.Wrong != "":
		return Broken
	case s.Record.Off:
		return Off
	case s.Record.Digest == "":
		return New
	case s.Record.Digest != s.Tree.Digest:
		return Changed
	}
	return On
}

// Errors of requests.
var (
	ErrMoved  = errors.New("it has changed since it was shown; look at the difference again")
	ErrBroken = errors.New("it cannot be used")
)

// Approve allows a skill to be used as it is. digest identifies the
// version that was shown, which must be the present one.
func (l *Library) Approve(s Skill, digest, by string) error {
	switch {
	case s.Wrong != "":
		return fmt.Errorf("%w: %s", ErrBroken, s.Wrong)
	case digest != s.Tree.Digest:
		return ErrMoved
	}
	if err := l.keep(s); err != nil {
		return err
	}
	return l.changeSkill(s.Dir, func(r *trust.Record) error {
		*r = trust.Record{Digest: s.Tree.Digest, By: by, At: l.Now().UTC().Truncate(time.Second)}
		return nil
	})
}

// Disable disables a skill until it is approved again.
func (l *Library) Disable(s Skill, by string) error {
	return l.changeSkill(s.Dir, func(r *trust.Record) error {
		r.Off, r.By, r.At = true, by, l.Now().UTC().Truncate(time.Second)
		return nil
	})
}

func (l *Library) changeSkill(dir string, change func(*trust.Record) error) error {
	return l.update(func(records map[string]trust.Record) error {
		r := l.record(records, dir)
		if err := change(&r); err != nil {
			return err
		}
		delete(records, skillPrefix+dir)
		records[l.key(dir)] = r
		return l.prune(records)
	})
}

func (l *Library) change(key string, change func(*trust.Record) error) error {
	return l.update(func(records map[string]trust.Record) error {
		r := records[key]
		if err := change(&r); err != nil {
			return err
		}
		records[key] = r
		return l.prune(records)
	})
}

func (l *Library) update(change func(records map[string]trust.Record) error) error {
	err := l.Lock.Update(change)
	l.mu.Lock()
	l.lock = lockState{}
	l.mu.Unlock()
	return err
}

// copies returns where the approved skills are stored, by digest.
func (l *Library) copies() string { return filepath.Join(l.Lock.Texts, "skills") }

// keep copies a skill in its present state.
func (l *Library) keep(s Skill) error {
	at := filepath.Join(l.copies(), s.Tree.Digest)
	if tree, err := skill.ReadTree(at); err == nil && tree.Digest == s.Tree.Digest {
		return nil
	}
	if err := os.RemoveAll(at); err != nil {
		return err
	}
	if err := os.MkdirAll(l.copies(), 0o700); err != nil {
		return err
	}
	return replace(at, func(to string) error { return copyTree(s.Dir, to, s.Tree, nil) })
}

// replace creates a folder completely or not at all.
func replace(at string, fill func(to string) error) error {
	to, err := os.MkdirTemp(filepath.Dir(at), ".new-*")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(to) }()
	if err := os.Chmod(to, 0o755); err != nil {
		return err
	}
	if err := fill(to); err != nil {
		return err
	}
	return os.Rename(to, at)
}

// copyTree copies what the tree lists, and fails if the source differs from it. change
// (may be nil) returns what to write instead of a file's contents.
func copyTree(from, to string, tree skill.Tree, change func(path string, data []byte) []byte) error {
	root, err := os.OpenRoot(from)
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }()
	for _, e := range tree.Entries {
		name := filepath.FromSlash(e.Path)
		at := filepath.Join(to, name)
		if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
			return err
		}
		if e.Link != "" {
			if err := os.Symlink(e.Link, at); err != nil {
				return err
			}
			continue
		}
		data, err := readAll(root, e)
		if err != nil {
			return fmt.Errorf("%s: %w", e.Path, err)
		}
		if change != nil {
			data = change(e.Path, data)
		}
		mode := fs.FileMode(0o444)
		if e.Exec {
			mode = 0o555
		}
		if err := os.WriteFile(at, data, mode); err != nil {
			return err
		}
		if err := os.Chmod(at, mode); err != nil { // regardless of the umask
			return err
		}
	}
	return nil
}

// readAll reads a file, which must have the digest that was shown.
func readAll(root *os.Root, e skill.Entry) ([]byte, error) {
	file, info, err := plainfile.OpenIn(root, e.Path)
	if errors.Is(err, plainfile.ErrNotPlain) {
		return nil, ErrMoved
	}
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	if info.Size() != e.Size {
		return nil, ErrMoved
	}
	data := make([]byte, e.Size)
	if _, err := readFull(file, data); err != nil {
		return nil, err
	}
	if digest.Of(data) != e.Sum {
		return nil, ErrMoved
	}
	return data, nil
}

func readFull(file *os.File, into []byte) (n int, err error) {
	for n < len(into) {
		more, err := file.Read(into[n:])
		if n += more; err != nil {
			return n, ErrMoved
		}
	}
	return n, nil
}

// prune removes copies that no record refers to.
func (l *Library) prune(records map[string]trust.Record) error {
	used := map[string]bool{}
	for key, r := range records {
		if strings.HasPrefix(key, skillPrefix) {
			used[r.Digest] = true
		}
	}
	entries, err := os.ReadDir(l.copies())
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, e := range entries {
		if !used[e.Name()] && !strings.HasPrefix(e.Name(), ".") {
			err = errors.Join(err, os.RemoveAll(filepath.Join(l.copies(), e.Name())))
		}
	}
	return err
}

// Called finds the skill that a prompt calls by name, among those that are on.
func Called(on []Skill, prompt string) (s Skill, args string, ok bool) {
	name, args, ok := skill.Called(prompt)
	if !ok {
		return Skill{}, "", false
	}
	at := slices.IndexFunc(on, func(s Skill) bool { return s.Name == name && !s.Internal })
	if at < 0 {
		return Skill{}, "", false
	}
	return on[at], args, true
}

// Index returns what a model sees of the skills that are on.
func Index(on []Skill) string {
	list := make([]skill.Skill, len(on))
	for i, s := range on {
		list[i] = s.Skill
	}
	return skill.Index(list)
}
