package isolate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
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
	"chorus/internal/settings"
	"chorus/internal/tool/files"
	"chorus/internal/usage"
)

// Sandboxes returns the names that people may choose.
func Sandboxes() []string { return []string{"auto", "host", "bwrap", "docker:CONTAINER[:PATH]"} }

// InsideSandbox runs our own program as process 1 of a sandbox if it
// was started as such, and then does not return.
func InsideSandbox(args []string) {
	if len(args) > 0 && args[0] == bwrap.InitArg {
		bwrap.Init()
	}
}

// probeTime is longer than starting a sandbox takes, even on a busy machine.
const probeTime = 15 * time.Second

// Whether a profile needs a sandbox.
const (
	Required  = "required"
	Preferred = "preferred"
	None      = "none"
)

// Site is where the commands of a thread run.
type Site struct {
	Dir   string
	Agent string
	Proxy *EgressProxy // carries its commands' network traffic
	// Roots are what every command sees in addition to its own roots. A root that is
	// not writable stays so, whatever is found for the workspace.
	Roots []sandbox.Root
}

// Plan says how the commands of a run are run: what was chosen, and what is allowed if that does not work.
type Plan struct {
	Sandbox string // auto, host, bwrap, docker:…
	Profile string
	Need    string // required, preferred or none
	Own     bool   // the profile states the need explicitly
	Yes     bool
	Hosts   []string
	secrets []config.SecretRule
	Roots   []string
	// Folder identifies the workspace folder for which it was decided that the run
	// may work there. "" accepts any folder of that name.
	Folder  string
	openGit bool // commands may change a repository's settings and hooks
	// Programs judges what the command of a call starts in a sandbox; nil: nothing is judged.
	Programs func(call string) sandbox.Judge

	hostsKey string // the configuration key that sets Hosts; "" means the key for commands
}

// Plan makes the plan from the configuration and the flags.
func (i *Isolation) Plan(bot *config.Bot, rules *permit.Profile, row journal.Thread, now chat.Terms, work engine.Work) Plan {
	own := bot.Profiles[rules.Name()]
	p := Plan{Sandbox: cmp.Or(now.Sandbox, bot.Sandbox), Profile: rules.Name(), Need: own.Sandbox, Own: own.Sandbox != "", Yes: now.Yes,
		Hosts: append(append([]string(nil), bot.EgressHosts...), own.Hosts...), secrets: bot.Secrets, Roots: bot.SandboxRoots,
		openGit: bot.SandboxGit == "open"}
	if p.Sandbox == "docker" && bot.SandboxContainer != "" {
		p.Sandbox += ":" + bot.SandboxContainer
	}
	if p.Need == "" {
		p.Need = Preferred
		place := permit.JudgeOptions{Home: i.Home.Dir(), Workspace: row.Dir, UserHome: i.UserHome(), Who: permit.Who{Agent: row.Agent, Channel: settings.HomePlace(row.ID.Transport(), row.Place)}}
		if now.Yes || unasked(rules, place, work) {
			p.Need = Required
		}
	}
	return p
}

// unasked reports whether a profile lets a command that nobody named run without a person seeing it first.
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

// ExecutorFor returns the executor for a thread's commands under a plan. A command never runs
// with less isolation than the plan allows; instead it fails and says why.
func (i *Isolation) ExecutorFor(s *Site, p Plan) (sandbox.Executor, error) {
	if err := egress.Check(proxyRules(p)); err != nil {
		return nil, fmt.Errorf("%w (egress.hosts, profiles.%s.hosts, secrets)", err, p.Profile)
	}
	kind, rest, _ := strings.Cut(p.Sandbox, ":")
	switch kind {
	case "host":
		if p.Own && p.Need == Required {
			return nil, usage.Wrap(fmt.Errorf("profile %s requires a sandbox (profiles.%s.sandbox), and host is not one; choose auto or bwrap", p.Profile, p.Profile))
		}
		return i.Executor, nil
	case "", "auto":
		if p.Need == None {
			return i.Executor, nil
		}
		return i.newIsolated(s, p), nil
	case "bwrap":
		p.Need, p.Own = Required, true
		return i.newIsolated(s, p), nil
	case "docker":
		if len(p.Hosts) > 0 {
			i.Logs.LogOnce("egress.hosts has no effect in a container: it reaches what its own network reaches", "sandbox")
		}
		return i.docker(rest, s.Dir)
	}
	return nil, unknownSandbox(p.Sandbox)
}

func unknownSandbox(name string) error {
	return usage.Wrap(fmt.Errorf("unknown sandbox %q; there are %s", name, strings.Join(Sandboxes(), ", ")))
}

