package settings

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"chorus/internal/datadir"
	"chorus/internal/tool/mcp"
)

// Repository is what a repository wants to have running beside the agent.
type Repository struct {
	File     string // its .mcp.json
	Servers  []mcp.Server
	Problems []string
	Trusted  bool // somebody has looked at the file as it is now
	Digest   string
}

// Names are the servers' names with what they start.
func (r Repository) Names() []string {
	var out []string
	for _, s := range r.Servers {
		out = append(out, s.String())
	}
	return out
}

// maxRepositoryFile is far beyond any list of servers.
const maxRepositoryFile = 1 << 20

// RepositoryServers reads the .mcp.json of a working directory. A repository is no
// more trusted than whoever wrote it: what it names is started only once a person
// has said so, and a changed file is a new question.
func (s *Settings) RepositoryServers(dir string) (Repository, error) {
	r := Repository{File: filepath.Join(dir, ".mcp.json")}
	info, err := os.Lstat(r.File)
	if errors.Is(err, fs.ErrNotExist) {
		return r, nil
	}
	if err != nil || !info.Mode().IsRegular() || info.Size() > maxRepositoryFile {
		return r, fmt.Errorf("%s is left out: it must be a plain file of at most 1 MB", r.File)
	}
	data, err := os.ReadFile(r.File)
	if err != nil {
		return r, fmt.Errorf("%s is left out: %w", r.File, err)
	}
	servers, problems, err := mcp.ParseConfig(data, s.lookup)
	if err != nil {
		return r, fmt.Errorf("%s is left out: %w", r.File, err)
	}
	for _, p := range problems {
		r.Problems = append(r.Problems, p.String())
	}
	sum := sha256.Sum256(data)
	r.Servers, r.Digest = servers, hex.EncodeToString(sum[:])
	r.Trusted = s.trusted()[r.File] == r.Digest
	return r, nil
}

// lookup gives a repository's file the variables it names; whoever trusts it has seen which.
func (s *Settings) lookup(name string) (string, bool) {
	value := s.Env(name)
	return value, value != ""
}

// Trust remembers that the file as it is now may be obeyed.
func (s *Settings) Trust(r Repository) error {
	known := s.trusted()
	known[r.File] = r.Digest
	data, err := json.MarshalIndent(known, "", "  ")
	if err != nil {
		return err
	}
	return datadir.WriteFile(s.trustFile(), append(data, '\n'), 0o600)
}

func (s *Settings) trustFile() string { return filepath.Join(s.Home.Dir(), "trusted.json") }

// trusted maps files to the digests that were trusted; what cannot be read trusts nothing.
func (s *Settings) trusted() map[string]string {
	known := map[string]string{}
	if data, err := os.ReadFile(s.trustFile()); err == nil && json.Unmarshal(data, &known) != nil {
		return map[string]string{}
	}
	return known
}
