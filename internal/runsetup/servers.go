package runsetup

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"chorus/internal/chat"
	"chorus/internal/config"
	"chorus/internal/journal"
	"chorus/internal/sandbox"
	"chorus/internal/sandbox/isolate"
	"chorus/internal/settings"
	"chorus/internal/store"
	"chorus/internal/tool"
	"chorus/internal/tool/mcp"
	"chorus/internal/tool/mcp/serverconfig"
)

// serverTerms are the terms on which MCP servers are started in a run.
type serverTerms struct {
	all  bool // includes servers of a repository that nobody has reviewed, because everything is allowed anyway
	plan isolate.Plan
	host mcp.Host // answers what servers ask
	// unstarted means that there is no run, and no server is started.
	unstarted bool
}

// withServers returns the agent's own tools, further ones, and those of the agent's MCP
// servers. It rebuilds the set only if the tools have changed.
func (setup *Setup) withServers(ctx context.Context, b *Toolbox, bot *config.Bot, terms serverTerms, own, more []tool.Tool) (*tool.Set, mcp.Listing, error) {
	servers, repo := setup.servers(b.Dir, bot, setup.serversOf(b.Proxy.Thread), terms.all)
	if terms.unstarted {
		servers, repo = nil, settings.Repository{}
	}
	key, err := json.Marshal([]any{servers, repo.Digest, repo.Files, terms.plan.Sandbox, terms.plan.Need, terms.plan.Roots})
	if err != nil {
		return nil, mcp.Listing{}, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if string(key) != b.servers {
		if b.hub != nil {
			b.hub.Close()
			b.hub = nil
		}
		b.many = nil
		if b.servers = string(key); len(servers) > 0 {
			b.hub = mcp.New(servers, setup.hubOptions(b, repo, terms.plan))
		}
	}
	if b.hub == nil && len(more) == 0 {
		return b.Tools, mcp.Listing{}, nil
	}
	var listing mcp.Listing
	if b.hub != nil {
		hub := b.hub
		hub.SetHost(terms.host)
		b.listing = func(ctx context.Context) mcp.Listing {
			return setup.approvedTools(b, servers, hub.Tools(ctx, b.Roots.Keep))
		}
		listing = b.listing(ctx)
	}
	more = slices.Concat(more, listing.Tools)
	var names []string
	for _, t := range more {
		s := t.Spec()
		names = append(names, s.Name, s.Description, string(s.Schema))
	}
	for _, t := range own {
		names = append(names, t.Spec().Name)
	}
	if key := strings.Join(names, "\x00"); b.many == nil || key != b.manyOf {
		set, err := tool.NewSet(slices.Concat(own, more)...)
		if err != nil {
			return nil, listing, err
		}
		b.many, b.manyOf = set, key
	}
	return b.many, listing, nil
}

// SetServers gives a thread MCP servers in addition to the configured ones, for as long
// as this process lives. The person at the session named them.
func (setup *Setup) SetServers(thread chat.ThreadID, servers []config.MCPServer) {
	setup.mu.Lock()
	defer setup.mu.Unlock()
	if setup.sessionServers == nil {
		setup.sessionServers = map[chat.ThreadID][]config.MCPServer{}
	}
	setup.sessionServers[thread] = servers
}

func (setup *Setup) serversOf(thread chat.ThreadID) []config.MCPServer {
	setup.mu.Lock()
	defer setup.mu.Unlock()
	return setup.sessionServers[thread]
}

// servers returns the servers of the configuration, those of the session, and those in the repository's
// own file if somebody trusts it or all is set. If dir is "", there is no repository.
func (setup *Setup) servers(dir string, bot *config.Bot, session []config.MCPServer, all bool) ([]mcp.Server, settings.Repository) {
	var out []mcp.Server
	for _, s := range slices.Concat(bot.MCPServers, session) {
		hosts := s.Hosts
		if !s.HostsNamed {
			hosts = bot.EgressHosts
		}
		server := mcp.Server{Name: s.Name, Type: s.Type, Command: s.Command, Args: s.Args, Env: s.Env, Dir: s.Dir, URL: s.URL, Headers: s.Headers,
			StartTimeout: s.StartTimeout, CallTimeout: s.CallTimeout, TaskTimeout: s.TaskTimeout, Hosts: hosts}
		if s.Sandbox == serverconfig.SandboxOff {
			server.Sandbox = serverconfig.SandboxOff
		}
		out = append(out, server)
	}
	out = append(out, setup.homeServers(out)...)
	if dir == "" {
		return out, settings.Repository{}
	}
	repo, err := setup.Settings.RepositoryServers(dir)
	if err != nil {
		setup.Notices.WarnOnce(err.Error())
		return out, repo
	}
	if repo.Trusted {
		for _, p := range repo.Problems {
			setup.Notices.WarnOnce(repo.File + ": " + p)
		}
	}
	switch {
	case len(repo.Servers) == 0:
	case repo.Trusted:
		out = append(out, repo.Servers...)
	case all:
		servers, problems := repo.Unseen()
		for _, p := range problems {
			setup.Notices.WarnOnce(fmt.Sprintf("%s: %s (servers that were not trusted get nothing of the environment: chorus config trust)", repo.File, p))
		}
		out = append(out, servers...)
	case len(repo.Changes) > 0:
		setup.Notices.WarnOnce(fmt.Sprintf("the MCP servers of %s are left out: they are not what was trusted%s; review the difference with chorus config trust",
			repo.File, repo.Changed()))
	default:
		setup.Notices.WarnOnce(fmt.Sprintf("%s names MCP servers: %s; they are left out until you trust it: chorus config trust",
			repo.File, strings.Join(repo.Names(), ", ")))
	}
	return out, repo
}

// hubOptions returns how the servers of a thread are started.
func (setup *Setup) hubOptions(b *Toolbox, repo settings.Repository, plan isolate.Plan) mcp.Options {
	trusted := func(s mcp.Server) error {
		switch {
		case !s.Workspace:
			return setup.Skills.Files(setup.describe(b.Dir, s, nil))
		case !repo.Trusted:
			return nil
		}
		return setup.Settings.StillTrusted(repo)
	}
	return mcp.Options{
		Dir: b.Dir, Environ: setup.Environ, Version: "chorus", Confirm: trusted, Logins: setup.logins(), Observe: setup.observeServer, Tasks: taskStore{setup.DB},
		Prepare: func(ctx context.Context, s mcp.Server, dir string) (*sandbox.Prepared, error) {
			if err := trusted(s); err != nil {
				return nil, err
			}
			if s.Sandbox == serverconfig.SandboxOff {
				return nil, nil
			}
			return setup.Isolation.Prepare(ctx, &b.Site, plan, serviceOf(b.Dir, s, dir, repo))
		},
	}
}

// taskStore stores in the settings which tasks of MCP servers calls have become.
type taskStore struct{ db *store.DB }

const taskScope = "mcp-task"

// Task implements mcp.TaskStore.
func (t taskStore) Task(ctx context.Context, call string) (string, error) {
	kept, err := t.db.Setting(ctx, taskScope, call)
	if errors.Is(err, journal.ErrUnknown) {
		return "", nil
	}
	return kept, err
}

// SetTask implements mcp.TaskStore.
func (t taskStore) SetTask(ctx context.Context, call, kept string) error {
	return t.db.SetSetting(ctx, taskScope, call, kept)
}

// mostFixed is how many files are mounted separately in a server's sandbox; each mount takes time.
const mostFixed = 50

// serviceOf returns what a server needs of a sandbox.
func serviceOf(workspace string, s mcp.Server, dir string, repo settings.Repository) isolate.Service {
	service := isolate.Service{Name: s.Name, Argv: append([]string{s.Command}, s.Args...), Dir: dir, Hosts: s.Hosts,
		HostsKey: "mcpServers." + s.Name + ".hosts in the configuration", Must: s.Workspace && !repo.Trusted}
	for _, name := range slices.Sorted(maps.Keys(s.Env)) {
		service.Env = append(service.Env, name+"="+s.Env[name])
	}
	if !s.Workspace {
		service.Shows = shows(workspace, dir, service.Argv)
		return service
	}
	service.HostsKey = `"hosts" of the server ` + s.Name + " in " + repo.File
	for _, name := range slices.Sorted(maps.Keys(repo.Files)) {
		file := filepath.Join(workspace, name)
		if len(service.Fixed) == mostFixed {
			break
		}
		if real, err := filepath.EvalSymlinks(file); err == nil && real == file && filepath.IsLocal(name) {
			service.Fixed = append(service.Fixed, file)
		}
	}
	return service
}

// shows returns the paths outside the workspace that a person's own configuration names for a server: its
// working directory, its program, its script with the files next to it, and folders.
func shows(workspace, dir string, argv []string) []string {
	var out []string
	add := func(path string) {
		if path != workspace && !strings.HasPrefix(path, workspace+"/") && !slices.Contains(out, path) {
			out = append(out, path)
		}
	}
	add(filepath.Clean(dir))
	for _, word := range argv {
		if _, value, ok := strings.Cut(word, "="); ok && strings.HasPrefix(word, "-") {
			word = value
		}
		if !filepath.IsAbs(word) {
			if !strings.Contains(word, "/") {
				continue
			}
			word = filepath.Join(dir, word)
		}
		real, err := filepath.EvalSymlinks(word)
		if err != nil {
			continue
		}
		if info, err := os.Stat(real); err == nil && info.IsDir() {
			add(filepath.Clean(word))
			continue
		}
		for _, file := range []string{filepath.Clean(word), real} { // a link needs its own folder to be shown as well
			for _, path := range project(filepath.Dir(file)) {
				add(path)
			}
		}
		add(real) // if its folder may not be shown
	}
	return out
}

// project returns the folder that a script belongs to (the nearest one above that is marked as a
// project, or else its own), and the packages that Node would find above it.
func project(dir string) []string {
	if before, _, inside := strings.Cut(dir+"/", "/node_modules/"); inside && before != "" {
		return []string{before + "/node_modules"}
	}
	out := []string{dir}
	for up, found := dir, false; up != filepath.Dir(up); up = filepath.Dir(up) {
		for _, mark := range []string{"package.json", "pyproject.toml", "pyvenv.cfg", "go.mod"} {
			if _, err := os.Lstat(filepath.Join(up, mark)); err == nil && !found {
				out[0], found = up, true
			}
		}
		if packages := filepath.Join(up, "node_modules"); isFolder(packages) {
			out = append(out, packages)
		}
	}
	return out
}

func isFolder(path string) bool {
	info, err := os.Lstat(path)
	return err == nil && info.IsDir()
}
