package isolate

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"chorus/internal/chat"
	"chorus/internal/datadir"
	"chorus/internal/sandbox"
	"chorus/internal/sandbox/bwrap"
	"chorus/internal/sandbox/hosttools"
	"chorus/internal/settings"
)

// isolatedExecutor runs a thread's commands in bubblewrap. Each command sees the workspace,
// the tools a developer needs, and its own home, which is kept. It reaches the hosts that the
// plan lists. Nothing is looked up before the first command.
type isolatedExecutor struct {
	app  *Isolation
	site *Site
	plan Plan

	mu     sync.Mutex
	found  *environment // without the name for commits
	naming sync.Mutex
	ready  *environment
}

// environment is what all commands of a run have in common.
type environment struct {
	roots []sandbox.Root
	vars  []string // NAME=value
	home  string
}

// named returns the environment with a file that sets the name for commits.
func (e environment) named(file string) *environment {
	return &environment{
		roots: append(slices.Clip(e.roots), sandbox.Root{Path: file}),
		vars:  append(slices.Clip(e.vars), "GIT_CONFIG_SYSTEM="+file),
		home:  e.home,
	}
}

var (
	_ sandbox.Executor     = (*isolatedExecutor)(nil)
	_ sandbox.Backgrounder = (*isolatedExecutor)(nil)
	_ sandbox.EarlyStarter = (*isolatedExecutor)(nil)
)

func (i *Isolation) newIsolated(s *Site, p Plan) *isolatedExecutor {
	return &isolatedExecutor{app: i, site: s, plan: p}
}

func (e *isolatedExecutor) Name() string { return "bwrap" }

// Reap implements sandbox.Executor. Children carry their mark inside a sandbox and outside.
func (e *isolatedExecutor) Reap(ctx context.Context, call string) (int, error) {
	return e.app.Executor.Reap(ctx, call)
}

func (e *isolatedExecutor) Run(ctx context.Context, cmd sandbox.Command) (sandbox.Result, error) {
	e.site.Proxy.early.wait(ctx)
	bubblewrap, err := e.app.Probe.Executor(ctx, e.app)
	if err != nil {
		return e.without(ctx, cmd, err)
	}
	env, err := e.environment(ctx, bubblewrap)
	if err != nil {
		return sandbox.Result{}, err
	}
	inner, err := e.inner(ctx, env, cmd)
	if err != nil {
		return sandbox.Result{}, err
	}
	refusals, done := e.site.Proxy.listen()
	res, err := bubblewrap.Run(ctx, inner)
	done()
	if err != nil {
		// It was known to work and no longer does: the machine may have changed.
		if lost := e.app.Probe.Again(ctx, e.app); lost != nil {
			return e.without(ctx, cmd, lost)
		}
		return res, err
	}
	return withNotes(res, cmd, append(refusals(), res.Notes...)), nil
}

// inner returns the command with everything that it sees and reaches.
func (e *isolatedExecutor) inner(ctx context.Context, env *environment, cmd sandbox.Command) (sandbox.Command, error) {
	proxy, err := e.site.Proxy.open(ctx, e.app, e.plan)
	if err != nil {
		return cmd, err
	}
	if len(cmd.Roots) == 0 {
		cmd.Roots = []sandbox.Root{{Path: cmd.Dir, Writable: true}}
	}
	cmd.Roots = slices.Concat(env.roots, proxy.roots, e.site.Roots, cmd.Roots)
	cmd.Env = slices.Concat(env.vars, proxy.env, cmd.Env)
	cmd.OpenGit, cmd.Folder = e.plan.openGit, e.folderOf(cmd)
	if e.plan.Programs != nil {
		cmd.Judge = e.plan.Programs(cmd.Call)
	}
	cmd.Home, cmd.Network = env.home, &sandbox.Network{Proxy: proxy.socket}
	return cmd, nil
}

// folderOf returns the id of the folder that a command must find where it
// runs. The plan only knows that of the workspace.
func (e *isolatedExecutor) folderOf(cmd sandbox.Command) string {
	if cmd.Dir != e.site.Dir {
		return ""
	}
	return e.plan.Folder
}

// Background implements sandbox.Backgrounder: it shows the command what Run
// would, in a sandbox that depends on no other process.
func (e *isolatedExecutor) Background(ctx context.Context, cmd sandbox.Command) (sandbox.Background, error) {
	b := sandbox.Background{Shell: cmd.Shell, Dir: cmd.Dir, Env: cmd.Env, Call: cmd.Call, Timeout: cmd.Timeout}
	bubblewrap, err := e.app.Probe.Executor(ctx, e.app)
	if err != nil {
		return b, e.mayDoWithout(err)
	}
	env, err := e.environment(ctx, bubblewrap)
	if err != nil {
		return b, err
	}
	if len(cmd.Roots) == 0 {
		cmd.Roots = []sandbox.Root{{Path: cmd.Dir, Writable: true}}
	}
	b.Isolated, b.Roots, b.Env = true, slices.Concat(env.roots, e.site.Roots, cmd.Roots), slices.Concat(env.vars, cmd.Env)
	b.Home, b.Hide, b.OpenGit, b.Judged = env.home, e.app.unseen(), e.plan.openGit, e.plan.Programs != nil
	b.Folder = e.folderOf(cmd)
	b.Hosts, b.Setting = e.plan.Hosts, hostsSetting(e.plan)
	for _, s := range e.plan.secrets {
		b.Secrets = append(b.Secrets, sandbox.NetworkSecret{Name: s.Name, Value: string(s.Value), Hosts: s.Hosts})
	}
	return b, nil
}

