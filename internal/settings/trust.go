package settings

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"chorus/internal/digest"
	"chorus/internal/plainfile"
	"chorus/internal/tool/files"
	"chorus/internal/tool/mcp"
	"chorus/internal/tool/mcp/serverconfig"
	"chorus/internal/toolhook"
	"chorus/internal/trust"
)

// Repository is what a file of a repository wants to run alongside the agent.
type Repository struct {
	File     string // its .mcp.json, or its settings with hooks
	Servers  []mcp.Server
	Hooks    []toolhook.Hook
	Problems []string
	Trusted  bool // somebody has approved the file, and the files that it names, in their present state
	Digest   string
	Files    map[string]string // digests of the files that the commands name
	Unbound  []string          // what they name but the approval does not cover, and why
	Changes  []trust.Change    // since it was trusted; empty if it never was
}

// Names returns the servers' names with what they start, and the hooks' commands.
func (r Repository) Names() []string {
	var out []string
	for _, s := range r.Servers {
		out = append(out, s.String())
	}
	for _, h := range r.Hooks {
		out = append(out, fmt.Sprintf("%s %s: %s", h.Event, cmp.Or(h.Tools, "every call"), h.Command))
	}
	return out
}

// dir returns the working directory that the file belongs to.
func (r Repository) dir() string {
	for _, name := range toolhook.Files() {
		if dir, ok := strings.CutSuffix(r.File, string(filepath.Separator)+filepath.FromSlash(name)); ok {
			return dir
		}
	}
	return filepath.Dir(r.File)
}

// Unseen returns the servers for somebody who allows everything and has not reviewed them: they get
// nothing of our environment and reach nothing. They must only run in a sandbox.
func (r Repository) Unseen() ([]mcp.Server, []serverconfig.Problem) {
	data, err := readRepositoryFile(r.File)
	if err != nil || digest.Of(data) != r.Digest {
		return nil, nil
	}
	servers, problems, err := serverconfig.ParseConfig(data, func(string) (string, bool) { return "", false })
	if err != nil {
		return nil, nil
	}
	servers = slices.DeleteFunc(servers, func(s mcp.Server) bool { return s.Command == "" }) // sending things to an address needs no sandbox, so remote servers are excluded
	for i := range servers {
		servers[i].Workspace, servers[i].Sandbox, servers[i].Hosts = true, "", nil
	}
	return servers, problems
}

// maxRepositoryFile is far larger than any list of servers.
const maxRepositoryFile = 1 << 20

func readRepositoryFile(file string) ([]byte, error) {
	data, err := plainfile.ReadNoLink(file, maxRepositoryFile)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, errors.New("it must be a plain file of at most 1 MB")
	}
	return data, err
}

// RepositoryServers reads the .mcp.json of a working directory. A repository is no more trusted
// than whoever wrote it: what it names is started only once a person has approved it, and a change
// of the file, or of a file that it starts, requires a new approval.
func (s *Settings) RepositoryServers(dir string) (Repository, error) {
	r := Repository{File: filepath.Join(dir, ".mcp.json")}
	data, err := readRepositoryFile(r.File)
	if errors.Is(err, fs.ErrNotExist) {
		return r, nil
	}
	if err != nil {
		return r, fmt.Errorf("%s is left out: %w", r.File, err)
	}
	servers, problems, err := serverconfig.ParseConfig(data, s.lookup)
	if err != nil {
		return r, fmt.Errorf("%s is left out: %w", r.File, err)
	}
	for _, p := range problems {
		r.Problems = append(r.Problems, p.String())
	}
	for i := range servers {
		if servers[i].Workspace = true; servers[i].Sandbox == serverconfig.SandboxOff {
			servers[i].Sandbox = ""
			r.Problems = append(r.Problems, "MCP server "+servers[i].Name+": a repository cannot take its server out of the sandbox; name it under mcpServers in your own configuration")
		}
	}
	r.Servers = servers
	s.bind(&r, dir, data, s.commands(dir, servers))
	return r, nil
}

// bind finds the files that commands name, and whether somebody trusts
// them and their list in their present state.
func (s *Settings) bind(r *Repository, dir string, data []byte, commands []trust.Command) {
	bound := trust.Bind(dir, commands)
	r.Digest, r.Files, r.Unbound = digest.Of(data), bound.Files, bound.Unbound
	known := s.trustStore().Get(r.File)
	if r.Trusted = known.Covers(r.Digest, r.Files); !r.Trusted {
		r.Changes = s.trustStore().Changes(r.File, dir, known, trust.Record{Digest: r.Digest, Files: r.Files})
	}
}

// RepositoryHooks reads the settings files of a working directory that name tool hooks,
// and skips files that name none. They are trusted as servers are.
func (s *Settings) RepositoryHooks(dir string) (out []Repository, err error) {
	var failed []error
	for _, name := range toolhook.Files() {
		r, err := s.repositoryHooks(dir, name)
		if err != nil {
			failed = append(failed, err)
		} else if len(r.Hooks) > 0 {
			out = append(out, r)
		}
	}
	return out, errors.Join(failed...)
}

