// Package settings is what is configured: the layered files as last read,
// agents, guilds, pins and trusted repositories.
package settings

import (
	"sync"

	"chorus/internal/datadir"
	"chorus/internal/documents"
	"chorus/internal/logging"
	"chorus/internal/permit"
	"chorus/internal/provider"
	"chorus/internal/store"
)

// Settings returns what applies to an agent, a guild or a channel. It is safe for concurrent use.
type Settings struct {
	DB      *store.DB
	Env     func(string) string
	Home    *datadir.Home
	Models  *provider.Models
	Warn    func(string)
	Logs    *logging.Logs
	Profile func(name string) (*permit.Profile, error)
	// Documents are the files of the home that other machines share; nil: nobody else has them.
	Documents *documents.Copies
	shared    bool            // other homes may use the database
	seal      *documents.Seal // for secrets that homes share; nil: each has its own

	mu         sync.Mutex
	changes    map[chan struct{}]bool
	Live       *LiveConfig
	Pins       PinBoard
	agentStore agentStore
}
