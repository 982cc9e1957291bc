// Package service carries out the operations of Chorus on the store and the engine of this process.
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
	"chorus/internal/settings"
	"chorus/internal/store"
)

// Service is what operations work on: the store, the engine and the parts of the program.
type Service struct {
	DB        *store.DB
	Home      *datadir.Home
	Images    *imagecache.Cache
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
	// Others carry out operations that this package does not, beside a handler of its own.
	Others func(*Handler) []any
	// Work says what agents have to do with projects; nil: nothing.
	Work Work
	// SeesProject reports whether somebody may see a project and what happens in it.
	SeesProject func(ctx context.Context, by operation.Caller, project string) (bool, error)
	// Mirror brings the files of a thread to the journal's end.
	Mirror func(ctx context.Context, thread chat.ThreadID) error
	// Held reports whether some process runs a thread; nil: nobody can tell.
	Held func(thread chat.ThreadID) bool

	Serving streams
}

// Work says what agents have to do with projects.
type Work interface {
	// Busy are the tasks that agents work on now, by agent.
	Busy(context.Context, operation.Caller) (map[string][]operations.TaskBrief, error)
	// FindRepo checks that a repository is there for the caller, and gives its id.
	FindRepo(ctx context.Context, by operation.Caller, id string) (string, error)
	// Asking are the tasks that wait for a yes, as approvals; next is the cursor behind them, "": these are all. TaskApproval is one of them.
	Asking(ctx context.Context, by operation.Caller, after string, limit int) (list []operations.Approval, next string, err error)
	TaskApproval(ctx context.Context, by operation.Caller, task string) (operations.Approval, error)
}
