package docker

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"time"

	"chorus/internal/sandbox/process"
	"chorus/internal/text"
)

// Why a command could not be started. The wrapping error says what to do.
var (
	ErrNoProgram   = errors.New("the docker program is missing")
	ErrNoDaemon    = errors.New("the docker daemon does not answer")
	ErrNoContainer = errors.New("there is no such container")
	ErrNotRunning  = errors.New("the container is not running")
	ErrNetwork     = errors.New("the container reaches a network that this command must not")
)

// forClient are the variables that the docker program needs to find
// its daemon. None of them reaches the container.
var forClient = []string{
	"PATH", "HOME", "USER", "LOGNAME", "TMPDIR", "XDG_CONFIG_HOME", "XDG_RUNTIME_DIR", "SSH_AUTH_SOCK",
	"DOCKER_HOST", "DOCKER_CONTEXT", "DOCKER_CONFIG", "DOCKER_CERT_PATH", "DOCKER_TLS", "DOCKER_TLS_VERIFY", "DOCKER_API_VERSION",
}

func clientEnv(environ []string) []string {
	var out []string
	for _, entry := range environ {
		if name, _, ok := strings.Cut(entry, "="); ok && slices.Contains(forClient, name) {
			out = append(out, entry)
		}
	}
	// Advertisements and questions are for terminals.
	return append(out, "DOCKER_CLI_HINTS=false", "LC_ALL=C")
}

// client returns a docker command that is not yet started. Text of a
// model is never placed where docker reads options.
func (e *Executor) client(env []string, args ...string) *exec.Cmd {
	cmd := exec.Command(e.program, args...)
	cmd.Env = slices.Concat(e.env, env)
	cmd.Dir = "/" // not our directory: a workspace must not be able to offer docker a file
	process.Lead(cmd)
	return cmd
}

// ask sends the daemon a short request. It ends with the context or
// after e.requestTimeout, whatever the program does.
func (e *Executor) ask(ctx context.Context, args ...string) (string, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, e.requestTimeout, fmt.Errorf("no answer within %s", e.requestTimeout))
	defer cancel()
	var out, said bytes.Buffer
	cmd := e.client(nil, args...)
	cmd.Stdout, cmd.Stderr = &out, &said
	cmd.WaitDelay = time.Second // in case a docker helper keeps a pipe open
	if err := cmd.Start(); err != nil {
		return "", e.startError(err)
	}
	stop := context.AfterFunc(ctx, func() { process.KillGroup(cmd) })
	defer stop()
	err := cmd.Wait()
	if ctx.Err() != nil {
		return "", fmt.Errorf("docker %s: %w", args[0], context.Cause(ctx))
	}
	if err != nil {
		return "", &refusal{what: args[0], said: oneLine(said.String()), err: err}
	}
	return out.String(), nil
}

func (e *Executor) startError(err error) error {
	if errors.Is(err, exec.ErrNotFound) || errors.Is(err, exec.ErrDot) {
		return fmt.Errorf("%w: install docker, or say where it is (looked for %q)", ErrNoProgram, e.program)
	}
	return fmt.Errorf("start docker: %w", err)
}

// refusal is an error message of docker itself.
type refusal struct {
	what, said string
	err        error
}

func (r *refusal) Error() string {
	if r.said == "" {
		return "docker " + r.what + ": " + r.err.Error()
	}
	return "docker " + r.what + ": " + r.said
}

func (r *refusal) Unwrap() error { return r.err }

// oneLine shortens docker's output for an error message.
func oneLine(s string) string { return text.Clip(text.OneLine(s), 500) }
