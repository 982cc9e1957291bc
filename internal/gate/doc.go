// Package gate decides whether a tool call may run: the profiles and rights of everybody who asked, what was allowed for good, and how people are asked.
package gate

import (
	"log/slog"

	"chorus/internal/chat"
	"chorus/internal/datadir"
	"chorus/internal/engine"
	"chorus/internal/logging"
	"chorus/internal/notice"
	"chorus/internal/overrides"
	"chorus/internal/settings"
	"chorus/internal/store"
)

// Gate makes the judge of each run, and keeps what people allowed for good.
type Gate struct {
	DB        *store.DB
	Environ   []string
	Home      *datadir.Home
	Log       *slog.Logger
	Notices   *notice.Board
	Overrides *overrides.Threads
	Warn      func(string)
	Logs      *logging.Logs
	Settings  *settings.Settings
	Engine    func(adopt func(chat.ThreadID) bool) *engine.Engine
	Me        func() chat.Principal

	allowed   allowedFile
	lastRules lastRules
}
