// Package api is the HTTP API of Chorus: a route for every operation of the catalogue, the event stream of a session,
// and the document that describes both.
//
// It promises that a route runs exactly one operation with the values of the request, that it requires the scope of its
// definition, and that every error is a problem that says what to do. The caller is already in the request's context.
package api

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"sync"

	"chorus/internal/operation"
	"chorus/internal/operations"
	"chorus/internal/transport/http/live"
	"chorus/internal/transport/http/rest"
)

// Options configures the API.
type Options struct {
	Executor operation.Executor
	// Operations are served by the API; nil: the whole catalogue.
	Operations *operation.Set
	// Memory stores answers to requests with an Idempotency-Key; nil: only operations that handle keys themselves run once.
	Memory  rest.Memory
	Log     *slog.Logger
	Version string // of the program, for people
	// Ready returns why no message can be accepted now. nil, or a nil error: messages are accepted.
	Ready func(context.Context) error
	// Recheck returns an error if a caller no longer has access, because streams outlive tokens. nil: access is not rechecked.
	Recheck func(context.Context, operation.Caller) error
	Live    live.Options
}

// API serves /api/, /openapi.json, /docs, /docs.css, /healthz and /readyz. It may be used from any goroutine.
type API struct {
	*rest.Kernel
	executor operation.Executor
	ready    func(context.Context) error
	hub      *live.Hub
	page     func() ([]byte, error)
}

var _ http.Handler = (*API)(nil)

// Patterns are the patterns under which a mux should mount the API.
func Patterns() []string {
	return []string{"/api/", "/openapi.json", "/docs", "/docs.css", "/healthz", "/readyz"}
}

// Open reports whether a request needs no token.
func Open(r *http.Request) bool { return r.URL.Path == "/healthz" || r.URL.Path == "/readyz" }

// New creates the API.
func New(o Options) (*API, error) {
	o.Live.Log = cmp.Or(o.Live.Log, o.Log)
	if o.Recheck != nil {
		o.Live.Recheck = func(ctx context.Context) error { return o.Recheck(ctx, by(ctx)) }
	}
	a := &API{executor: o.Executor, ready: o.Ready, hub: live.New(o.Live)}
	if o.Operations == nil {
		o.Operations = operations.All()
	}
	kernel, err := rest.New(a.kernelOptions(o), append(append(a.routes(o.Operations), a.commands(o.Operations)), a.serverOps()...)...)
	if err != nil {
		return nil, err
	}
	a.Kernel = kernel
	a.page = sync.OnceValues(func() ([]byte, error) {
		return kernel.Page("/docs.css", strings.TrimSpace("chorus "+o.Version), problemKinds())
	})
	return a, nil
}

// Drain ends every stream with a last message and accepts no new ones. It waits until they have ended or ctx has.
// Ordinary requests continue: the server's own shutdown waits for them.
func (a *API) Drain(ctx context.Context) error { return a.hub.Drain(ctx) }

// allow checks the scope of a route.
func allow(ctx context.Context, scope string) error {
	caller, ok := operation.CallerOf(ctx)
	if !ok {
		return problem(operation.Errorf(operation.Unsigned, "a token is required: send it as Authorization: Bearer …; `chorus token create` makes one"))
	}
	if !caller.May(operation.Scope(scope)) {
		return problem(operation.Errorf(operation.Forbidden, "this needs a token with the scope %s; `chorus token create --scopes %s` makes one", scope, scope))
	}
	return nil
}

// by returns the caller. allow has checked that there is one.
func by(ctx context.Context) operation.Caller {
	caller, _ := operation.CallerOf(ctx)
	return caller
}

func who(ctx context.Context) string { return by(ctx).Principal.String() }

// statuses maps each kind of error to its status and its description in the documentation.
var statuses = map[operation.Kind]struct {
	status int
	doc    string
}{
	operation.Invalid:     {http.StatusBadRequest, "the request is not valid; errors says what is wrong and where"},
	operation.Unsigned:    {http.StatusUnauthorized, "the token is missing or not valid"},
	operation.Forbidden:   {http.StatusForbidden, "the token lacks the scope, or its holder lacks the right"},
	operation.NotFound:    {http.StatusNotFound, "it does not exist, or it belongs to somebody else"},
	operation.Conflict:    {http.StatusConflict, "the current state does not allow it; about says why"},
	operation.TooLarge:    {http.StatusRequestEntityTooLarge, "the request is too large"},
	operation.Busy:        {http.StatusTooManyRequests, "too much is waiting already; try again later"},
	operation.Unavailable: {http.StatusServiceUnavailable, "not possible now; try again in a moment"},
	operation.NoSpace:     {http.StatusInsufficientStorage, "the server's disk is full; nothing was stored; try again when there is space"},
	operation.Failed:      {http.StatusInternalServerError, "an internal error; the log has the details under requestId"},
}

// problemKinds documents the types of problems.
func problemKinds() [][2]string {
	kinds := [][2]string{
		{"method_not_allowed", "the path does not take this method; Allow lists those it takes"},
		{"unsupported", "the Content-Type of the body is not supported"},
		{"key_reused", "the Idempotency-Key was used for another body"},
	}
	for _, kind := range operation.Kinds() {
		kinds = append(kinds, [2]string{string(kind), statuses[kind].doc})
	}
	return kinds
}

// problem turns an operation's error into a problem.
func problem(err *operation.Error) *rest.Problem {
	kind, known := statuses[err.Kind]
	if !known {
		kind = statuses[operation.Failed]
	}
	p := rest.NewProblem(kind.status, string(err.Kind), "%s", err.Message)
	p.About = err.About
	if err.Field != "" {
		p.Fields = []rest.FieldError{{In: "request", Field: err.Field, Message: err.Message}}
	}
	if err.Kind == operation.Busy || err.Kind == operation.Unavailable {
		p.RetryAfter = 1
	}
	return p
}

// explain turns any error into a problem; nil for internal errors.
func explain(err error) *rest.Problem {
	var ours *operation.Error
	switch {
	case errors.As(err, &ours):
		return problem(ours)
	case errors.Is(err, live.ErrClosing), errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return problem(operation.Errorf(operation.Unavailable, "%s", err.Error()))
	default:
		return nil
	}
}
