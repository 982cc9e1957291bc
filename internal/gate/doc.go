// Package gate decides whether a tool call may run. It combines the profiles and rights of everybody
// who asked with what was allowed for good, and decides how people are asked.
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

// Gate creates the Judge of each run and stores what people allowed for good.
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
