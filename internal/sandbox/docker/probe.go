package docker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"chorus/internal/sandbox"
)

// container is what docker inspect knows that matters here.
type container struct {
	State struct {
		Status          string
		Running, Paused bool
	}
	Config struct {
		Image, User string
	}
	HostConfig struct {
		Memory      int64
		NanoCpus    int64
		PidsLimit   *int64
		NetworkMode string
		PidMode     string
		Privileged  bool
		CapAdd      []string
	}
	NetworkSettings struct {
		Networks map[string]struct{}
	}
	Mounts []struct {
		Source, Destination string
		RW                  bool
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

// diagnose finds out why err came: it asks instead of reading words, which change with
// docker's version. What is said back has the remedy in it.
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
		return fmt.Errorf("%w: %s is not known to docker %s; make it with `%s`", ErrNoContainer, e.container, version, e.recipe())
	}
	return fmt.Errorf("container %s: %w", e.container, failed)
}

// reach refuses a command that must not reach the network when the container does: an
// exec cannot take away what the container has, and isolation that is only assumed is
// worse than none. Asked every time, because containers are connected while they run.
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
			return fmt.Errorf("%w: it is connected to %q; `docker network disconnect %s %s`, make it with --network none, or choose a profile with an open network",
				ErrNetwork, name, name, e.container)
		}
	}
	if c.HostConfig.NetworkMode != "none" && len(c.NetworkSettings.Networks) == 0 && shares(c.HostConfig.NetworkMode) {
		return fmt.Errorf("%w: it uses the network of %q; make it with --network none, or choose a profile with an open network",
			ErrNetwork, c.HostConfig.NetworkMode)
	}
	return nil
}

// shares reports the modes that lend a container a network without connecting it to one.
func shares(mode string) bool { return mode == "host" || strings.HasPrefix(mode, "container:") }

// recipe is a container that would do.
func (e *Executor) recipe() string {
	return fmt.Sprintf("docker run -d --init --name %s -v %s:%s IMAGE sleep infinity", e.container, e.paths.host, e.paths.inside)
}

func (e *Executor) version(ctx context.Context) (string, error) {
	out, err := e.ask(ctx, "version", "--format", "{{.Server.Version}}")
	return strings.TrimSpace(out), err
}

// Probe says whether commands can be run, and if not, why and what to do: it asks the
// daemon, looks at the container, and has it look for a file that was just put into
// the shared directory. Facts has more to say afterwards.
func (e *Executor) Probe(ctx context.Context) error {
	version, err := e.version(ctx)
	if err != nil {
		return e.diagnose(ctx, err)
	}
	c, err := e.inspect(ctx)
	if err == nil && (!c.State.Running || c.State.Paused) {
		err = ErrNotRunning
	}
	if err != nil {
		return e.diagnose(ctx, err)
	}
	if err := e.look(ctx); err != nil {
		return err
	}
	facts := append([]string{fmt.Sprintf("docker %s answers, the container %s runs (image %s)", version, e.container, c.Config.Image)}, c.describe()...)
	e.mu.Lock()
	e.facts = facts
	e.mu.Unlock()
	return nil
}

// look checks that the container has a shell, /proc, and the directory where it is
// said to be.
func (e *Executor) look(ctx context.Context) error {
	canary, err := os.CreateTemp(e.paths.host, ".chorus-probe-*")
	if err != nil {
		return fmt.Errorf("look for the workspace of the container %s: %w", e.container, err)
	}
	_ = canary.Close()
	defer func() { _ = os.Remove(canary.Name()) }()
	const script = `[ -r /proc/$$/environ ] && echo proc; [ -e "$1" ] && echo shared; echo shell`
	in, _ := e.paths.in(filepath.Join(e.paths.host, filepath.Base(canary.Name())))
	out, err := e.ask(ctx, "exec", "--workdir", "/", e.container, "sh", "-c", script, "chorus", in)
	if err != nil {
		return e.diagnose(ctx, err)
	}
	found := strings.Fields(out)
	switch {
	case !slices.Contains(found, "shell"):
		return fmt.Errorf("container %s: its shell does not answer; it needs a POSIX sh", e.container)
	case !slices.Contains(found, "proc"):
		return fmt.Errorf("container %s: it has no readable /proc, so commands in it could not be ended", e.container)
	case !slices.Contains(found, "shared"):
		return fmt.Errorf("container %s: it does not have %s as %s; make it with `%s`", e.container, e.paths.host, e.paths.inside, e.recipe())
	}
	return nil
}

// Facts says what runs where and how well it is isolated: always the mapping, and after a
// Probe that succeeded what docker reports about the container.
func (e *Executor) Facts() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	where := fmt.Sprintf("commands run in the container %s; each of them sees all of %s, as %s", e.container, e.paths.host, e.paths.inside)
	return slices.Concat([]string{where, "nothing of the server's environment reaches them"}, e.facts)
}

// describe says what holds and what does not.
func (c container) describe() []string {
	limit := func(on bool, with, without string) string {
		if on {
			return with
		}
		return without
	}
	h := c.HostConfig
	pids := int64(0)
	if h.PidsLimit != nil {
		pids = *h.PidsLimit
	}
	facts := []string{
		limit(c.Config.User != "", "commands run as the user "+c.Config.User, "commands run as the image's own user, mostly root inside"),
		limit(h.NetworkMode == "none", "no network", "network: "+h.NetworkMode+"; commands reach whatever the container reaches, the egress allowlist does not hold"),
		limit(h.Memory > 0, fmt.Sprintf("memory: at most %d MiB", h.Memory>>20), "memory: no limit"),
		limit(pids > 0, fmt.Sprintf("processes: at most %d", pids), "processes: no limit"),
	}
	if h.Privileged {
		facts = append(facts, "the container is privileged: it is no wall at all")
	}
	if len(h.CapAdd) > 0 {
		facts = append(facts, "it has more rights than usual: "+strings.Join(h.CapAdd, ", "))
	}
	if h.PidMode == "host" {
		facts = append(facts, "it sees the processes of this machine")
	}
	for _, m := range c.Mounts {
		if strings.HasSuffix(m.Source, "docker.sock") {
			facts = append(facts, "it has the docker socket: who runs there owns this machine")
		}
	}
	return facts
}
