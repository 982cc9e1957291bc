// Package logging writes the log of a home: one file per day without secrets, and another one for errors.
package logging

import (
	"log/slog"
	"sync"

	"chorus/internal/config"
	"chorus/internal/datadir"
)

// Logs are the log files of a home, and the redactor that removes secrets from
// them and from everything else that is shown or passed on.
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
