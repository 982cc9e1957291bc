// Package logging writes the log of a home: a file a day without secrets, one more for errors.
package logging

import (
	"log/slog"
	"sync"

	"chorus/internal/config"
	"chorus/internal/datadir"
)

// Logs are the log files of a home, and the redactor that keeps secrets out of them and out of
// everything else that is shown or passed on.
type Logs struct {
	Env         func(string) string
	Environ     []string
	Home        *datadir.Home
	Log         *slog.Logger
	Warn        func(string)
	ConfigFiles func() *config.Files

	redactors lazyRedactors
	files     *logFiles
	once      sync.Map
}
