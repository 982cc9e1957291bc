package app

import (
	"context"
	"iter"
	"net/http"
	"sync"

	"chorus/internal/chat"
	"chorus/internal/engine"
	"chorus/internal/node"
	"chorus/internal/owner"
	"chorus/internal/peerlive"
	"chorus/internal/store/nodes"
)

// elsewhere returns the source of live text of threads that other
// nodes run, or nil if there are no other nodes.
func (a *App) elsewhere() engine.Elsewhere {
	if a.member == nil {
		return nil
	}
	secret, err := a.liveSecret()
	if err != nil {
		a.Log.Warn("live text of other nodes is not shown: "+err.Error(), "component", "live", "event", "no_live")
		return nil
	}
	return &peerlive.Client{Secret: secret, OwnerOf: a.ownerOf, Carrier: a.carrier(), HTTP: peerlive.NewHTTP(), Log: a.Log}
}

func (a *App) liveSecret() (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), secretTimeout)
	defer cancel()
	return node.Secret(ctx, a.DB, "live")
}

// ownerOf returns the other node that has a thread, if that node is serving.
func (a *App) ownerOf(ctx context.Context, thread chat.ThreadID) (peerlive.Node, bool) {
	id, address, err := nodes.Owner(ctx, a.DB, owner.Thread(thread))
	if err != nil {
		a.Log.Debug(err.Error(), "component", "live", "event", "no_owner", "thread", thread)
	}
	if id == a.member.ID() {
		return peerlive.Node{}, false
	}
	return peerlive.Node{ID: id, Address: address}, address != ""
}

// openLive returns the server for other nodes that watch threads of this one, or nil if there are none.
func (a *App) openLive(stopping <-chan struct{}) (*peerlive.Server, error) {
	if a.member == nil {
		return nil, nil
	}
	secret, err := a.liveSecret()
	if err != nil {
		return nil, err
	}
	return &peerlive.Server{Secret: secret, Stopping: stopping, Source: func(ctx context.Context, thread chat.ThreadID) (iter.Seq[chat.Live], bool) {
		e := a.Running()
		if e == nil {
			return nil, false
		}
		return e.Live(ctx, thread)
	}}, nil
}

// serveLive answers other nodes over HTTP, before the guard: they have no token,
// but a secret that only nodes on the same database can know.
func serveLive(live *peerlive.Server, next http.Handler) http.Handler {
	if live == nil {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == peerlive.Path {
			live.ServeHTTP(w, r)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// serveLiveMessages also answers them by messages, if there is a
// carrier, until the returned function is called.
func (a *App) serveLiveMessages(ctx context.Context, live *peerlive.Server) (end func()) {
	carrier := a.carrier()
	if live == nil || carrier == nil {
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	var serving sync.WaitGroup
	serving.Go(func() { live.ServeMessages(ctx, carrier, a.member.ID) })
	return func() { cancel(); serving.Wait() }
}
