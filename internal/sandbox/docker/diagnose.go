package docker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"chorus/internal/sandbox"
)

// container holds the results of docker inspect that matter here.
type container struct {
	State struct {
		Status          string
		Running, Paused bool
	}
	HostConfig struct {
		NetworkMode string
	}
	NetworkSettings struct {
		Networks map[string]struct{}
	}
}

func (e *Executor) inspect(ctx context.Context) (container, error) {
	out, err := e.ask(ctx, "container", "inspect", e.container)
	if err != nil {
		return container{}, err
	}
	var list []container
	if err := json.Unmarshal([]byte(out), &list); err != nil || len(list) != 1 {
		return container{}, fmt.Errorf("docker inspect: the answer cannot be read (%q)", oneLine(out))
	}
	return list[0], nil
}

// diagnose finds out why err occurred. It asks docker instead of parsing messages, which
// change between docker versions. The returned error says how to fix it.
func (e *Executor) diagnose(ctx context.Context, err error) error {
	if errors.Is(err, ErrNoProgram) || ctx.Err() != nil {
		return err
	}
	c, failed := e.inspect(ctx)
	switch {
	case failed == nil && c.State.Paused:
		return fmt.Errorf("%w: %s is paused; `docker unpause %s` lets it go on", ErrNotRunning, e.container, e.container)
	case failed == nil && !c.State.Running:
		return fmt.Errorf("%w: %s is %s; start it with `docker start %s`", ErrNotRunning, e.container, c.State.Status, e.container)
	case failed == nil:
		return fmt.Errorf("container %s: %w", e.container, err)
	}
	version, down := e.version(ctx)
	switch {
	case down != nil:
		return fmt.Errorf("%w: start it, or set DOCKER_HOST or DOCKER_CONTEXT to where it is (%w)", ErrNoDaemon, down)
	case errors.As(failed, new(*refusal)):
		return fmt.Errorf("%w: %s is not known to docker %s; create it with `%s`", ErrNoContainer, e.container, version, e.recipe())
	}
	return fmt.Errorf("container %s: %w", e.container, failed)
}

// reach refuses a command that must not reach the network in a container that does: an exec
// cannot take the container's network away, and assumed isolation is worse than none. It asks
// every time, because running containers can be connected.
func (e *Executor) reach(ctx context.Context, want *sandbox.Network) error {
	if want == nil || want.Open {
		return nil
	}
	c, err := e.inspect(ctx)
	if err != nil {
		return e.diagnose(ctx, err)
	}
	for name := range c.NetworkSettings.Networks {
		if name != "none" {
			return fmt.Errorf("%w: it is connected to %q; run `docker network disconnect %s %s`, create it with --network none, or choose a profile with an open network",
				ErrNetwork, name, name, e.container)
		}
	}
	if c.HostConfig.NetworkMode != "none" && len(c.NetworkSettings.Networks) == 0 && shares(c.HostConfig.NetworkMode) {
		return fmt.Errorf("%w: it uses the network of %q; create it with --network none, or choose a profile with an open network",
			ErrNetwork, c.HostConfig.NetworkMode)
	}
	return nil
}

// shares reports whether a network mode lends a container a network without connecting it to one.
func shares(mode string) bool { return mode == "host" || strings.HasPrefix(mode, "container:") }

// recipe returns a docker command that makes a suitable container.
func (e *Executor) recipe() string {
	return fmt.Sprintf("docker run -d --init --name %s -v %s:%s IMAGE sleep infinity", e.container, e.paths.host, e.paths.inside)
}

func (e *Executor) version(ctx context.Context) (string, error) {
	out, err := e.ask(ctx, "version", "--format", "{{.Server.Version}}")
	return strings.TrimSpace(out), err
}
