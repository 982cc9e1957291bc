package app

import (
	"context"
	"errors"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"chorus/docs"
	"chorus/internal/docsite"
	"chorus/internal/operation"
	"chorus/internal/operations"
	"chorus/internal/peerlive"
	"chorus/internal/service"
	"chorus/internal/transport/http/api"
	"chorus/internal/transport/http/compat"
	"chorus/internal/transport/http/guard"
	"chorus/internal/transport/http/pages"
	"chorus/internal/transport/http/webhooks"
	"chorus/internal/transport/mcpserver"
)

// httpServer is everything that answers HTTP: the API and the pages behind the guard.
type httpServer struct {
	handler  http.Handler
	api      *api.API
	mcp      *mcpserver.Server
	live     *peerlive.Server // nil: there are no other nodes
	ready    atomic.Bool
	stopping chan struct{}
	link     func(url string) string // signs the owner in
}

// openServer assembles the server. Further parts are mounted here.
func (a *App) openServer(ctx context.Context, o ServeOptions) (*httpServer, error) {
	d := &httpServer{stopping: make(chan struct{})}
	counts := a.Telemetry() // before there is an engine, whose commits are timed
	var err error
	tokens := a.Service.Tokens()
	d.api, err = api.New(api.Options{Executor: a.Service.Operations(), Memory: a.DB, Log: a.Log, Version: a.Version, Recheck: tokens.Recheck,
		Ready: func(ctx context.Context) error { return d.fit(ctx, a) }})
	if err != nil {
		return nil, err
	}
	show, err := pages.New(pages.Options{Executor: a.Service.Operations(), Log: a.Log, Version: a.Version, Recheck: tokens.Recheck, Stopping: d.stopping, Changes: a.Changes,
		LoginReturned: a.mcpServers().ReturnedLogin, Shared: a.Service.Handler().Shares().Shared, KeepDeleted: a.Shared.KeepDeleted})
	if err != nil {
		return nil, err
	}
	_, owner, err := tokens.OwnerToken(ctx)
	if err != nil {
		return nil, err
	}
	key, err := tokens.SessionKey()
	if err != nil {
		return nil, err
	}
	at, err := guard.New(guard.Options{Tokens: tokens, Key: key, Hosts: append(o.Hosts, o.named()...), BehindProxy: o.BehindProxy, TLS: o.TLSCert != "" || o.BehindProxy,
		Public: func(r *http.Request) bool { return api.Open(r) || pages.Public(r.URL.Path) || webhooks.Public(r) }, Log: a.Log})
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	for _, pattern := range api.Patterns() {
		mux.Handle(pattern, d.api)
	}
	sign := at.SignIn(show.SignIn)
	mux.Handle("/sign-in", sign)
	mux.Handle("/sign-out", sign)
	mux.Handle("/metrics", readers(counts.Handler()))
	mux.Handle("/v1/", compat.New(compat.Options{Executor: a.Service.Operations(), Memory: a.DB, Log: a.Log}))
	d.mcp = mcpserver.New(mcpserver.Options{Executor: a.Service.Operations(), Operations: operations.All(), Tool: service.ClientTool(a.Service.Operations()), Version: a.Version, Changes: a.Changes, Log: a.Log})
	mux.Handle("/mcp", d.mcp.Handler(d.stopping))
	mux.Handle(webhooks.Pattern, webhooks.New(a.hooksOf(a.Service.Handler()), a.Log))
	mux.Handle("GET /help/", http.StripPrefix("/help", a.guides()))
	mux.Handle("/", show)
	guarded := counts.HTTP(compat.TranslateProblems(at.Wrap(counts.HTTP(mux)))) // the guard copies requests, and only the inner handler sees the pattern
	if d.live, err = a.openLive(d.stopping); err != nil {
		return nil, err
	}
	d.handler = serveLive(d.live, guarded)
	d.link = func(url string) string { return guard.Link(key, url, owner.ID, time.Now()) }
	return d, nil
}

// guides serves the documentation of this version. It is read on first use.
func (a *App) guides() http.Handler {
	load := sync.OnceValues(func() (*docsite.Site, error) { return docsite.Load(docs.Pages) })
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		site, err := load()
		if err != nil {
			a.Log.Error("the guides cannot be read", "component", "http", "error", err)
			http.Error(w, "the guides cannot be read; the server's log has the details", http.StatusInternalServerError)
			return
		}
		site.ServeHTTP(w, r)
	})
}

// readers lets only those pass who may read.
func readers(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if by, _ := operation.CallerOf(r.Context()); !by.May(operation.Read) {
			http.Error(w, "this needs a token with the scope read; `chorus token create --scopes read` makes one", http.StatusForbidden)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// named returns the host of the address, if people can type it.
func (o *ServeOptions) named() []string {
	host, port, err := net.SplitHostPort(o.Addr)
	if err != nil || host == "" || loopback(host) || host == "0.0.0.0" || host == "::" {
		return nil
	}
	return []string{net.JoinHostPort(host, port)}
}

var errClosed = errors.New("the server is starting or stopping")

// fit returns why no message can be taken now, or nil.
func (d *httpServer) fit(ctx context.Context, a *App) error {
	if !d.ready.Load() {
		return errClosed
	}
	return a.Service.Handler().ToError(a.DB.Ready(ctx))
}
