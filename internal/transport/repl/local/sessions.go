// Package local implements conversations at the terminal of this machine: a repl.Session on the engine of this process.
package local

import (
	"chorus/internal/chat"
	"chorus/internal/config"
	"chorus/internal/datadir"
	"chorus/internal/engine"
	"chorus/internal/gate"
	"chorus/internal/mirror"
	"chorus/internal/notice"
	"chorus/internal/overrides"
	"chorus/internal/provider"
	"chorus/internal/runsetup"
	"chorus/internal/sandbox"
	"chorus/internal/sandbox/isolate"
	"chorus/internal/service"
	"chorus/internal/settings"
	"chorus/internal/store"
)

// Sessions opens conversations at this terminal.
type Sessions struct {
	DB              *store.DB
	Executor        sandbox.Executor
	Home            *datadir.Home
	Models          *provider.Models
	Notices         *notice.Board
	Overrides       *overrides.Threads
	Shared          *config.Bot
	Gate            *gate.Gate
	Isolation       *isolate.Isolation
	Mirrors         *mirror.Follower
	Service         *service.Service
	Settings        *settings.Settings
	Setup           *runsetup.Setup
	Engine          func(adopt func(chat.ThreadID) bool) *engine.Engine
	Me              func() chat.Principal
	StartBackground func()
}
