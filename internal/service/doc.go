// Package service implements the operations of Chorus on the store and the engine of this process.
package service

import (
	"context"
	"log/slog"
	"time"

	"chorus/internal/chat"
	"chorus/internal/config"
	"chorus/internal/datadir"
	"chorus/internal/doctor"
	"chorus/internal/engine"
	"chorus/internal/gate"
	"chorus/internal/imagecache"
	"chorus/internal/logging"
	"chorus/internal/operation"
	"chorus/internal/operations"
	"chorus/internal/overrides"
	"chorus/internal/provider"
	"chorus/internal/runsetup"
	"chorus/internal/sandbox/isolate"
	"chorus/internal/service/savedcontext"
	"chorus/internal/settings"
	"chorus/internal/store"
)

// Service is what operations work with: the store, the engine and the other parts of the program.
type Service struct {
	DB        *store.DB
	Home      *datadir.Home
	Images    *imagecache.Cache
	Contexts  *savedcontext.Contexts
	Log       *slog.Logger
	Models    *provider.Models
	Overrides *overrides.Threads
	Shared    *config.Bot
	Version   string
	Discovery *provider.Discovery
	Gate      *gate.Gate
	Isolation *isolate.Isolation
	Logs      *logging.Logs
	Settings  *settings.Settings
	Setup     *runsetup.Setup
	Engine    func(adopt func(chat.ThreadID) bool) *engine.Engine
	Examine   func(ctx context.Context) doctor.Report
	Nodes     func(ctx context.Context) ([]operations.Node, error) // that share the database; nil: it is a file of this home
	Me        func() chat.Principal
	Now       func() time.Time
	// Others implement the operations that this package does not.
	Others func(*Handler) []any
	// Work connects agents to projects; nil: there are none.
	Work Work
	// SeesProject reports whether somebody may see a project and its events.
	SeesProject func(ctx context.Context, by operation.Caller, project string) (bool, error)
	// Mirror writes the files of a thread up to the journal's end.
	Mirror func(ctx context.Context, thread chat.ThreadID) error
	// Held reports whether some process runs a thread; nil: unknown.
	Held func(thread chat.ThreadID) bool

	Serving streams
}

// Work connects agents to projects.
type Work interface {
	// Busy returns the tasks that agents work on now, by agent.
	Busy(context.Context, operation.Caller) (map[string][]operations.TaskBrief, error)
	// FindRepo checks that a repository exists for the caller, and returns its id.
	FindRepo(ctx context.Context, by operation.Caller, id string) (string, error)
	// Asking returns the tasks that need approval, as approvals; next is the cursor after them, "": these are all.
	// TaskApproval returns one of them.
	Asking(ctx context.Context, by operation.Caller, after string, limit int) (list []operations.Approval, next string, err error)
	TaskApproval(ctx context.Context, by operation.Caller, task string) (operations.Approval, error)
}
