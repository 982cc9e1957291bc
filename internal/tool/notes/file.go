package notes

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"chorus/internal/datadir"
	"chorus/internal/tool"
)

// File is a notebook in a JSON file, an object of strings. The file is read on every use,
// so several processes may use it in turn. The first note creates it.
type File struct {
	path string
	mu   sync.Mutex
}

var _ Notebook = (*File)(nil)

// NewFile returns the notebook in the file at path.
func NewFile(path string) *File { return &File{path: path} }

// Get implements Notebook.
func (f *File) Get(_ context.Context, key string) (string, bool, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	notes, err := f.load()
	value, ok := notes[key]
	return value, ok, err
}

// List implements Notebook.
func (f *File) List(context.Context) ([]Note, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	notes, err := f.load()
	out := make([]Note, 0, len(notes))
	for _, key := range slices.Sorted(maps.Keys(notes)) {
		out = append(out, Note{key, notes[key]})
	}
	return out, err
}

// Set implements Notebook.
func (f *File) Set(_ context.Context, key, value string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	notes, err := f.load()
	if err != nil {
		return err
	}
	if _, there := notes[key]; !there && len(notes) >= maxNotes {
		return tool.Mistake(fmt.Sprintf("There are already %d notes; clear some first.", len(notes)))
	}
	notes[key] = value
	return f.save(notes)
}

// Clear implements Notebook.
func (f *File) Clear(_ context.Context, key string) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	notes, err := f.load()
	if err != nil {
		return 0, err
	}
	n := len(notes)
	if key == "" {
		clear(notes)
	} else {
		delete(notes, key)
	}
	if n -= len(notes); n == 0 {
		return 0, nil
	}
	return n, f.save(notes)
}

// load reads the file. It renames a file that is not in our format, and the
// error says so once; the next use starts a new file.
func (f *File) load() (map[string]string, error) {
	data, err := os.ReadFile(f.path)
	if errors.Is(err, fs.ErrNotExist) {
		return map[string]string{}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the notes: %w", err)
	}
	var notes map[string]string
	if err := json.Unmarshal(data, &notes); err == nil && notes != nil {
		return notes, nil
	}
	aside, err := f.setAside()
	if err != nil {
		return nil, fmt.Errorf("the notes in %s cannot be read, and cannot be set aside: %w", filepath.Base(f.path), err)
	}
	return nil, fmt.Errorf("the notes could not be read and were renamed to %s; start over", aside)
}

// setAside renames the file to an unused name.
func (f *File) setAside() (string, error) {
	for i := 1; ; i++ {
		aside := fmt.Sprintf("%s.broken-%d", f.path, i)
		err := os.Link(f.path, aside)
		if errors.Is(err, fs.ErrExist) {
			continue
		}
		if err == nil {
			err = os.Remove(f.path)
		} else {
			err = os.Rename(f.path, aside) // the file system has no hard links
		}
		return filepath.Base(aside), err
	}
}

// save writes the file in one step.
func (f *File) save(notes map[string]string) error {
	data, err := json.MarshalIndent(notes, "", "  ")
	if err != nil {
		return fmt.Errorf("write the notes: %w", err)
	}
	if err := os.MkdirAll(filepath.Dir(f.path), 0o700); err != nil {
		return fmt.Errorf("write the notes: %w", err)
	}
	return datadir.WriteFile(f.path, append(data, '\n'), 0o600)
}
