package trust

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"chorus/internal/datadir"
	"chorus/internal/digest"
	"chorus/internal/lockfile"
	"chorus/internal/plainfile"
)

// Record is what was once trusted: a repository's list of servers, a
// skill, or what a server says about its tools.
type Record struct {
	Digest string            `json:"digest"` // of the list of servers, or of a skill's folder
	Files  map[string]string `json:"files,omitempty"`
	// Pending is what was seen since and differs; nobody has reviewed it yet.
	Pending map[string]string `json:"pending,omitempty"`
	Off     bool              `json:"off,omitempty"` // somebody disabled it
	By      string            `json:"by,omitempty"`
	At      time.Time         `json:"at,omitzero"`
}

// UnmarshalJSON also reads what earlier versions wrote: only the digest, because they bound no files.
func (r *Record) UnmarshalJSON(data []byte) error {
	if bytes.HasPrefix(data, []byte(`"`)) {
		return json.Unmarshal(data, &r.Digest)
	}
	type plain Record
	return json.Unmarshal(data, (*plain)(r))
}

// Covers reports whether the approval covers the list and the files as they are now.
func (r Record) Covers(digest string, files map[string]string) bool {
	return r.Digest != "" && r.Digest == digest && maps.Equal(r.Files, files)
}

// Store stores records by the path of the list, and small texts as they were
// when they were trusted, so that a change can be shown.
type Store struct {
	File  string // the records
	Texts string // a directory with one file per text, named by its digest
	// Diff shows the change of a text to people.
	Diff func(name, old, content string) string
	// Change changes the file of records if it is a copy of something shared with others;
	// nil: it is not shared. change may be called more than once.
	Change func(change func(text []byte) ([]byte, error)) error
}

// keptText is the largest text of which a person would still read a change.
const keptText = 64 << 10

// Get returns the record of a list. The zero Record, which trusts nothing,
// is also returned if the file of records is broken.
func (s Store) Get(list string) Record { return s.All()[list] }

// All returns every record by its key, or none if the file is broken.
func (s Store) All() map[string]Record {
	known, err := s.read()
	if err != nil {
		return map[string]Record{}
	}
	return known
}

func (s Store) read() (map[string]Record, error) {
	known := map[string]Record{}
	data, err := os.ReadFile(s.File)
	if errors.Is(err, fs.ErrNotExist) {
		return known, nil
	}
	if err == nil {
		err = json.Unmarshal(data, &known)
	}
	return known, err
}

// How long others may hold the records: they write a few small files.
const (
	lockTime = 10 * time.Second
	lockWait = 10 * time.Millisecond
)

// Update changes the records while nobody else can. change may be called more
// than once. A broken file is kept next to the new one.
func (s Store) Update(change func(records map[string]Record) error) error {
	var known map[string]Record
	update := func(text []byte) ([]byte, error) {
		known = map[string]Record{}
		if text != nil && json.Unmarshal(text, &known) != nil {
			if err := datadir.WriteFile(s.File+".broken", text, 0o600); err != nil {
				return nil, fmt.Errorf("%s can neither be read nor set aside: %w", s.File, err)
			}
			known = map[string]Record{}
		}
		if err := change(known); err != nil {
			return nil, err
		}
		data, err := json.MarshalIndent(known, "", "  ")
		return append(data, '\n'), err
	}
	do := s.changeFile
	if s.Change != nil {
		do = s.Change
	}
	if err := do(update); err != nil {
		return err
	}
	return s.prune(known)
}

// changeFile changes the file while no other process can.
func (s Store) changeFile(change func(text []byte) ([]byte, error)) error {
	var lock *lockfile.Lock
	for late := time.Now().Add(lockTime); ; time.Sleep(lockWait) {
		var err error
		if lock, err = lockfile.Try(s.File+".lock", nil); err == nil {
			break
		}
		if !errors.Is(err, lockfile.ErrHeld) || time.Now().After(late) {
			return fmt.Errorf("change %s: %w", s.File, err)
		}
	}
	defer lock.Release()
	text, err := os.ReadFile(s.File)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	data, err := change(text)
	if err != nil {
		return err
	}
	return datadir.WriteFile(s.File, data, 0o600)
}

