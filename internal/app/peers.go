package app

import (
	"context"
	"strings"
	"sync"
	"time"

	"chorus/internal/node"
	"chorus/internal/peerlive"
	"chorus/internal/peernotify"
	"chorus/internal/peernotify/natsnotify"
	"chorus/internal/peernotify/pgnotify"
)

// peers are the other processes that work on the same journal, once somebody wants to notify them.
type peers struct {
	once sync.Once
	all  peernotify.Peers
	nats *natsnotify.Peers // a part of all; nil: there is none
}

// Peers returns the other processes that work on the same journal. What anybody changes
// for all of them (settings, agents) has its own topic: call Peers().Notify(topic) after
// the change, and Bus.SubscribeTopic(topic) to be notified.
func (a *App) Peers() peernotify.Peers {
	a.peers.once.Do(func() { a.peers.all = a.openPeers() })
	return a.peers.all
}

// closePeers sends what is pending.
func (a *App) closePeers() {
	a.peers.once.Do(func() {})
	if a.peers.all != nil {
		a.peers.all.Close()
	}
}

// openPeers chooses how other processes are notified. If the better
// way is not available, it uses the other one.
func (a *App) openPeers() peernotify.Peers {
	var base peernotify.Peers = peernotify.In(a.Home.PeerSockets())
	if url := a.postgresURL(); url != "" {
		if nodes, err := pgnotify.New(url, a.Log); err == nil {
			base = nodes
		} else {
			a.Log.Warn("PostgreSQL is not used for notifications: "+err.Error(), "component", "notify", "event", "no_postgres")
		}
	}
	address := string(a.Shared.NATSURL)
	if address == "" {
		return base
	}
	ctx, cancel := context.WithTimeout(context.Background(), secretTimeout)
	defer cancel()
	subject, err := node.Secret(ctx, a.DB, "nats")
	if err == nil {
		var first *natsnotify.Peers
		if first, err = natsnotify.New(address, "chorus."+subject[:16]+".notify", a.Log); err == nil {
			a.peers.nats = first
			return peernotify.Fallback(first, base)
		}
	}
	a.Log.Warn("NATS is not used for notifications: "+err.Error(), "component", "notify", "event", "no_nats")
	return base
}

// carrier carries live text between nodes; nil: only HTTP does.
func (a *App) carrier() peerlive.Carrier {
	a.Peers()
	if a.peers.nats == nil {
		return nil
	}
	return a.peers.nats
}

// remotePeers reports whether others may be on other machines. Then they are also notified of
// what a run writes, because nobody there sees the journal's file change.
func (a *App) remotePeers() bool {
	return a.member != nil || a.Shared.NATSURL != "" || a.postgresURL() != ""
}

// postgresURL returns the server that the journal is on, or "" if it is a file.
func (a *App) postgresURL() string {
	url := strings.TrimSpace(string(a.Shared.DatabaseURL))
	if kind, _, ok := strings.Cut(url, "://"); ok && (kind == "postgres" || kind == "postgresql") {
		return url
	}
	return ""
}

// secretTimeout limits looking up the secret of all nodes.
const secretTimeout = 10 * time.Second
