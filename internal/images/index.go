package images

import (
	"bytes"
	"cmp"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// indexName is the file that says which picture a URL led to. Every process
// appends whole lines; a sweep writes it anew.
const indexName = "urls.jsonl"

// The index is a help, so it may forget: what it loses is downloaded again.
const (
	maxEntries    = 10_000  // about 2 MB of memory
	maxIndexBytes = 8 << 20 // of a longer file only the end is read
	maxIndexLine  = 1 << 10
)

// entry is one line of the index. URLs are kept as hashes: they can be secrets,
// and they can be long.
type entry struct {
	Key  string `json:"url"`  // sha256 of the URL
	Hash string `json:"hash"` // sha256 of the bytes
	Type string `json:"type"`
	W    int    `json:"w"`
	H    int    `json:"h"`
	Size int64  `json:"size"`
	At   int64  `json:"at"` // when it was downloaded, Unix seconds
}

func (e entry) picture() Picture {
	return Picture{Hash: e.Hash, Type: e.Type, Width: e.W, Height: e.H, Size: e.Size}
}

func (e entry) valid() bool {
	return isHash(e.Key) && isHash(e.Hash) && extensions[e.Type] != "" && e.W > 0 && e.H > 0 && e.Size > 0
}

func isHash(s string) bool {
	if len(s) != 64 {
		return false
	}
	_, err := hex.DecodeString(s)
	return err == nil
}

// index is the memory of the file. It is for one goroutine at a time.
type index struct {
	path    string
	entries map[string]entry
	seen    fs.FileInfo // the file as it was read last
	read    int64       // how far it was read
}

func openIndex(dir string) *index {
	return &index{path: filepath.Join(dir, indexName), entries: map[string]entry{}}
}

// refresh reads what other processes added since. A file that was replaced is read whole.
func (x *index) refresh() error {
	f, err := os.Open(x.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if x.seen == nil || !os.SameFile(x.seen, info) || info.Size() < x.read {
		x.read = 0
	}
	from := max(x.read, info.Size()-maxIndexBytes)
	data, err := io.ReadAll(io.NewSectionReader(f, from, info.Size()-from))
	if err != nil {
		return err
	}
	x.absorb(data)
	// What stands behind the last newline may be a line in the making.
	x.seen, x.read = info, from+int64(bytes.LastIndexByte(data, '\n')+1)
	return nil
}

// absorb takes the lines of a file. What is not an entry is passed over: a torn
// write costs its own line only.
func (x *index) absorb(data []byte) {
	for line := range bytes.Lines(data) {
		if line = bytes.TrimSpace(line); len(line) == 0 || len(line) > maxIndexLine {
			continue
		}
		var e entry
		if json.Unmarshal(line, &e) == nil && e.valid() {
			x.put(e)
		}
	}
}

// put keeps the later of two entries for one URL, and the memory bounded.
func (x *index) put(e entry) {
	x.entries[e.Key] = e
	if len(x.entries) <= maxEntries {
		return
	}
	for _, old := range x.sorted()[:maxEntries/10] { // a tenth at once, so that this is rare
		delete(x.entries, old.Key)
	}
}

// sorted lists the entries, oldest first.
func (x *index) sorted() []entry {
	list := make([]entry, 0, len(x.entries))
	for _, e := range x.entries {
		list = append(list, e)
	}
	slices.SortFunc(list, func(a, b entry) int { return cmp.Or(cmp.Compare(a.At, b.At), cmp.Compare(a.Key, b.Key)) })
	return list
}

// add remembers an entry, in the file too.
func (x *index) add(e entry) error {
	x.put(e)
	line, err := json.Marshal(e)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(x.path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	// The newline in front ends whatever a crash has left there.
	_, err = f.Write(slices.Concat([]byte("\n"), line, []byte("\n")))
	return errors.Join(err, f.Close())
}

// prune forgets entries that are too old or whose picture is gone, and writes the
// file anew when it has become mostly air. What another process appends meanwhile may
// be lost, and is downloaded again.
func (x *index) prune(oldest time.Time, there func(entry) bool) error {
	if err := x.refresh(); err != nil {
		return err
	}
	for key, e := range x.entries {
		if e.At < oldest.Unix() || !there(e) {
			delete(x.entries, key)
		}
	}
	const typical = 300 // bytes of a line
	if x.seen == nil || x.seen.Size() < int64(len(x.entries)+64)*2*typical {
		return nil
	}
	var buf bytes.Buffer
	for _, e := range x.sorted() {
		line, err := json.Marshal(e)
		if err != nil {
			return err
		}
		buf.Write(line)
		buf.WriteByte('\n')
	}
	if err := replace(x.path, buf.Bytes()); err != nil {
		return fmt.Errorf("write %s: %w", indexName, err)
	}
	return nil
}

// tmpPattern names files in the making; a sweep removes those that a crash left.
const tmpPattern = "tmp-*"

// replace writes a file whole under a name of its own first: several processes
// may do it at once, and the last one wins.
func replace(path string, data []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), tmpPattern)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		_ = os.Remove(f.Name())
	}
	return err
}