func (s *Settings) repositoryHooks(dir, name string) (Repository, error) {
	r := Repository{File: filepath.Join(dir, name)}
	data, err := readRepositoryFile(r.File)
	if errors.Is(err, fs.ErrNotExist) {
		return r, nil
	}
	if err == nil {
		r.Hooks, r.Problems, err = toolhook.Parse(name, data)
	}
	if err != nil {
		return r, fmt.Errorf("the hooks of %s are left out: %w", r.File, err)
	}
	var commands []trust.Command
	for _, h := range r.Hooks {
		command := h.Expand(dir)
		commands = append(commands, trust.Command{Words: []string{"sh", "-c", command}})
		if words := strings.Fields(command); len(words) > 0 { // what npm, make and similar programs read by themselves
			commands = append(commands, trust.Command{Words: words})
		}
	}
	s.bind(&r, dir, data, commands)
	return r, nil
}

// commands returns how the servers that are programs would be started.
func (s *Settings) commands(dir string, servers []mcp.Server) []trust.Command {
	var out []trust.Command
	for _, server := range servers {
		if server.Command == "" || server.Disabled {
			continue
		}
		program, _ := mcp.Program(server, dir, []string{"PATH=" + s.Env("PATH")}) // a missing program cannot be bound
		out = append(out, trust.Command{Program: program, Words: append([]string{server.Command}, server.Args...), Env: server.Env, Dir: server.Dir})
	}
	return out
}

// NamedFiles returns the files of a directory that a server's command starts or loads.
func (s *Settings) NamedFiles(dir string, server mcp.Server) []string {
	var out []string
	for name, sum := range trust.Bind(dir, s.commands(dir, []mcp.Server{server})).Files {
		if sum != trust.Absent {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}

// StartedFiles returns the digests of the files that a server of a person's own configuration starts or
// loads, by absolute path: those in the working folder, which agents may write, and those below the person's
// home directory. It excludes what the system has installed, which changes with its updates.
func (s *Settings) StartedFiles(dir, userHome string, server mcp.Server) map[string]string {
	if server.Command == "" {
		return nil
	}
	commands := s.commands(dir, []mcp.Server{server})
	for i := range commands {
		if !filepath.IsAbs(commands[i].Dir) {
			commands[i].Dir = filepath.Join(dir, commands[i].Dir)
		}
	}
	out := map[string]string{}
	for _, base := range []string{dir, userHome} {
		if base == "" || base == "/" {
			continue
		}
		for name, sum := range trust.Bind(base, commands).Files {
			if !filepath.IsAbs(name) {
				name = filepath.Join(base, name)
			}
			out[name] = sum
		}
	}
	return out
}

// StillTrusted returns why the servers or hooks of a repository may no
// longer be started, or nil. It checks the files again.
func (s *Settings) StillTrusted(r Repository) error {
	var now Repository
	var err error
	if len(r.Hooks) > 0 {
		now, err = s.repositoryHooks(r.dir(), r.Hooks[0].File)
	} else {
		now, err = s.RepositoryServers(r.dir())
	}
	switch {
	case err != nil:
		return err
	case !now.Trusted || now.Digest != r.Digest || !maps.Equal(now.Files, r.Files):
		return errors.New("what it starts is not what was trusted" + now.Changed() + ": look at it, and say: chorus config trust")
	}
	return nil
}

// Changed names what has changed since it was trusted, as the end of a
// sentence, or "" if nothing was trusted before.
func (r Repository) Changed() string {
	var out []string
	for _, c := range r.Changes {
		out = append(out, c.Path+" "+c.How)
	}
	if len(out) == 0 {
		return ""
	}
	return " (" + strings.Join(out, ", ") + ")"
}

// lookup gives a repository's file the variables it names; whoever trusts it has seen which.
func (s *Settings) lookup(name string) (string, bool) {
	value := s.Env(name)
	return value, value != ""
}

// Trust records that a person trusts the repository as it was read.
func (s *Settings) Trust(r Repository) error {
	return s.trustStore().Put(r.File, r.dir(), trust.Record{Digest: r.Digest, Files: r.Files})
}

// TrustStore returns the lock: what somebody has reviewed and approved.
func (s *Settings) TrustStore() trust.Store { return s.trustStore() }

func (s *Settings) trustStore() trust.Store {
	return trust.Store{File: filepath.Join(s.Home.Dir(), trustedName), Texts: filepath.Join(s.Home.Dir(), "trusted"), Diff: files.Unified,
		Change: func(change func([]byte) ([]byte, error)) error {
			ctx, cancel := context.WithTimeout(context.Background(), changeTime)
			defer cancel()
			return s.Copies().Change(ctx, trustedName, change)
		}}
}
