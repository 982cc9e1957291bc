package mcp

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"chorus/internal/tool/mcp/serverconfig"
)

// Seen is the state of a server when it last started or failed, in any process.
type Seen struct {
	At        time.Time `json:"at"`
	State     State     `json:"state"`
	Why       string    `json:"why,omitempty"`
	Tools     int       `json:"tools"`
	Prompts   int       `json:"prompts"`
	Resources int       `json:"resources"`
}

// LastSeen stores the states of servers, in one file each. The files may be lost. It may be used
// from several goroutines and processes; if two write at once, one of them wins.
type LastSeen struct{ dir string }

// NewLastSeen stores them in a folder, which need not exist.
func NewLastSeen(dir string) LastSeen { return LastSeen{dir} }

// file depends on how the server is reached: if that changes, earlier states mean nothing.
func (l LastSeen) file(s Server) string {
	return filepath.Join(l.dir, clean(s.Name)+"-"+short(s.Name+"\x00"+s.Command+"\x00"+s.URL)+".json")
}

// Get returns the state of a server; its time is zero if the server was never seen.
func (l LastSeen) Get(s Server) (out Seen) {
	data, err := os.ReadFile(l.file(s))
	if err != nil || json.Unmarshal(data, &out) != nil {
		return Seen{}
	}
	return out
}

// Set stores the state of a server.
func (l LastSeen) Set(s Server, seen Seen) error {
	data, err := json.Marshal(seen)
	if err != nil {
		return err
	}
	return serverconfig.WritePrivate(l.file(s), data)
}

// Remove forgets a server.
func (l LastSeen) Remove(s Server) error {
	return removeFile(l.file(s))
}

// removeFile removes a file, if it exists.
func removeFile(name string) error {
	if err := os.Remove(name); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
