package runsetup

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"chorus/internal/agent"
	"chorus/internal/agent/toolcall"
	"chorus/internal/chat"
	"chorus/internal/config"
	"chorus/internal/gate"
	"chorus/internal/journal"
	"chorus/internal/sandbox"
	"chorus/internal/settings"
	"chorus/internal/toolhook"
)

// hookTools lets commands inspect the calls of an agent before and after they are made. The commands
// come from the configuration, and from the repository if somebody trusts it.
func (s *Setup) hookTools(a *agent.Agent, row journal.Thread, bot *config.Bot, work func() (sandbox.Executor, error)) {
	run := toolhook.Runner{Dir: row.Dir, Environ: s.Environ}
	for _, h := range bot.ToolHooks {
		run.Hooks = append(run.Hooks, toolhook.Hook{Name: h.Name, Event: h.Event, Tools: h.Tools, Command: h.Command, Timeout: time.Duration(h.Seconds) * time.Second})
	}
	trusted := map[string]settings.Repository{}
	for _, repo := range s.trustedHooks(row.Dir) {
		run.Hooks = append(run.Hooks, repo.Hooks...)
		trusted[repo.Hooks[0].File] = repo
	}
	if len(run.Hooks) == 0 {
		return
	}
	run.Isolated = func(ctx context.Context, h toolhook.Hook, stdin []byte, limit time.Duration) (toolhook.Ended, error) {
		// An agent can write the repository's files, so they are checked each time.
		if err := s.Settings.StillTrusted(trusted[h.File]); err != nil {
			return toolhook.Ended{}, err
		}
		where, err := work()
		if err != nil {
			return toolhook.Ended{}, err
		}
		return runIsolated(ctx, where, sandbox.Command{Shell: h.Command, Dir: row.Dir, Env: toolhook.Environ(row.Dir), Stdin: stdin, Timeout: limit})
	}
	session, hide := row.ID.Thread(), s.Logs.Redactor
	a.Before = func(ctx context.Context, tool string, args []byte) toolcall.HookVerdict {
		out := run.Before(ctx, toolhook.Call{Session: session, Tool: tool, Input: args})
		return toolcall.HookVerdict{Args: out.Input, Denied: hide().Text(out.Denied), Ask: hide().Text(out.Ask)}
	}
	a.After = func(ctx context.Context, tool string, args []byte, ran chat.ToolRan) string {
		return hide().Text(run.After(ctx, toolhook.Call{Session: session, Tool: tool, Input: args, Response: &toolhook.Response{Text: ran.Blocks.Text(), Failed: !ran.Succeeded(), Exit: ran.Exit}}))
	}
}

// trustedHooks returns the hooks of trusted repositories. Others are left out, and people are told.
func (s *Setup) trustedHooks(dir string) (out []settings.Repository) {
	found, err := s.Settings.RepositoryHooks(dir)
	if err != nil {
		s.Notices.WarnOnce(err.Error())
	}
	for _, repo := range found {
		switch {
		case repo.Trusted:
			for _, p := range repo.Problems {
				s.Notices.WarnOnce(repo.File + ": " + p)
			}
			out = append(out, repo)
		case len(repo.Changes) > 0:
			s.Notices.WarnOnce(fmt.Sprintf("the hooks of %s are left out: they are not what was trusted%s; review the difference with chorus config trust", repo.File, repo.Changed()))
		default:
			s.Notices.WarnOnce(fmt.Sprintf("%s names hooks: %s; they are left out until you trust it: chorus config trust", repo.File, strings.Join(repo.Names(), "; ")))
		}
	}
	return out
}

// hookSandbox returns where a repository's hooks run: in the same place as the agent's
// commands. Their programs are not judged, because somebody has reviewed them.
func (s *Setup) hookSandbox(row journal.Thread, bot *config.Bot, g *gate.Judge, terms chat.Terms) (sandbox.Executor, error) {
	b, err := s.Toolbox(row.ID, row.Dir)
	if err != nil {
		return nil, err
	}
	rules, err := g.Limits.Load(cmp.Or(terms.Profile, bot.Permissions))
	if err != nil {
		return nil, err
	}
	return s.Isolation.ExecutorFor(&b.Site, s.Isolation.Plan(bot, rules, row, terms, g.Work))
}

func runIsolated(ctx context.Context, where sandbox.Executor, command sandbox.Command) (toolhook.Ended, error) {
	res, err := where.Run(ctx, command)
	switch {
	case err != nil:
		return toolhook.Ended{}, err
	case res.TimedOut:
		return toolhook.Ended{}, toolhook.Late(command.Timeout)
	case res.Aborted:
		return toolhook.Ended{}, errors.New("it was told to end")
	}
	return toolhook.Ended{Stdout: res.Stdout, Stderr: res.Stderr, Exit: res.ExitCode}, nil
}