// without handles a command if no sandbox works. If the profile asks a person about each
// command, it runs on the host, with a warning; otherwise it is refused.
func (e *isolatedExecutor) without(ctx context.Context, cmd sandbox.Command, why error) (sandbox.Result, error) {
	if ctx.Err() != nil {
		return sandbox.Result{Aborted: true, ExitCode: -1}, nil
	}
	if err := e.mayDoWithout(why); err != nil {
		return sandbox.Result{}, err
	}
	return e.app.Executor.Run(ctx, cmd)
}

// mayDoWithout returns why a command may not run on the host. If it returns nil, it has warned people.
func (e *isolatedExecutor) mayDoWithout(why error) error {
	if e.plan.Need == Preferred {
		e.app.Notices.WarnOnce(fmt.Sprintf("commands run without a sandbox, as you and with your files: %s", why))
		return nil
	}
	reason := "profile " + e.plan.Profile + " lets commands run unasked"
	switch {
	case e.plan.Own:
		reason = "a sandbox is required"
	case e.plan.Yes:
		reason = "with --yes commands run unasked"
	}
	return fmt.Errorf("%s, so they need a sandbox, and none works here: %w. To run them without one, choose --sandbox host (sandbox: host)", reason, why)
}

// environment returns the environment, computed once.
func (e *isolatedExecutor) environment(ctx context.Context, bubblewrap *bwrap.Executor) (*environment, error) {
	e.naming.Lock()
	defer e.naming.Unlock()
	if e.ready != nil {
		return e.ready, nil
	}
	found, err := e.unnamed(bubblewrap)
	if err != nil {
		return nil, err
	}
	if text := e.app.names.Identity(ctx, e.site.Dir, e.app.Environ); text != "" {
		// Replacing the file would unmount it in the sandboxes that wait for a command.
		if old, err := os.ReadFile(e.nameFile()); err != nil || string(old) != text {
			if err := datadir.WriteFile(e.nameFile(), []byte(text), 0o600); err != nil {
				return nil, fmt.Errorf("write the name that commits are made in: %w", err)
			}
		}
		found = found.named(e.nameFile())
	}
	if ctx.Err() == nil { // otherwise git may not have answered
		e.ready = found
	}
	return found, nil
}

// lastEnvironment returns the environment with the name that the
// last commits were made in, without asking git.
func (e *isolatedExecutor) lastEnvironment(bubblewrap *bwrap.Executor) (*environment, error) {
	found, err := e.unnamed(bubblewrap)
	if err != nil {
		return nil, err
	}
	if _, err := os.Stat(e.nameFile()); err == nil {
		return found.named(e.nameFile()), nil
	}
	return found, nil
}

// nameFile returns the path of the git configuration with the name for commits.
func (e *isolatedExecutor) nameFile() string { return filepath.Join(e.base(), "gitconfig") }

// unnamed returns the environment without the name for commits, computed once.
func (e *isolatedExecutor) unnamed(bubblewrap *bwrap.Executor) (*environment, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.found != nil {
		return e.found, nil
	}
	bubblewrap.Prime() // both start programs
	a := e.app
	if _, err := a.Home.Ensure(a.Home.Outputs(e.site.Proxy.Thread)); err != nil { // mount sources must exist
		return nil, err
	}
	view := hosttools.Find(hosttools.Options{Environ: a.Environ, Home: a.UserHome(), Dir: e.site.Dir, Hide: []string{a.Home.Dir()},
		Roots: e.plan.Roots, Network: len(e.plan.Hosts) > 0, Root: os.Getuid() == 0})
	for _, text := range view.Problems {
		a.Notices.WarnOnce(text)
	}
	home, err := a.Home.Ensure(filepath.Join(e.base(), commandHome))
	if err != nil {
		return nil, fmt.Errorf("make a home for commands: %w", err)
	}
	e.found = &environment{roots: view.Roots, vars: view.Env, home: home}
	return e.found, nil
}

// commandHome is the home of commands, below base. The first command creates it.
const commandHome = "home"

// base returns the directory in which this agent's commands keep things for this workspace.
func (e *isolatedExecutor) base() string {
	return filepath.Join(e.app.Home.Dir(), "walls", cmp.Or(e.site.Agent, chat.DefaultAgent), settings.Place(e.site.Dir))
}

// withNotes adds what the proxy refused, and the executor's remarks, to the
// command's output: many programs report no more than an exit code.
func withNotes(res sandbox.Result, cmd sandbox.Command, notes []string) sandbox.Result {
	if len(notes) == 0 {
		return res
	}
	res.Remark(cmd, strings.Join(notes, "\n")+"\n")
	return res
}
