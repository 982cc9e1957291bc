// Package api is the HTTP API of Chorus: every order of internal/command as a route,
// its events as a stream, and the document that describes both.
//
// It promises that a route does exactly one order with what the request says, that
// it needs the scope that it declares and nobody gets further without, and that
// every error is a problem that says what to do. Who a caller is was found out
// before: it is in the request's context.
package api

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"sync"

	"chorus/internal/command"
	"chorus/internal/transport/http/live"
	"chorus/internal/transport/http/rest"
)

// Options are what the API is made of.
type Options struct {
	Service command.Service
	// Memory keeps answers to requests with an Idempotency-Key; nil: only the orders
	// that know keys themselves are given once.
	Memory  rest.Memory
	Log     *slog.Logger
	Version string // of the program, for people
	// Ready says why no message can be taken now; nil, or nil error: it can.
	Ready func(context.Context) error
	// Still says why a caller who was let in would not be now: streams outlive tokens.
	// nil: nobody is asked again.
	Still func(context.Context, command.Caller) error
	Live  live.Options
}

// API serves /api/, /openapi.json, /docs, /docs.css, /healthz and /readyz. It may be used from any goroutine.
type API struct {
	*rest.Kernel
	service command.Service
	ready   func(context.Context) error
	hub     *live.Hub
	page    func() ([]byte, error)
}

var _ http.Handler = (*API)(nil)

// Patterns are where a mux should mount the API.
func Patterns() []string {
	return []string{"/api/", "/openapi.json", "/docs", "/docs.css", "/healthz", "/readyz"}
}

// Open reports whether a request is for everybody, without a token.
func Open(r *http.Request) bool { return r.URL.Path == "/healthz" || r.URL.Path == "/readyz" }

// New makes the API.
func New(o Options) (*API, error) {
	if o.Live.Log == nil {
		o.Live.Log = o.Log
	}
	if o.Still != nil {
		o.Live.Still = func(ctx context.Context) error { return o.Still(ctx, by(ctx)) }
	}
	a := &API{service: o.Service, ready: o.Ready, hub: live.New(o.Live)}
	kernel, err := rest.New(a.kernelOptions(o), a.operations()...)
	if err != nil {
		return nil, err
	}
	a.Kernel = kernel
	a.page = sync.OnceValues(func() ([]byte, error) {
		return kernel.Page("/docs.css", strings.TrimSpace("chorus "+o.Version), problemKinds())
	})
	return a, nil
}

// Drain ends every stream with a last word and lets no new one in. It waits until they
// have ended or ctx has. Ordinary requests go on: the server's own shutdown waits for them.
func (a *API) Drain(ctx context.Context) error { return a.hub.Drain(ctx) }

// Readers is how many streams are open.
func (a *API) Readers() int { return a.hub.Readers() }

// operations are all there are, in the order of the document.
func (a *API) operations() []rest.Operation {
	var all []rest.Operation
	for _, some := range [][]rest.Operation{
		a.sessionOps(), a.historyOps(), a.exportOps(), a.deskOps(), a.agentOps(), a.bookOps(), a.houseOps(), a.tokenOps(), a.doorOps(),
	} {
		all = append(all, some...)
	}
	return all
}

// allow checks the scope of a route.
func allow(ctx context.Context, scope string) error {
	caller, ok := command.CallerOf(ctx)
	if !ok {
		return problem(command.Errorf(command.Unsigned, "nobody is signed in; send a token as Authorization: Bearer …, `chorus token create` makes one"))
	}
	if !caller.May(command.Scope(scope)) {
		return problem(command.Errorf(command.Forbidden, "this needs a token with the scope %s; `chorus token create --scopes %s` makes one", scope, scope))
	}
	return nil
}

// by is who gives an order; allow has seen that there is somebody.
func by(ctx context.Context) command.Caller {
	caller, _ := command.CallerOf(ctx)
	return caller
}

func who(ctx context.Context) string { return by(ctx).Principal.String() }

// statuses gives each kind of error its status and the sentence of its documentation.
var statuses = map[command.Kind]struct {
	status int
	doc    string
}{
	command.Invalid:     {http.StatusBadRequest, "something in the request is wrong; errors says what and where"},
	command.Unsigned:    {http.StatusUnauthorized, "there is no token, or it is not good any more"},
	command.Forbidden:   {http.StatusForbidden, "the token does not open this, or its holder may not do it"},
	command.NotFound:    {http.StatusNotFound, "there is no such thing, or it is somebody else's"},
	command.Conflict:    {http.StatusConflict, "it stands differently already; about says how"},
	command.TooLarge:    {http.StatusRequestEntityTooLarge, "more than is taken"},
	command.Busy:        {http.StatusTooManyRequests, "too much waits already; try again later"},
	command.Unavailable: {http.StatusServiceUnavailable, "it cannot be done now; try again in a moment"},
	command.Failed:      {http.StatusInternalServerError, "something broke here; the log has it under requestId"},
}

// problemKinds documents the types of problems.
func problemKinds() [][2]string {
	kinds := [][2]string{
		{"method_not_allowed", "the path takes other methods; Allow names them"},
		{"unsupported", "the body's Content-Type is not taken"},
		{"key_reused", "the Idempotency-Key was used for another body"},
	}
	for _, kind := range []command.Kind{command.Invalid, command.Unsigned, command.Forbidden, command.NotFound,
		command.Conflict, command.TooLarge, command.Busy, command.Unavailable, command.Failed} {
		kinds = append(kinds, [2]string{string(kind), statuses[kind].doc})
	}
	return kinds
}

// problem makes a problem of an error of the house.
func problem(err *command.Error) *rest.Problem {
	kind, known := statuses[err.Kind]
	if !known {
		kind = statuses[command.Failed]
	}
	p := rest.NewProblem(kind.status, string(err.Kind), "%s", err.Message)
	p.About = err.About
	if err.Field != "" {
		p.Fields = []rest.FieldError{{In: "request", Field: err.Field, Message: err.Message}}
	}
	if err.Kind == command.Busy || err.Kind == command.Unavailable {
		p.RetryAfter = 1
	}
	return p
}

// explain makes a problem of any error; nil for one that is nobody's business.
func explain(err error) *rest.Problem {
	var ours *command.Error
	switch {
	case errors.As(err, &ours):
		return problem(ours)
	case errors.Is(err, live.ErrClosing), errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return problem(command.Errorf(command.Unavailable, "%s", err.Error()))
	default:
		return nil
	}
}
