// Package isolate decides where the commands of a thread run (host, bubblewrap, a container) and gives them their way to the network.
package isolate

import (
	"log/slog"

	"chorus/internal/datadir"
	"chorus/internal/logging"
	"chorus/internal/notice"
	"chorus/internal/sandbox"
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
}
