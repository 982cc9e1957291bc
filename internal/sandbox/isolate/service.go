package isolate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"chorus/internal/chat"
	"chorus/internal/egress"
	"chorus/internal/sandbox"
	"chorus/internal/sandbox/hosttools"
	"chorus/internal/settings"
)

// Service is a program that runs next to a thread's commands and is used
// over its standard streams, such as an MCP server.
type Service struct {
	Name     string
	Argv     []string
	Dir      string
	Env      []string // its own variables, NAME=value
	Hosts    []string // hosts that it may reach
	HostsKey string   // where they are configured, for people
	Shows    []string // further paths that it sees, read-only; those that no sandbox may show are left out
	Fixed    []string // files of the workspace that it sees but cannot change
	Writes   []string // further paths that it sees and may change
	Call     string   // marks its processes, so that they are found after a crash
	// Must refuses to run the service if no sandbox works, unless the sandbox was turned off. Without Must
	// it then runs unsandboxed, with a warning, unless the plan requires a sandbox.
	Must bool
}

// called returns what people call the service.
func (s Service) called() string {
	if s.Call != "" {
		return "the worker " + s.Name
	}
	return "the MCP server " + s.Name
}

// serviceHome is the path of the home in a sandbox.
const serviceHome = "/home/chorus"

// Prepare makes a service ready to start in its own sandbox. It sees the workspace, the
// machine's tools, and a home that no command can write to, and reaches the hosts that it
// names. Prepare returns nil if the service runs without a sandbox.
func (i *Isolation) Prepare(ctx context.Context, site *Site, p Plan, s Service) (*sandbox.Prepared, error) {
	kind, _, _ := strings.Cut(p.Sandbox, ":")
	if kind == "host" || p.Need == None {
		return nil, nil
	}
	bubblewrap, err := i.Probe.Executor(ctx, i)
	if err != nil {
		if s.Must || kind == "bwrap" || p.Own && p.Need == Required {
			return nil, fmt.Errorf("it must run in a sandbox, and none works here: %w", err)
		}
		i.Notices.WarnOnce(fmt.Sprintf("%s runs without a sandbox, as you and with your files: %s", s.called(), err))
		return nil, nil
	}
	p.Hosts, p.secrets, p.hostsKey = s.Hosts, nil, s.HostsKey
	if err := egress.Check(proxyRules(p)); err != nil {
		return nil, fmt.Errorf("%w (%s)", err, s.HostsKey)
	}
	command, err := i.serviceCommand(site, p, s)
	if err != nil {
		return nil, err
	}
	proxy := &EgressProxy{Thread: site.Proxy.Thread, OnRefused: func(text string) {
		i.Notices.WarnOnce(s.called() + ": " + strings.Trim(text, "[]"))
	}}
	opened, err := proxy.open(ctx, i, p)
	if err != nil {
		return nil, err
	}
	command.Roots = slices.Concat(opened.roots, command.Roots)
	command.Env = slices.Concat(command.Env, opened.env, s.Env)
	command.Network = &sandbox.Network{Proxy: opened.socket}
	prepared, err := bubblewrap.Prepare(command)
	if err != nil {
		return nil, errors.Join(err, proxy.Close())
	}
	release := prepared.Release
	prepared.Release = func() {
		release()
		if err := proxy.Close(); err != nil {
			i.Log.Warn("the proxy of "+s.called()+" was not closed: "+err.Error(), "component", "sandbox", "event", "proxy_not_closed", "server", s.Name)
		}
	}
	return prepared, nil
}

// serviceCommand returns the service as a sandbox command, except for its network.
func (i *Isolation) serviceCommand(site *Site, p Plan, s Service) (sandbox.Command, error) {
	view := hosttools.Find(hosttools.Options{Environ: i.Environ, Home: i.UserHome(), Dir: site.Dir, Hide: []string{i.Home.Dir()},
		Roots: slices.Concat(p.Roots, s.Shows), Network: len(p.Hosts) > 0, Root: os.Getuid() == 0})
	for _, text := range view.Problems {
		if !slices.ContainsFunc(s.Shows, func(path string) bool { return strings.HasPrefix(text, "sandboxRoots: "+path+" ") }) {
			i.Notices.WarnOnce(text)
		}
	}
	home := filepath.Join(i.Home.Dir(), "walls", cmp.Or(site.Agent, chat.DefaultAgent), settings.Place(site.Dir), "mcp", settings.Place(s.Name))
	if _, err := i.Home.Ensure(home); err != nil {
		return sandbox.Command{}, fmt.Errorf("make a home for the server: %w", err)
	}
	roots := append(slices.Concat(view.Roots, site.Roots), sandbox.Root{Path: site.Dir, Writable: true})
	for _, path := range s.Writes {
		roots = append(roots, sandbox.Root{Path: path, Writable: true})
	}
	for _, file := range s.Fixed {
		roots = append(roots, sandbox.Root{Path: file})
	}
	// Otherwise Python would run what is in the workspace's __pycache__,
	// where commands can write, instead of the file.
	env := append(view.Env, "PYTHONPYCACHEPREFIX="+serviceHome+"/.cache/pycache")
	command := sandbox.Command{Argv: s.Argv, Dir: s.Dir, Call: s.Call, Env: env, Home: home, Roots: roots, OpenGit: p.openGit}
	if s.Dir == site.Dir {
		command.Folder = p.Folder
	}
	return command, nil
}
