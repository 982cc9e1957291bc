// Package history stores what a person typed at the terminal, so that a later session can offer it again.
//
// It promises that only its owner can read it; that two terminals at once lose nothing of each other's; that a kill in the middle of a
// write costs only the line being written; and that the history never takes more than two files of limited size.
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

// The maximum size of a file before it is rotated, and the length above which input is not kept.
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

// In is the history in a file, which may not exist yet.
func In(path string) *File { return &File{path: path, now: time.Now} }

// old is the rotated file. It is still read, so a process that still writes to it loses nothing.
func (f *File) old() string { return f.path + ".old" }

// Load returns all entries, oldest first. It skips unreadable lines.
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

// Add stores an input unless it starts with a space, as shells do.
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
	_, err = file.Write(line) // in one write, so that two terminals do not mix their lines
	return err
}

// turn rotates a full file. If two terminals find it full, only one rotates it: a second rotation would lose the first one's file.
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

// cutOff reports whether a kill interrupted the write of the last line.
func cutOff(file *os.File) bool {
	info, err := file.Stat()
	if err != nil || info.Size() == 0 {
		return false
	}
	var last [1]byte
	_, err = file.ReadAt(last[:], info.Size()-1)
	return (err == nil || errors.Is(err, io.EOF)) && last[0] != '\n'
}

// Texts are the inputs of a folder, oldest first, without consecutive repetitions. Dir "": of every folder.
func Texts(all []Entry, dir string) []string {
	var out []string
	for _, e := range all {
		if (dir == "" || e.Dir == dir) && (len(out) == 0 || out[len(out)-1] != e.Text) {
			out = append(out, e.Text)
		}
	}
	return out
}
