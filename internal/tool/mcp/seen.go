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

// Seen is how a server was when it last came or failed, in whatever process that was.
type Seen struct {
	At        time.Time `json:"at"`
	State     State     `json:"state"`
	Why       string    `json:"why,omitempty"`
	Tools     int       `json:"tools"`
	Prompts   int       `json:"prompts"`
	Resources int       `json:"resources"`
}

// LastSeen keeps how servers were, a file each, which may be lost. It may be used from several goroutines and processes;
// of two that write at once one counts.
type LastSeen struct{ dir string }

// NewLastSeen keeps them in a folder, which need not be there.
func NewLastSeen(dir string) LastSeen { return LastSeen{dir} }

// file is another one when the server is reached in another way: what was seen then says nothing any more.
func (l LastSeen) file(s Server) string {
	return filepath.Join(l.dir, clean(s.Name)+"-"+short(s.Name+"\x00"+s.Command+"\x00"+s.URL)+".json")
}

// Get is how a server was; a zero time: it was never seen.
func (l LastSeen) Get(s Server) (out Seen) {
	data, err := os.ReadFile(l.file(s))
	if err != nil || json.Unmarshal(data, &out) != nil {
		return Seen{}
	}
	return out
}

// Set writes down how a server is.
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

// removeFile removes a file; there may be none.
func removeFile(name string) error {
	if err := os.Remove(name); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