// Put stores a record, and the texts of the list and of its files.
func (s Store) Put(list, workspace string, r Record) error {
	texts := map[string]string{list: r.Digest}
	for name, sum := range r.Files {
		texts[at(workspace, name)] = plainDigest(sum)
	}
	return s.Update(func(known map[string]Record) error {
		known[list] = r
		return s.KeepFiles(texts)
	})
}

// KeepFiles stores the contents of files, by path with their digests, so that a later change
// can be shown. It skips files that are too long, that are not text, or whose digest no longer
// matches. Whoever refers to them must call it inside Update.
func (s Store) KeepFiles(sums map[string]string) error {
	for path, sum := range sums {
		data, err := plainfile.Read(path, keptText)
		if err != nil || !readable(data) || plainDigest(sum) != digest.Of(data) {
			continue
		}
		if err := s.KeepText(string(data)); err != nil {
			return err
		}
	}
	return nil
}

// KeepText stores a text. It must be called inside Update.
func (s Store) KeepText(text string) error {
	if err := os.MkdirAll(s.Texts, 0o700); err != nil {
		return err
	}
	return datadir.WriteFile(filepath.Join(s.Texts, digest.Of(text)), []byte(text), 0o600)
}

// Text returns a stored text.
func (s Store) Text(sum string) (string, bool) {
	data, err := os.ReadFile(filepath.Join(s.Texts, plainDigest(sum)))
	return string(data), err == nil
}

// prune removes texts that no record refers to.
func (s Store) prune(known map[string]Record) error {
	used := map[string]bool{}
	for _, r := range known {
		used[r.Digest] = true
		for _, sums := range []map[string]string{r.Files, r.Pending} {
			for _, sum := range sums {
				used[plainDigest(sum)] = true
			}
		}
	}
	entries, err := os.ReadDir(s.Texts)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if !used[entry.Name()] && !entry.IsDir() {
			err = errors.Join(err, os.Remove(filepath.Join(s.Texts, entry.Name())))
		}
	}
	return err
}

// Change says how something differs from what was trusted.
type Change struct {
	Path string `json:"path"`
	How  string `json:"how"`            // "is new", "is gone", "changed", "leads elsewhere"
	Diff string `json:"diff,omitempty"` // unified; "" if the old text was not kept
}

// Changes compares the list and its files with a record.
func (s Store) Changes(list, workspace string, old, now Record) []Change {
	var out []Change
	if old.Digest == "" {
		return nil
	}
	if old.Digest != now.Digest {
		out = append(out, Change{Path: filepath.Base(list), How: "changed", Diff: s.diff(filepath.Base(list), list, old.Digest)})
	}
	names := slices.Sorted(maps.Keys(now.Files))
	for name := range old.Files {
		if _, ok := now.Files[name]; !ok {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	for _, name := range names {
		was, is := old.Files[name], now.Files[name]
		if was == is {
			continue
		}
		c := Change{Path: name, How: "changed"}
		switch {
		case was == "" && is == Absent, was == Absent && is == "":
			continue // no longer named, or newly named, and missing
		case was == "" || was == Absent:
			c.How = "is new"
		case is == "" || is == Absent:
			c.How = "is gone, or no longer named"
		case plainDigest(was) == plainDigest(is):
			c.How = "leads elsewhere"
		default:
			c.Diff = s.diff(name, at(workspace, name), plainDigest(was))
		}
		out = append(out, c)
	}
	return out
}

func (s Store) diff(name, path, old string) string {
	before, err := os.ReadFile(filepath.Join(s.Texts, old))
	if err != nil {
		return ""
	}
	after, err := plainfile.Read(path, keptText)
	if errors.Is(err, fs.ErrNotExist) {
		after, err = nil, nil
	}
	if err != nil || !readable(after) {
		return ""
	}
	return s.Diff(name, string(before), string(after))
}

func readable(data []byte) bool { return utf8.Valid(data) && !bytes.ContainsRune(data, 0) }

// plainDigest returns a digest without how its file was reached.
func plainDigest(sum string) string {
	plain, _, _ := strings.Cut(sum, " ")
	return plain
}

func at(workspace, name string) string {
	if filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(workspace, name)
}
