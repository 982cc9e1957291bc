package serverconfig

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"chorus/internal/atomicfile"
)

// NewServer is a server that somebody adds.
type NewServer struct {
	Command string            `json:"command,omitempty"`
	Args    []string          `json:"args,omitempty"`
	Env     map[string]string `json:"env,omitempty"`
	Type    string            `json:"type,omitempty"`
	URL     string            `json:"url,omitempty"`
	Headers map[string]string `json:"headers,omitempty"`
}

// serverFile is the common form of a server file. It keeps entries as they were written.
type serverFile struct {
	Servers map[string]json.RawMessage `json:"mcpServers"`
}

func parseServerFile(text []byte) (serverFile, error) {
	out := serverFile{Servers: map[string]json.RawMessage{}}
	if text == nil {
		return out, nil
	}
	if err := json.Unmarshal(text, &out); err != nil {
		return out, fmt.Errorf("read the list of MCP servers: %w", err)
	}
	if out.Servers == nil {
		out.Servers = map[string]json.RawMessage{}
	}
	return out, nil
}

func (f serverFile) text() ([]byte, error) {
	data, err := json.MarshalIndent(f, "", "  ")
	return append(data, '\n'), err
}

// ReadServers reads a server file. A missing file holds no servers.
func ReadServers(file string) ([]Server, []Problem, error) {
	data, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	return ParseConfig(data, nil)
}

// AddServer adds a server to the text of a file (nil if there is none).
// A different server of that name is an error.
func AddServer(text []byte, name string, s NewServer) ([]byte, error) {
	all, err := parseServerFile(text)
	if err != nil {
		return nil, err
	}
	raw, err := json.Marshal(s)
	if err != nil {
		return nil, err
	}
	if there := all.Servers[name]; there != nil {
		var short bytes.Buffer
		if json.Compact(&short, there) == nil && bytes.Equal(short.Bytes(), raw) {
			return text, nil
		}
		return nil, fmt.Errorf("there is a server %s already; chorus mcp remove %s takes it out", name, name)
	}
	one, err := json.Marshal(map[string]json.RawMessage{name: raw})
	if err != nil {
		return nil, err
	}
	if _, problems, err := ParseConfig(one, func(string) (string, bool) { return "", true }); err != nil || len(problems) > 0 {
		if err == nil {
			err = errors.New(problems[0].String())
		}
		return nil, err
	}
	all.Servers[name] = raw
	return all.text()
}

// RemoveServer removes a server from the text of a file. It returns false if the server was not there.
func RemoveServer(text []byte, name string) ([]byte, bool, error) {
	all, err := parseServerFile(text)
	if err != nil || all.Servers[name] == nil {
		return text, false, err
	}
	delete(all.Servers, name)
	text, err = all.text()
	return text, true, err
}

// WritePrivate replaces a file as a whole, readable only by its owner.
func WritePrivate(file string, data []byte) error {
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return err
	}
	return atomicfile.Write(file, data, 0o600)
}
