package session

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// Entry is one session in an index.
type Entry struct {
	SessionID   string
	Action      string // created or resumed: what happened to it last
	SessionPath string
	RepoRoot    string
	Provider    string
	Model       string
	Mode        string
	Created     time.Time // when it is first mentioned
	At          time.Time // when it is last mentioned
}

type indexLine struct {
	Type        string `json:"type"`
	SessionID   string `json:"sessionId"`
	Action      string `json:"action"`
	SessionPath string `json:"sessionPath,omitempty"`
	RepoRoot    string `json:"repoRoot,omitempty"`
	Provider    string `json:"provider,omitempty"`
	Model       string `json:"model,omitempty"`
	Mode        string `json:"mode,omitempty"`
}

// Index is a repository's list of sessions, by the path of its file (IndexPath),
// which need not exist.
type Index string

// Append adds a line; a zero At is now.
func (x Index) Append(e Entry) error {
	if e.At.IsZero() {
		e.At = time.Now()
	}
	data, err := encode(e.At, indexLine{"session", e.SessionID, e.Action, e.SessionPath, e.RepoRoot, e.Provider, e.Model, e.Mode})
	if err != nil {
		return err
	}
	if err := makeFolder(filepath.Dir(string(x))); err != nil {
		return fmt.Errorf("write session index: %w", err)
	}
	f, err := os.OpenFile(string(x), os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return fmt.Errorf("write session index: %w", err)
	}
	if torn(f) {
		data = append([]byte("\n"), data...)
	}
	_, err = f.Write(data)
	if err = errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("write session index: %w", err)
	}
	return nil
}

// torn reports whether the file ends in the middle of a line.
func torn(f *os.File) bool {
	info, err := f.Stat()
	if err != nil || info.Size() == 0 {
		return false
	}
	end := make([]byte, 1)
	_, err = f.ReadAt(end, info.Size()-1)
	return err == nil && end[0] != '\n'
}

// List gives every session once, with what was said about it last, the most
// recently used first. A missing file is an empty list; broken lines are skipped
// with a warning (warn may be nil).
func (x Index) List(warn func(string)) ([]Entry, error) {
	f, err := os.Open(string(x))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read session index: %w", err)
	}
	defer func() { _ = f.Close() }()
	var list []Entry // in the order of the last mention
	in := newLines(f)
	for {
		l, err := in.next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("read session index: %w", err)
		}
		if l.blank() {
			continue
		}
		e, err := parseLine(l)
		if err != nil {
			if warn != nil {
				warn(fmt.Sprintf("session index line %d: skipped: %v", l.no, err))
			}
			continue
		}
		if e.kind != "session" || e.SessionID == "" {
			continue
		}
		entry := Entry{e.SessionID, e.Action, e.SessionPath, e.RepoRoot, e.Provider, e.Model, e.Mode, e.at, e.at}
		if i := slices.IndexFunc(list, func(o Entry) bool { return o.SessionID == e.SessionID }); i >= 0 {
			entry.Created = list[i].Created
			list = slices.Delete(list, i, i+1)
		}
		list = append(list, entry)
	}
	slices.Reverse(list)
	return list, nil
}

// Find looks a session up by its id.
func (x Index) Find(id string) (Entry, bool, error) {
	list, err := x.List(nil)
	if err != nil {
		return Entry{}, false, err
	}
	for _, e := range list {
		if e.SessionID == id {
			return e, true, nil
		}
	}
	return Entry{}, false, nil
}
