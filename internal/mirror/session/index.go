package session

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

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

// AppendIndex adds a session to the list of its repository. action is "created" or "resumed".
func AppendIndex(repo, action string, s Start, at time.Time) error {
	var line bytes.Buffer
	if err := encode(&line, at, indexLine{"session", s.SessionID, action, s.SessionPath, s.RepoRoot, s.Provider, s.Model, s.Mode}); err != nil {
		return err
	}
	path := filepath.Join(repo, Folder, "sessions.jsonl")
	if err := makeFolder(filepath.Dir(path)); err != nil {
		return fmt.Errorf("write session index: %w", err)
	}
	f, err := openLog(path)
	if err != nil {
		return fmt.Errorf("write session index: %w", err)
	}
	data := line.Bytes()
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
