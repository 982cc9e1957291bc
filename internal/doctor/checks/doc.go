// Package checks contains what doctor checks, and what it can fix.
package checks

import (
	"log/slog"

	"chorus/internal/datadir"
	"chorus/internal/provider"
	"chorus/internal/sandbox/isolate"
	"chorus/internal/settings"
	"chorus/internal/store"
)

// Checks is a home as the checks see it: opened, or as far as it can be read.
type Checks struct {
	DB        *store.DB
	Env       func(string) string
	Environ   []string
	Home      *datadir.Home
	Log       *slog.Logger
	Models    *provider.Models
	Isolation *isolate.Isolation
	Settings  *settings.Settings
}
