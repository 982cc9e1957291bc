package app

import (
	"chorus/internal/service"
	"chorus/internal/service/agents"
	"chorus/internal/service/hooks"
	"chorus/internal/service/mcpservers"
	"chorus/internal/service/memories"
	"chorus/internal/service/overview"
	"chorus/internal/service/processes"
	"chorus/internal/service/profiles"
	"chorus/internal/service/schedules"
	"chorus/internal/service/skills"
)

// handlers returns the handlers of operations that have their own packages. They use a handler of sessions.
func (a *App) handlers(h *service.Handler) []any {
	agents := agents.New(a.Service, h)
	return []any{agents, overview.New(a.Service, h, agents), memories.New(a.Service), skills.New(a.Service, h), a.Schedules(h), a.hooksOf(h), a.processesOf(h), profiles.New(a.Service, h), a.mcpServers()}
}

// mcpServers returns the handler of operations on MCP servers.
func (a *App) mcpServers() *mcpservers.Handler { return mcpservers.New(a.Service) }

// Schedules returns the handler of operations on schedules. It uses a handler of sessions.
func (a *App) Schedules(h *service.Handler) *schedules.Handler {
	return schedules.New(a.Service, h, schedules.Options{Channels: a.Host, Changed: a.schedulesChanged})
}

func (a *App) hooksOf(h *service.Handler) *hooks.Handler {
	return hooks.New(a.Service, h, hooks.Options{Changed: a.hooks.Changed, Cancel: a.hooks.Cancel})
}

func (a *App) processesOf(h *service.Handler) *processes.Handler {
	return processes.New(a.Service, h, processes.Options{Watcher: a.Processes, Shown: &a.shownHooks})
}
