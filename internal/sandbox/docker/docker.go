// Package docker runs commands inside a running container, through the docker program. It promises
// what every executor promises (package sandbox), inside the container as well:
//   - a command that was given up is dead in the container too, not only its client outside;
//   - a command whose start was given up never runs later;
//   - a command whose end was not seen is not reported as successful.
//
// The container needs a POSIX shell and /proc, nothing else. How well it isolates is up to the container;
// Facts reports what is known about it. An exec cannot restrict a command further. Therefore a command's
// Roots are ignored, and a command that must not reach the network is refused if the container reaches it.
package docker

import (
	"cmp"
	"context"
	"crypto/rand"
	_ "embed"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"chorus/internal/digest"
	"chorus/internal/pattern"
	"chorus/internal/sandbox"
)

// Options name the container and what it shares with this machine.
type Options struct {
	Container string   // name or id; it must be running
	Host      string   // the directory of this machine that the container shares; commands run below it
	Inside    string   // its path in the container; "" for the same path
	Environ   []string // the server's environment, usually os.Environ(); the docker program gets what it needs of it, the container nothing
	Program   string   // "" for "docker"
}

// Executor runs commands in one container. It is safe for concurrent use.
type Executor struct {
	container string
	paths     mapping
	env       []string
	program   string

	requestTimeout time.Duration // for a short request to the daemon
	begin          time.Duration // for a command to start; busy machines need seconds
	linger         time.Duration // for the docker program to end after its command has ended

}

var _ sandbox.Executor = (*Executor)(nil)

var (
	//go:embed sweep.sh
	sweepScript string
	//go:embed run.sh
	runScript string
)

// goodName is docker's own rule for names and ids. It excludes anything
// that could be an option, a path or shell syntax.
var goodName = pattern.Lazy(`^[a-zA-Z0-9][a-zA-Z0-9_.-]*$`)

// maxName is longer than every name that docker makes.
const maxName = 255

// goodVariable matches names that a shell can export.
var goodVariable = pattern.Lazy(`^[A-Za-z_][A-Za-z0-9_]*$`)

// New returns an executor for the container. It starts and asks nothing before the first command or Probe.
func New(o Options) (*Executor, error) {
	if len(o.Container) > maxName || !goodName().MatchString(o.Container) {
		return nil, fmt.Errorf("%q is not a container name: letters, digits, and after the first also _ . -", o.Container)
	}
	paths, err := newMapping(o.Host, o.Inside)
	if err != nil {
		return nil, err
	}
	o.Program = cmp.Or(o.Program, "docker")
	return &Executor{
		container: o.Container, paths: paths, env: clientEnv(o.Environ), program: o.Program,
		requestTimeout: 10 * time.Second, begin: 20 * time.Second, linger: 2 * time.Second,
	}, nil
}

// Name implements sandbox.Executor.
func (e *Executor) Name() string { return "docker" }

// Reap implements sandbox.Executor. In a container that is gone or not running, nothing is left to kill.
func (e *Executor) Reap(ctx context.Context, call string) (int, error) {
	if call == "" {
		return 0, nil
	}
	// The search has no word boundaries, so a call is identified by a text of fixed length.
	n, err := e.sweep(ctx, "CHORUS_CALL_SUM="+digest.Of(call), started{"-", "0"})
	if err == nil {
		return n, nil
	}
	if why := e.diagnose(ctx, err); !errors.Is(why, ErrNoContainer) && !errors.Is(why, ErrNotRunning) {
		return n, fmt.Errorf("end the remaining processes of call %s: %w", call, why)
	}
	return 0, nil
}

// sweep kills everything inside the container that carries the mark, and the group and session of
// who. Processes of another user there (sudo) can only be ended by root.
func (e *Executor) sweep(ctx context.Context, mark string, who started) (int, error) {
	killed, stuck, err := e.sweepAs(ctx, nil, mark, who)
	if err != nil || stuck == 0 {
		return killed, err
	}
	more, stuck, err := e.sweepAs(ctx, []string{"--user", "0"}, mark, who)
	if err == nil && stuck > 0 {
		err = fmt.Errorf("%d processes in the container %s cannot be killed; `docker restart %s` ends them", stuck, e.container, e.container)
	}
	return killed + more, err
}

func (e *Executor) sweepAs(ctx context.Context, user []string, mark string, who started) (killed, stuck int, err error) {
	script := sweepScript + "\nchorus_sweep \"$@\" 2>/dev/null\necho \"swept $chorus_left $chorus_stuck\"\n"
	args := slices.Concat([]string{"exec"}, user,
		[]string{"--workdir", "/", e.container, "sh", "-c", script, "chorus", mark, who.pid, who.since})
	out, err := e.ask(ctx, args...)
	if err != nil {
		return 0, 0, err
	}
	if _, err := fmt.Sscanf(out, "swept %d %d", &killed, &stuck); err != nil {
		return 0, 0, fmt.Errorf("docker exec: the container's answer was lost (%q)", oneLine(out))
	}
	return killed, stuck, nil
}

// arguments returns the arguments of the docker program, and the variables of the command
// under names that mean nothing to docker. `--env NAME` takes the value from there, so no
// value appears on a command line that everybody can read.
func (e *Executor) arguments(command sandbox.Command, token, mark string) (args, env []string, err error) {
	dir, err := e.paths.dir(command.Dir)
	if err != nil {
		return nil, nil, fmt.Errorf("start the command: %w", err)
	}
	args = []string{"exec", "--interactive", "--workdir", dir}
	var names []string
	for _, entry := range command.Env {
		name, value, ok := strings.Cut(entry, "=")
		if !ok || !goodVariable().MatchString(name) {
			return nil, nil, fmt.Errorf("start the command: %q is not a variable that a shell can set", name)
		}
		names = append(names, name)
		args = append(args, "--env", "CHORUS_V_"+name)
		env = append(env, "CHORUS_V_"+name+"="+e.paths.argument(value))
	}
	kind, words, call := "shell", []string{command.Shell}, ""
	if len(command.Argv) > 0 {
		kind, words = "argv", nil
		for _, w := range command.Argv {
			words = append(words, e.paths.argument(w))
		}
	}
	if command.Call != "" {
		call = digest.Of(command.Call)
	}
	args = append(args, e.container, "sh", "-c", sweepScript+runScript, "chorus",
		token, flag(command.Merge), flag(len(command.Stdin) > 0), kind, mark, command.Call, call, strings.Join(names, " "))
	return append(args, words...), env, nil
}

func flag(b bool) string {
	if b {
		return "1"
	}
	return "0"
}

func newToken() string { return "\x1e" + rand.Text() }
