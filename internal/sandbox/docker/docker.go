// Package docker runs commands inside a container that already runs, through the
// docker program. It promises what every executor promises (package sandbox), inside
// as well: a command that is given up is dead in the container too and not only the
// client out here; a command whose start we gave up on never runs later; a command
// whose end we did not see is not reported as fine. The container needs a POSIX shell
// and /proc, nothing else. How well it isolates is the container's matter: Facts says
// what is known about it. An exec cannot restrict it further, so a command's Roots are
// ignored, and one that must not reach the network is refused where the container does.
package docker

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"chorus/internal/pattern"
	"chorus/internal/sandbox"
)

// Options say which container, and what it has of this machine.
type Options struct {
	Container string   // its name or id; it must run already
	Host      string   // the directory of this machine that the container has; commands run below it
	Inside    string   // where it has it; "" for the same path
	Environ   []string // the server's environment, usually os.Environ(); the docker program gets what it needs of it, the container nothing
	Program   string   // "" for "docker"
}

// Executor runs commands in one container. Safe for concurrent use.
type Executor struct {
	container string
	paths     mapping
	env       []string
	program   string

	requestTimeout time.Duration // for a short request to the daemon
	begin          time.Duration // for a command to be started; loaded machines need seconds
	linger         time.Duration // for the docker program to end after its command has

}

var _ sandbox.Executor = (*Executor)(nil)

var (
	//go:embed sweep.sh
	sweepScript string
	//go:embed run.sh
	runScript string
)

// goodName is docker's own rule for names and ids. It keeps out whatever could be an
// option, a path or a shell's.
var goodName = pattern.Lazy(`^[a-zA-Z0-9][a-zA-Z0-9_.-]*$`)

// maxName is beyond every name that docker makes.
const maxName = 255

// goodVariable is what a shell can export.
var goodVariable = pattern.Lazy(`^[A-Za-z_][A-Za-z0-9_]*$`)

// New is an executor for the container. Nothing is started or asked before the first
// command or Probe.
func New(o Options) (*Executor, error) {
	if len(o.Container) > maxName || !goodName().MatchString(o.Container) {
		return nil, fmt.Errorf("%q is no name of a container: letters, digits, and after the first also _ . -", o.Container)
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

func (e *Executor) Name() string { return "docker" }

// Reap implements sandbox.Executor. Of a container that is gone or does not run,
// nothing is left to kill.
func (e *Executor) Reap(ctx context.Context, call string) (int, error) {
	if call == "" {
		return 0, nil
	}
	n, err := e.sweep(ctx, "CHORUS_CALL_SUM="+sum(call), started{"-", "0"})
	if err == nil {
		return n, nil
	}
	if why := e.diagnose(ctx, err); !errors.Is(why, ErrNoContainer) && !errors.Is(why, ErrNotRunning) {
		return n, fmt.Errorf("end what is left of call %s: %w", call, why)
	}
	return 0, nil
}

// sum stands for a call where text is searched without borders: it has one length.
func sum(call string) string {
	s := sha256.Sum256([]byte(call))
	return hex.EncodeToString(s[:])
}

// sweep kills inside whatever carries the mark, and the group and session of who. What
// belongs to another user there (sudo) is root's to end.
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
		return 0, 0, fmt.Errorf("docker exec: the answer of the container is lost (%q)", oneLine(out))
	}
	return killed, stuck, nil
}

// arguments are what the docker program is started with, and the variables of the
// command under names that mean nothing to it: `--env NAME` takes the value from
// there, so that no value stands on a command line that everybody can read.
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
			return nil, nil, fmt.Errorf("start the command: %q is no variable that a shell can set", name)
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
		call = sum(command.Call)
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
