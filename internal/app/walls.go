package app

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"chorus/internal/sandbox"
	"chorus/internal/sandbox/bwrap"
	"chorus/internal/sandbox/docker"
	"chorus/internal/tool/files"
)

// Sandboxes are the names people may choose.
func Sandboxes() []string { return []string{"host", "bwrap", "docker:CONTAINER[:PATH]"} }

// LaunchSandboxed is what our own program does when it is started inside a sandbox to
// put the last belt on. It reports false when that is not why it was started.
func LaunchSandboxed(args []string) (code int, ours bool) {
	if len(args) == 0 || args[0] != bwrap.LaunchArg {
		return 0, false
	}
	return bwrap.Launch(args[1:]), true
}

// probeTime is more than starting a sandbox takes, also on a busy machine.
const probeTime = 15 * time.Second

// executor gives what runs commands under a name. One that does not work here is an
// error with the reason: a command never falls back to weaker walls by itself.
func (a *App) executor(ctx context.Context, name, dir string) (sandbox.Executor, error) {
	kind, rest, _ := strings.Cut(name, ":")
	switch kind {
	case "", "host", "auto": // auto will be the strongest that works; walls still have to be asked for
		return a.Executor, nil
	case "bwrap":
		return a.bwrap(ctx)
	case "docker":
		container, inside, _ := strings.Cut(rest, ":")
		if container == "" {
			return nil, usage(fmt.Errorf("sandbox docker needs the name of a running container: docker:NAME, or docker:NAME:/path/in/it"))
		}
		made, err := docker.New(docker.Options{Container: container, Host: dir, Inside: inside, Environ: a.Environ})
		if err != nil {
			return nil, fmt.Errorf("sandbox docker: %w", err)
		}
		return made, nil
	default:
		return nil, usage(fmt.Errorf("unknown sandbox %q; there are %s", name, strings.Join(Sandboxes(), ", ")))
	}
}

// bwrap makes the executor on first use and tries it once.
func (a *App) bwrap(ctx context.Context) (sandbox.Executor, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.walls != nil {
		return a.walls, nil
	}
	made, err := a.newBwrap()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, probeTime)
	defer cancel()
	if err := made.Probe(ctx); err != nil {
		return nil, fmt.Errorf("sandbox bwrap does not work here: %w; or choose --sandbox host, which has no walls", err)
	}
	a.walls = made
	return made, nil
}

func (a *App) newBwrap() (*bwrap.Executor, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("sandbox bwrap: %w", err)
	}
	return bwrap.New(bwrap.Options{Environ: a.Environ, Hide: []string{a.Home.Dir()}, Launcher: self}), nil
}

// rooms are what a command of a thread sees behind walls.
func rooms(dir string, named []files.Root) []sandbox.Root {
	out := []sandbox.Root{{Path: dir, Writable: true}}
	for _, r := range named {
		out = append(out, sandbox.Root{Path: r.Dir, Writable: r.Writable})
	}
	return out
}

// chosenExecutor is a thread's executor; which one it is is chosen before each run.
type chosenExecutor struct {
	mu    sync.Mutex
	inner sandbox.Executor
}

var _ sandbox.Executor = (*chosenExecutor)(nil)

func (c *chosenExecutor) choose(e sandbox.Executor) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.inner = e
}

func (c *chosenExecutor) now() sandbox.Executor {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.inner
}

// Run implements sandbox.Executor.
func (c *chosenExecutor) Run(ctx context.Context, cmd sandbox.Command) (sandbox.Result, error) {
	return c.now().Run(ctx, cmd)
}

// Reap implements sandbox.Executor.
func (c *chosenExecutor) Reap(ctx context.Context, call string) (int, error) {
	return c.now().Reap(ctx, call)
}

// Name implements sandbox.Executor.
func (c *chosenExecutor) Name() string { return c.now().Name() }
