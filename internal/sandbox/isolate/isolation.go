// Package isolate decides where the commands of a thread run (host, bubblewrap, a container) and
// starts the proxy through which they reach the network. A command is never isolated less than its
// profile demands: if that isolation does not work, the command is refused.
package isolate

import (
	"log/slog"
	"sync"

	"chorus/internal/datadir"
	"chorus/internal/logging"
	"chorus/internal/notice"
	"chorus/internal/sandbox"
	"chorus/internal/sandbox/hosttools"
)

// Isolation makes executors for the commands of threads.
type Isolation struct {
	Env      func(string) string
	Environ  []string
	Executor sandbox.Executor
	Home     *datadir.Home
	Log      *slog.Logger
	Notices  *notice.Board
	Logs     *logging.Logs

	Probe SandboxProbe

	names hosttools.Names
	swept sync.Once
}

// Close takes down the sandboxes that wait for a command.
func (i *Isolation) Close() { i.Probe.close() }
