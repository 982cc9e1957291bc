// Package history keeps what a person typed at the terminal, so that a later session can bring it back.
//
// It promises that only its owner can read it; that two terminals at once lose nothing of each other's; that a file which was
// cut off by a kill costs the line that was being written and no other; and that it never grows beyond two files of a size.
package history

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"chorus/internal/lockfile"
)

// How large a file becomes before it is set aside, and what is too long to be worth keeping.
const (
	turnAt  = 1 << 20
	longest = 64 << 10
)

// File is the history of one person on one machine.
type File struct {
	path string
	now  func() time.Time
}

// Entry is one input.
type Entry struct {
	At   time.Time `json:"at"`
	Dir  string    `json:"dir,omitempty"` // where it was typed
	Text string    `json:"text"`
}

// In is the history in a file, which need not be there yet.
func In(path string) *File { return &File{path: path, now: time.Now} }

// old is where a full file is set aside. Whoever still writes into it loses nothing: it is read, too.
func (f *File) old() string { return f.path + ".old" }

// Load is everything that is kept, oldest first. What cannot be read is left out.
func (f *File) Load() []Entry {
	var out []Entry
	for _, path := range []string{f.old(), f.path} {
		data, err := os.ReadFile(path)
		if err != nil {
			continue
		}
		for line := range bytes.SplitSeq(data, []byte("\n")) {
			var e Entry
			if json.Unmarshal(line, &e) == nil && e.Text != "" {
				out = append(out, e)
			}
		}
	}
	return out
}

// Add keeps an input. One that begins with a space is not kept: that is how people say so to their shells.
func (f *File) Add(dir, text string) error {
	if strings.TrimSpace(text) == "" || strings.HasPrefix(text, " ") || len(text) > longest {
		return nil
	}
	line, err := json.Marshal(Entry{At: f.now().UTC(), Dir: dir, Text: text})
	if err != nil {
		return err
	}
	if err := f.append(line); err != nil {
		return fmt.Errorf("keep the input for later: %w", err)
	}
	return nil
}

func (f *File) append(line []byte) (err error) {
	if err := os.MkdirAll(filepath.Dir(f.path), 0o700); err != nil {
		return err
	}
	if err := f.turn(); err != nil {
		return err
	}
	file, err := os.OpenFile(f.path, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	line = append(line, '\n')
	if cutOff(file) {
		line = append([]byte("\n"), line...)
	}
	_, err = file.Write(line) // in one piece, so that two terminals do not mix
	return err
}

// turn sets a full file aside. Of two terminals that find it full one does: a second time would lose what was set aside.
func (f *File) turn() error {
	full := func() bool {
		info, err := os.Stat(f.path)
		return err == nil && info.Size() > turnAt
	}
	if !full() {
		return nil
	}
	lock, err := lockfile.Try(f.path+".lock", nil)
	if errors.Is(err, lockfile.ErrHeld) {
		return nil
	}
	if err != nil {
		return err
	}
	defer lock.Release()
	if !full() {
		return nil
	}
	return os.Rename(f.path, f.old())
}

// cutOff reports whether somebody was killed while they wrote the last line.
func cutOff(file *os.File) bool {
	info, err := file.Stat()
	if err != nil || info.Size() == 0 {
		return false
	}
	var last [1]byte
	_, err = file.ReadAt(last[:], info.Size()-1)
	return (err == nil || errors.Is(err, io.EOF)) && last[0] != '\n'
}

// Texts are the inputs of a folder, oldest first, each repetition in a row once. Dir "": of every folder.
func Texts(all []Entry, dir string) []string {
	var out []string
	for _, e := range all {
		if (dir == "" || e.Dir == dir) && (len(out) == 0 || out[len(out)-1] != e.Text) {
			out = append(out, e.Text)
		}
	}
	return out
}