// Check checks a sandbox that somebody named, before it is used. It tries bubblewrap.
func (i *Isolation) Check(ctx context.Context, name, dir string) error {
	kind, rest, _ := strings.Cut(name, ":")
	switch kind {
	case "", "auto", "host":
		return nil
	case "bwrap":
		if _, err := i.Probe.Executor(ctx, i); err != nil {
			return fmt.Errorf("sandbox bwrap does not work here: %w; or choose --sandbox host, which is no sandbox", err)
		}
		return nil
	case "docker":
		_, err := i.docker(rest, dir)
		return err
	}
	return unknownSandbox(name)
}

func (i *Isolation) docker(name, dir string) (sandbox.Executor, error) {
	container, inside, _ := strings.Cut(name, ":")
	if container == "" {
		return nil, usage.Wrap(errors.New("sandbox docker needs the name of a running container: docker:NAME, or docker:NAME:/path/in/it, or sandboxContainer in the configuration"))
	}
	made, err := docker.New(docker.Options{Container: container, Host: dir, Inside: inside, Environ: i.Environ})
	if err != nil {
		return nil, fmt.Errorf("sandbox docker: %w", err)
	}
	return made, nil
}

func (i *Isolation) newBwrap(known string) *bwrap.Executor {
	return bwrap.New(bwrap.Options{Environ: i.Environ, Hide: i.unseen(), Known: known})
}

// Announce finds out what auto means here at the start of a chat, and warns if no sandbox works.
func (i *Isolation) Announce(ctx context.Context, name string) {
	if name != "auto" {
		return
	}
	if _, err := i.Probe.Executor(ctx, i); err != nil {
		i.Notices.WarnOnce(fmt.Sprintf("no sandbox works for commands here: %v. Those that you are asked about run without one; "+
			"those that would run unasked are refused, unless --sandbox host is chosen", err))
	}
}

// Describe says where the commands of a thread run, for people: what was chosen, and
// what that means here as far as it is known without trying.
func (i *Isolation) Describe(chosen string, bot *config.Bot, profile string) string {
	name := cmp.Or(chosen, bot.Sandbox)
	if name != "auto" {
		return name
	}
	if bot.Profiles[profile].Sandbox == None {
		return "host"
	}
	switch _, err, known := i.Probe.Known(i); {
	case !known:
		return "auto"
	case err == nil:
		return "bwrap"
	default:
		return "no sandbox"
	}
}

// WorkspaceRoots returns what a command of a thread sees of its workspace in a sandbox.
func WorkspaceRoots(dir string, named []files.Root) []sandbox.Root {
	out := []sandbox.Root{{Path: dir, Writable: true}}
	for _, r := range named {
		out = append(out, sandbox.Root{Path: r.Dir, Writable: r.Writable})
	}
	return out
}

// SwitchedExecutor is a thread's executor. Switch chooses the executor behind it before each run.
type SwitchedExecutor struct {
	mu    sync.Mutex
	Inner sandbox.Executor
}

var (
	_ sandbox.Executor     = (*SwitchedExecutor)(nil)
	_ sandbox.Backgrounder = (*SwitchedExecutor)(nil)
	_ sandbox.EarlyStarter = (*SwitchedExecutor)(nil)
)

// Switch makes e the executor for the following commands.
func (c *SwitchedExecutor) Switch(e sandbox.Executor) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.Inner = e
}

func (c *SwitchedExecutor) now() sandbox.Executor {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.Inner
}

// Run implements sandbox.Executor.
func (c *SwitchedExecutor) Run(ctx context.Context, cmd sandbox.Command) (sandbox.Result, error) {
	return c.now().Run(ctx, cmd)
}

// Background implements sandbox.Backgrounder.
func (c *SwitchedExecutor) Background(ctx context.Context, cmd sandbox.Command) (sandbox.Background, error) {
	if b, ok := c.now().(sandbox.Backgrounder); ok {
		return b.Background(ctx, cmd)
	}
	return sandbox.Background{}, fmt.Errorf("in the sandbox %s nothing can be left running, because a command in a container ends with its call; run it within one call of bash, or ask for the sandbox bwrap or host, where it works", c.Name())
}

// StartEarly implements sandbox.EarlyStarter.
func (c *SwitchedExecutor) StartEarly(cmd sandbox.Command) {
	if e, ok := c.now().(sandbox.EarlyStarter); ok {
		e.StartEarly(cmd)
	}
}

// Reap implements sandbox.Executor.
func (c *SwitchedExecutor) Reap(ctx context.Context, call string) (int, error) {
	return c.now().Reap(ctx, call)
}

// Name implements sandbox.Executor.
func (c *SwitchedExecutor) Name() string { return c.now().Name() }
