package runsetup

import (
	"context"
	"time"

	"chorus/internal/agent"
	"chorus/internal/chat"
	"chorus/internal/config"
	"chorus/internal/journal"
	"chorus/internal/toolhook"
)

// hookTools lets the commands of the configuration look at the calls of an agent before and after they are made.
func (s *Setup) hookTools(a *agent.Agent, row journal.Thread, bot *config.Bot) {
	if len(bot.ToolHooks) == 0 {
		return
	}
	run := toolhook.Runner{Dir: row.Dir, Environ: s.Environ}
	for _, h := range bot.ToolHooks {
		run.Hooks = append(run.Hooks, toolhook.Hook{Name: h.Name, Event: h.Event, Tools: h.Tools, Command: h.Command, Timeout: time.Duration(h.Seconds) * time.Second})
	}
	session, hide := row.ID.Thread(), s.Logs.Redactor
	a.Before = func(ctx context.Context, tool string, args []byte) ([]byte, string) {
		input, denied := run.Before(ctx, toolhook.Call{Session: session, Tool: tool, Input: args})
		return input, hide().Text(denied)
	}
	a.After = func(ctx context.Context, tool string, args []byte, ran chat.ToolRan) string {
		return hide().Text(run.After(ctx, toolhook.Call{Session: session, Tool: tool, Input: args, Response: &toolhook.Response{Text: ran.Blocks.Text(), Failed: !ran.Succeeded(), Exit: ran.Exit}}))
	}
}
