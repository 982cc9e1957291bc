package runsetup

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"chorus/internal/agent"
	"chorus/internal/agent/program"
	"chorus/internal/chat"
	"chorus/internal/config"
	"chorus/internal/id"
	"chorus/internal/journal"
	"chorus/internal/model"
	"chorus/internal/provider"
	"chorus/internal/sandbox"
	"chorus/internal/sandbox/isolate"
	"chorus/internal/settings"
	"chorus/internal/worker"
	"chorus/internal/worker/acp"
	"chorus/internal/worker/claude"
	"chorus/internal/worker/codex"
)

// external returns the program that does an agent's work, or nil if a model with our tools does it.
func (s *Setup) external(b *Toolbox, row journal.Thread, bot *config.Bot, who persona, plan isolate.Plan) (*program.Program, error) {
	kind := cmp.Or(who.worker, bot.WorkerKind)
	if kind == "" {
		return nil, nil
	}
	quiet := provider.Milliseconds(bot.WorkerQuietMS)
	launch := worker.Program{Quiet: quiet, Prepare: func(ctx context.Context, argv []string, key string) (*sandbox.Prepared, error) {
		return s.prepareWorker(ctx, b, bot, plan, kind, argv, key)
	}}
	out := &program.Program{Name: kind, Quiet: quiet, Dir: row.Dir, Preamble: who.prompt}
	switch kind {
	case "claude":
		out.Worker = &claude.Claude{Program: launch, Command: bot.WorkerCommand, Args: bot.WorkerArgs, Model: bot.WorkerModel}
	case "codex":
		out.Worker = &codex.Codex{Program: launch, Command: bot.WorkerCommand, Args: bot.WorkerArgs, Model: bot.WorkerModel}
	case "acp":
		if len(bot.WorkerCommand) == 0 {
			return nil, fmt.Errorf("the worker of agent %s is of kind acp and has no command: worker: {kind: acp, command: [my-agent, --acp]} in the configuration of the bot", row.Agent)
		}
		out.Worker, out.Name = &acp.ACP{Program: launch, Command: bot.WorkerCommand}, filepath.Base(bot.WorkerCommand[0])
	default:
		return nil, fmt.Errorf("there is no worker %q; there are claude, codex and acp", kind)
	}
	return out, nil
}

// workerHosts are the hosts that the programs cannot work without. worker.hosts replaces them.
var workerHosts = map[string][]string{
	"claude": {"api.anthropic.com", "console.anthropic.com"},
	"codex":  {"api.openai.com", "chatgpt.com", "auth.openai.com"},
}

// keeper is an executor without a sandbox that starts programs which keep running.
type keeper interface {
	Keep(sandbox.Command) (*sandbox.Prepared, error)
}

// prepareWorker makes a worker's program ready to start: in its own sandbox,
// like MCP servers, or as the user if that was chosen.
func (s *Setup) prepareWorker(ctx context.Context, b *Toolbox, bot *config.Bot, plan isolate.Plan, kind string, argv []string, key string) (*sandbox.Prepared, error) {
	argv = slices.Clone(argv)
	path, err := exec.LookPath(argv[0])
	if err != nil {
		return nil, fmt.Errorf("%w; install it, or name it in worker.command", err)
	}
	if argv[0], err = filepath.Abs(path); err != nil {
		return nil, err
	}
	var env []string
	for _, name := range slices.Sorted(maps.Keys(bot.WorkerEnv)) {
		env = append(env, name+"="+string(bot.WorkerEnv[name]))
	}
	if bot.WorkerSandbox != "off" {
		service := isolate.Service{Name: kind, Argv: argv, Dir: b.Dir, Env: env, Call: key, HostsKey: "worker.hosts in the configuration", Hosts: bot.WorkerHosts,
			Shows: shows(b.Dir, b.Dir, argv[:1]), Must: kind == "codex" || plan.Need == isolate.Required}
		if len(service.Hosts) == 0 {
			service.Hosts = slices.Concat(plan.Hosts, workerHosts[kind])
		}
		for _, path := range bot.WorkerPaths {
			if rest, ok := strings.CutPrefix(path, "~/"); ok {
				path = filepath.Join(s.Isolation.UserHome(), rest)
			}
			service.Writes = append(service.Writes, path)
		}
		prepared, err := s.Isolation.Prepare(ctx, &b.Site, plan, service)
		if err != nil || prepared != nil {
			return prepared, err
		}
	}
	host, ok := s.Executor.(keeper)
	if !ok {
		return nil, fmt.Errorf("programs that keep running cannot be started by %s", s.Executor.Name())
	}
	return host.Keep(sandbox.Command{Argv: argv, Dir: b.Dir, Env: env, Call: key})
}

// beginExternal begins a run that a program carries out.
func beginExternal(with beginning, name string) (agent.Beginning, error) {
	out := agent.Beginning{Run: id.New()}
	if out.Start.Model = name; with.bot.WorkerModel != "" {
		out.Start.Model += "/" + with.bot.WorkerModel
	}
	base := settings.SettingsOf(with.bot)
	base.Mode, base.Profile = with.now.Mode, with.profile
	out.Start.Settings = base
	data, err := new(model.Head).Bytes()
	out.Head = chat.NewBlob(data)
	return out, err
}
