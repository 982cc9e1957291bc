// Package host gives chat connectors what they need of the program: conversations, agents, settings, files and rights.
package host

import (
	"log/slog"
	"sync"
	"time"

	"chorus/internal/chat"
	"chorus/internal/connector/workcards"
	"chorus/internal/datadir"
	"chorus/internal/engine"
	"chorus/internal/gate"
	"chorus/internal/imagecache"
	"chorus/internal/logging"
	"chorus/internal/mirror"
	"chorus/internal/owner"
	"chorus/internal/provider"
	"chorus/internal/runsetup"
	"chorus/internal/service"
	"chorus/internal/service/savedcontext"
	"chorus/internal/settings"
	"chorus/internal/store"
	"chorus/internal/tool/timer"
)

// Host connects the configured chat bots, and does what they need.
type Host struct {
	DB        *store.DB
	Home      *datadir.Home
	Contexts  *savedcontext.Contexts
	Images    *imagecache.Cache
	Log       *slog.Logger
	Models    *provider.Models
	NodeOf    func(platform string) string // the node that has the bots of a platform; nil or "": unknown
	Warn      func(string)
	Discovery *provider.Discovery
	Gate      *gate.Gate
	Logs      *logging.Logs
	Mirrors   *mirror.Follower
	Service   *service.Service
	Settings  *settings.Settings
	Setup     *runsetup.Setup
	Engine    func(adopt func(chat.ThreadID) bool) *engine.Engine
	Running   func() *engine.Engine
	Owner     owner.Owner // gives each bot to one process at a time
	// Timers returns the timers of an agent in a room.
	Timers func(thread chat.ThreadID) timer.Timers
	// Work is the queue of tasks shown in the channels of projects.
	Work workcards.Work

	mu       sync.Mutex
	backends map[string]*Backend // by platform, while it is connected

	Platforms  []Platform
	Tune       func(*BotOptions) // for tests; nil: as configured
	IdleMinute time.Duration
}
