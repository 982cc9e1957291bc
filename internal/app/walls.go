package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"chorus/internal/chat"
	"chorus/internal/config"
	"chorus/internal/egress"
	"chorus/internal/engine"
	"chorus/internal/journal"
	"chorus/internal/permit"
	"chorus/internal/sandbox"
	"chorus/internal/sandbox/bwrap"
	"chorus/internal/sandbox/docker"
	"chorus/internal/tool/files"
	"chorus/internal/usage"
)

// Sandboxes are the names people may choose.
func Sandboxes() []string { return []string{"auto", "host", "bwrap", "docker:CONTAINER[:PATH]"} }

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

// What a profile says about walls.
const (
	wallsRequired  = "required"
	wallsPreferred = "preferred"
	wallsNone      = "none"
)

// site is where the commands of a thread run.
type site struct {
	dir   string
	agent string
	door  *door // of its commands to the network
}

// wallPlan is how the commands of a run are to be run: what was chosen, and what may
// be done where that cannot be had.
type wallPlan struct {
	sandbox string // auto, host, bwrap, docker:…
	profile string
	walls   string // required, preferred or none
	own     bool   // somebody wrote that into the profile
	yes     bool
	hosts   []string
	secrets []config.SecretRule
	roots   []string
	openGit bool // a repository's settings and hooks may be changed
}

// planWalls reads the plan off the configuration and the flags.
func (a *App) planWalls(bot *config.Bot, rules *permit.Profile, row journal.Thread, now chat.Terms, work engine.Work) wallPlan {
	own := bot.Profiles[rules.Name()]
	p := wallPlan{sandbox: cmp.Or(now.Sandbox, bot.Sandbox), profile: rules.Name(), walls: own.Walls, own: own.Walls != "", yes: now.Yes,
		hosts: append(append([]string(nil), bot.EgressHosts...), own.Hosts...), secrets: bot.Secrets, roots: bot.SandboxRoots,
		openGit: bot.SandboxGit == "open"}
	if p.sandbox == "docker" && bot.SandboxContainer != "" {
		p.sandbox += ":" + bot.SandboxContainer
	}
	if p.walls == "" {
		p.walls = wallsPreferred
		place := permit.JudgeOptions{Home: a.Home.Dir(), Workspace: row.Dir, UserHome: a.userHome(), Who: permit.Who{Agent: row.Agent, Channel: homePlace(row.ID.Transport(), row.Place)}}
		if now.Yes || unasked(rules, place, work) {
			p.walls = wallsRequired
		}
	}
	return p
}

// unasked reports that a profile lets a command run that nobody named, without a
// person seeing it first.
func unasked(rules *permit.Profile, place permit.JudgeOptions, work engine.Work) bool {
	request := []permit.Request{{Tool: "bash", Detail: "some-program --flag", Command: "some-program --flag"}}
	if rules.Judge(request, place).Verdict == permit.Allow {
		return true
	}
	for _, sender := range work.Senders {
		place.Who.Roles = sender.Principal.Roles
		if rules.Judge(request, place).Verdict == permit.Allow {
			return true
		}
	}
	return false
}

// executor gives what runs the commands of a thread under a plan. A command never runs
// behind weaker walls than the plan allows; what it may not have is said by the command.
func (a *App) executor(s *site, p wallPlan) (sandbox.Executor, error) {
	if err := egress.Check(doorRules(p)); err != nil {
		return nil, fmt.Errorf("%w (egress.hosts, profiles.%s.hosts, secrets)", err, p.profile)
	}
	kind, rest, _ := strings.Cut(p.sandbox, ":")
	switch kind {
	case "host":
		if p.own && p.walls == wallsRequired {
			return nil, usage.Wrap(fmt.Errorf("profile %s requires walls (profiles.%s.walls), and sandbox host has none; choose auto or bwrap", p.profile, p.profile))
		}
		return a.Executor, nil
	case "", "auto":
		if p.walls == wallsNone {
			return a.Executor, nil
		}
		return a.newBehind(s, p), nil
	case "bwrap":
		p.walls, p.own = wallsRequired, true
		return a.newBehind(s, p), nil
	case "docker":
		if len(p.hosts) > 0 {
			a.logOnce("egress.hosts does not hold in a container: it reaches what its own network reaches", "sandbox")
		}
		return a.docker(rest, s.dir)
	}
	return nil, unknownSandbox(p.sandbox)
}

func unknownSandbox(name string) error {
	return usage.Wrap(fmt.Errorf("unknown sandbox %q; there are %s", name, strings.Join(Sandboxes(), ", ")))
}

// checkSandbox looks at a name before anything is begun with it. Walls that somebody
// asked for by name are tried.
func (a *App) checkSandbox(ctx context.Context, name, dir string) error {
	kind, rest, _ := strings.Cut(name, ":")
	switch kind {
	case "", "auto", "host":
		return nil
	case "bwrap":
		if _, err := a.walls.executor(ctx, a); err != nil {
			return fmt.Errorf("sandbox bwrap does not work here: %w; or choose --sandbox host, which has no walls", err)
		}
		return nil
	case "docker":
		_, err := a.docker(rest, dir)
		return err
	}
	return unknownSandbox(name)
}

func (a *App) docker(name, dir string) (sandbox.Executor, error) {
	container, inside, _ := strings.Cut(name, ":")
	if container == "" {
		return nil, usage.Wrap(errors.New("sandbox docker needs the name of a running container: docker:NAME, or docker:NAME:/path/in/it, or sandboxContainer in the configuration"))
	}
	made, err := docker.New(docker.Options{Container: container, Host: dir, Inside: inside, Environ: a.Environ})
	if err != nil {
		return nil, fmt.Errorf("sandbox docker: %w", err)
	}
	return made, nil
}

func (a *App) newBwrap() (*bwrap.Executor, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("sandbox bwrap: %w", err)
	}
	return bwrap.New(bwrap.Options{Environ: a.Environ, Hide: a.unseen(), Launcher: self}), nil
}

// announceWalls finds out, at the start of a chat, what auto means here, and says so
// where it means less than it should.
func (a *App) announceWalls(ctx context.Context, name string) {
	if name != "auto" {
		return
	}
	if _, err := a.walls.executor(ctx, a); err != nil {
		a.notices.WarnOnce(fmt.Sprintf("there are no walls for commands here: %v. Those that you are asked about run without them; "+
			"those that would run unasked are refused, unless --sandbox host is chosen", err))
	}
}

// sandboxName is where commands of a thread run, for people: what was chosen, and what
// that means here as far as it is known without trying.
func (a *App) sandboxName(chosen string, bot *config.Bot, profile string) string {
	name := cmp.Or(chosen, bot.Sandbox)
	if name != "auto" {
		return name
	}
	if bot.Profiles[profile].Walls == wallsNone {
		return "host"
	}
	switch _, err, known := a.walls.known(a); {
	case !known:
		return "auto"
	case err == nil:
		return "bwrap"
	default:
		return "no walls"
	}
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
