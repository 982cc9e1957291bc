package trust

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"chorus/internal/datadir"
)

// Record is what was trusted once.
type Record struct {
	Digest string            `json:"digest"` // of the list of servers
	Files  map[string]string `json:"files,omitempty"`
}

// UnmarshalJSON also reads what earlier versions wrote: the digest alone. They bound no files.
func (r *Record) UnmarshalJSON(data []byte) error {
	if bytes.HasPrefix(data, []byte(`"`)) {
		return json.Unmarshal(data, &r.Digest)
	}
	type plain Record
	return json.Unmarshal(data, (*plain)(r))
}

// Covers reports whether the yes is for the list and the files as they are now.
func (r Record) Covers(digest string, files map[string]string) bool {
	return r.Digest != "" && r.Digest == digest && maps.Equal(r.Files, files)
}

// Store keeps records by the path of the list, and small texts as they were when they were
// trusted, so that a change can be shown.
type Store struct {
	File  string // the records
	Texts string // a directory: one file a text, named by its digest
	// Diff shows the change of a text to people.
	Diff func(name, old, content string) string
}

// keptText is a text that a person would still read a change of.
const keptText = 64 << 10

// Get is the record of a list; the zero Record trusts nothing, which is also what a broken
// file of records does.
func (s Store) Get(list string) Record { return s.all()[list] }

func (s Store) all() map[string]Record {
	known := map[string]Record{}
	data, err := os.ReadFile(s.File)
	if err != nil || json.Unmarshal(data, &known) != nil {
		return map[string]Record{}
	}
	return known
}

// Put remembers a record, and the texts of the list and of its files.
func (s Store) Put(list, workspace string, r Record) error {
	known := s.all()
	known[list] = r
	data, err := json.MarshalIndent(known, "", "  ")
	if err != nil {
		return err
	}
	if err := datadir.WriteFile(s.File, append(data, '\n'), 0o600); err != nil {
		return err
	}
	if err := os.MkdirAll(s.Texts, 0o700); err != nil {
		return err
	}
	texts := map[string]string{list: r.Digest}
	for name, sum := range r.Files {
		texts[at(workspace, name)] = plainDigest(sum)
	}
	for path, sum := range texts {
		if data, err := readRegular(path, keptText); err == nil && readable(data) && sum == Digest(data) {
			if err := datadir.WriteFile(filepath.Join(s.Texts, sum), data, 0o600); err != nil {
				return err
			}
		}
	}
	return s.prune(known)
}

// prune removes texts that no record refers to.
func (s Store) prune(known map[string]Record) error {
	used := map[string]bool{}
	for _, r := range known {
		used[r.Digest] = true
		for _, sum := range r.Files {
			used[plainDigest(sum)] = true
		}
	}
	entries, err := os.ReadDir(s.Texts)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if !used[entry.Name()] {
			err = errors.Join(err, os.Remove(filepath.Join(s.Texts, entry.Name())))
		}
	}
	return err
}

// Change is how something differs from what was trusted.
type Change struct {
	Path string
	How  string // "is new", "is gone", "changed", "leads elsewhere"
	Diff string // unified; "" where the old text was not kept
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
			continue // named no longer, or newly, and not there
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
	after, err := readRegular(path, keptText)
	if errors.Is(err, fs.ErrNotExist) {
		after, err = nil, nil
	}
	if err != nil || !readable(after) {
		return ""
	}
	return s.Diff(name, string(before), string(after))
}

func readable(data []byte) bool { return utf8.Valid(data) && !bytes.ContainsRune(data, 0) }

// plainDigest is a digest without how its file was reached.
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
