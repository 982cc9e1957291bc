// Package runsetup assembles what a run needs: tools, prompt, models, limits, budget and the gate.
package runsetup

import (
	"context"
	"log/slog"
	"sync"

	"chorus/internal/background/watch"
	"chorus/internal/chat"
	"chorus/internal/config"
	"chorus/internal/datadir"
	"chorus/internal/engine"
	"chorus/internal/gate"
	"chorus/internal/journal"
	"chorus/internal/logging"
	"chorus/internal/memory"
	"chorus/internal/notice"
	"chorus/internal/overrides"
	"chorus/internal/provider"
	"chorus/internal/sandbox"
	"chorus/internal/sandbox/isolate"
	"chorus/internal/settings"
	"chorus/internal/skill/approved"
	"chorus/internal/store"
	"chorus/internal/tool"
	"chorus/internal/tool/files"
	"chorus/internal/tool/mcp"
	"chorus/internal/tool/remember"
	"chorus/internal/transcript"
)

// Setup makes what the engine needs for a run of a thread. It keeps the tools of the threads that are in use.
type Setup struct {
	DB           *store.DB
	Environ      []string
	Executor     sandbox.Executor
	Home         *datadir.Home
	Log          *slog.Logger
	Models       *provider.Models
	Notices      *notice.Board
	Overrides    *overrides.Threads
	Shared       *config.Bot
	Discovery    *provider.Discovery
	Gate         *gate.Gate
	Isolation    *isolate.Isolation
	Logs         *logging.Logs
	Settings     *settings.Settings
	SharedStore  bool // homes of other machines may use the same database
	Skills       *approved.Library
	AwaitFiles   func(ctx context.Context, thread chat.ThreadID, log *transcript.Log)
	ChannelTools func(thread chat.ThreadID, roots *files.Roots) []tool.Tool
	// Roots returns what a thread's commands see besides its folder; nil: nothing.
	Roots func(thread chat.ThreadID) ([]sandbox.Root, error)
	// OperationTools returns the tools for Chorus's own operations. With all,
	// they include those that change agents and settings.
	OperationTools func(all bool, thread chat.ThreadID) []tool.Tool
	Me             func() chat.Principal
	Memory         *memory.Keeper
	// Recall searches memory and past conversations for what the
	// senders may read, from the place of a thread.
	Recall        func(ctx context.Context, thread chat.ThreadID, senders []chat.Principal, words string, limit int) ([]remember.Hit, error)
	RecallChannel func(ctx context.Context, row journal.Thread, bot *config.Bot, log *transcript.Log, prompt transcript.Waiting)
	Running       func() *engine.Engine
	Processes     *watch.Watcher // watches the processes that agents leave running
	// NoteSources supply notes in addition to those that every run has.
	NoteSources []NoteSource

	openLogins  mcp.OpenLogins // logins to MCP servers by people whose browser is on another machine
	mu          sync.Mutex
	locks       *files.Locks
	promptHeads promptCache
	toolboxes   map[chat.ThreadID]*Toolbox
	preparing   sync.WaitGroup // for PrepareToolbox
	// sessionServers are MCP servers that the person at a session named, for that session alone.
	sessionServers map[chat.ThreadID][]config.MCPServer
}
