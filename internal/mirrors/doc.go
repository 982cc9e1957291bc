// Package mirrors brings the files that people open with an editor to the journal's end.
package mirrors

import (
	"chorus/internal/datadir"
	"chorus/internal/settings"
	"chorus/internal/store"
)

// Mirrors writes log.jsonl, context.jsonl and the hourly files of tool calls.
type Mirrors struct {
	DB       *store.DB
	Env      func(string) string
	Home     *datadir.Home
	Settings *settings.Settings
}
