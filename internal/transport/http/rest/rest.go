// Package rest makes an HTTP API from typed functions. A route is declared once, with the Go types of its input and
// output; its handler, its validation and its part of the OpenAPI document follow from that declaration.
//
// It promises:
//   - any mistake in a request is answered by an RFC 9457 problem that says where it is (line,
//     column, field) and, for an unknown name, suggests a similar one;
//   - a function only sees input that fits its declaration;
//   - a panic is a 500 with a number that is also in the log, and ends nothing else;
//   - a request with an Idempotency-Key takes effect once, and gets the same answer again.
//
// It knows nothing about the API's subject: scopes are names, and its owner decides who may do what.
package rest

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"path"
	"reflect"
	"runtime/debug"
	"strings"
	"sync"

	"github.com/google/jsonschema-go/jsonschema"

	"chorus/internal/text"
)

// Options configures a kernel.
type Options struct {
	Title, Version, Doc string
	// Allow decides who may use a route with this scope; nil error: the request continues. It is not called for a route
	// without a scope, which is open to everybody.
	Allow func(ctx context.Context, scope string) error
	// Explain turns a function's error into a problem; nil: a 500 without details.
	Explain func(error) *Problem
	// Who identifies the owner of Idempotency-Keys.
	Who func(ctx context.Context) string
	// Memory stores answers; nil: keys are only passed on.
	Memory Memory
	// Log gets panics and failures; nil: the default one.
	Log *slog.Logger
	// Common are statuses that every route with a scope may return.
	Common []int

	// Name gives the name of a type in the document; nil or "": the type's own.
	Name func(reflect.Type) string
	// Schemas replace those of types whose JSON does not follow from their fields.
	Schemas map[reflect.Type]*jsonschema.Schema
	// OneOf lists the possible types of an interface.
	OneOf map[reflect.Type][]Variant
	// Docs are sentences about types.
	Docs map[reflect.Type]string
	// Tags are sentences about groups of routes, in the order they are shown.
	Tags [][2]string
	// Beside describes what others serve at the same address, by path and method, and Types the schemas it refers to. It is
	// only documented here, not served.
	Beside map[string]map[string]*Described
	Types  map[string]*jsonschema.Schema
}

// Variant is one of the types behind an interface. Its field "type" has that value.
type Variant struct {
	Value string
	Type  reflect.Type
}

// Kernel serves the routes. It is an http.Handler and may be used from any goroutine.
type Kernel struct {
	o            Options
	ops          []Operation
	mux          *http.ServeMux
	inFlight     inFlight
	document     func() (*Document, error)
	documentJSON func() ([]byte, error)
}

var _ http.Handler = (*Kernel)(nil)

// New makes a kernel from operations. It fails if a declaration contradicts itself.
func New(o Options, ops ...Operation) (*Kernel, error) {
	o.Log = cmp.Or(o.Log, slog.Default())
	k := &Kernel{o: o, ops: ops, mux: http.NewServeMux()}
	k.inFlight.open = map[string]chan struct{}{}
	shapes := newShapes(&k.o)
	for i := range ops {
		op := &k.ops[i]
		if err := op.prepare(shapes); err != nil {
			return nil, fmt.Errorf("route %s %s: %w", op.Method, op.Path, err)
		}
		k.mux.Handle(op.Method+" "+op.Path, k.handler(op))
	}
	if shapes.err != nil {
		return nil, shapes.err
	}
	k.document, k.documentJSON = sync.OnceValues(k.makeDocument), sync.OnceValues(k.makeJSON)
	return k, nil
}

// Operations are the routes in the order they were declared.
func (k *Kernel) Operations() []Route {
	routes := make([]Route, len(k.ops))
	for i := range k.ops {
		routes[i] = k.ops[i].Route
	}
	return routes
}

type metaKey struct{}

// meta is what is known about every request.
type meta struct {
	id  string
	key string // its Idempotency-Key
}

func metaOf(ctx context.Context) meta {
	m, _ := ctx.Value(metaKey{}).(meta)
	return m
}

// RequestID is the number of the request that ctx belongs to.
func RequestID(ctx context.Context) string { return metaOf(ctx).id }

func (k *Kernel) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	id, outside := newRequestID(), r
	defer func() { outside.Pattern = r.Pattern }() // code that counts by routes holds the request from before the copy
	r = r.WithContext(context.WithValue(r.Context(), metaKey{}, meta{id: id, key: r.Header.Get("Idempotency-Key")}))
	out := &response{ResponseWriter: w}
	out.Header().Set("X-Request-Id", id)
	out.Header().Set("X-Content-Type-Options", "nosniff")
	defer k.catch(out, r)
	if p := k.unroutable(r, out); p != nil {
		k.refuse(out, r, p)
		return
	}
	if r.Method == http.MethodOptions {
		out.WriteHeader(http.StatusNoContent)
		return
	}
	k.mux.ServeHTTP(out, r)
}

// unroutable finds requests without a route. For OPTIONS it only sets Allow.
func (k *Kernel) unroutable(r *http.Request, w http.ResponseWriter) *Problem {
	if escaped := r.URL.EscapedPath(); r.Method == http.MethodConnect || path.Clean("/"+escaped) != escaped {
		return NewProblem(http.StatusNotFound, "not_found", "there is no %s", clip(r.URL.Path, 200))
	}
	handler, pattern := k.mux.Handler(r)
	if pattern != "" {
		return nil
	}
	var probe probe
	handler.ServeHTTP(&probe, r)
	if probe.status != http.StatusMethodNotAllowed {
		return NewProblem(http.StatusNotFound, "not_found", "there is no %s; /docs lists all routes", clip(r.URL.Path, 200))
	}
	allow := probe.header.Get("Allow") + ", OPTIONS"
	w.Header().Set("Allow", allow)
	if r.Method == http.MethodOptions {
		return nil
	}
	return NewProblem(http.StatusMethodNotAllowed, "method_not_allowed", "%s does not support %s; it supports %s", clip(r.URL.Path, 200), r.Method, allow)
}

func (k *Kernel) handler(op *Operation) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if op.Scope != "" {
			if err := k.allow(r.Context(), op.Scope); err != nil {
				k.fail(w, r, err)
				return
			}
		}
		err := k.ready(op)
		if err == nil {
			err = op.serve(k, op, w, r)
		}
		if err != nil {
			k.fail(w, r, err)
		}
	})
}

func (k *Kernel) allow(ctx context.Context, scope string) error {
	if k.o.Allow == nil {
		return NewProblem(http.StatusForbidden, "forbidden", "access is not configured")
	}
	return k.o.Allow(ctx, scope)
}

// fail answers an error: a problem as it is, any other as Explain says.
func (k *Kernel) fail(w http.ResponseWriter, r *http.Request, err error) {
	var p *Problem
	if !errors.As(err, &p) && k.o.Explain != nil {
		p = k.o.Explain(err)
	}
	if p == nil {
		p = NewProblem(http.StatusInternalServerError, "failed", "internal error; the server's log has the details under %s", RequestID(r.Context()))
	}
	if p.Status >= http.StatusInternalServerError && r.Context().Err() == nil {
		k.o.Log.ErrorContext(r.Context(), "request failed", "method", r.Method, "path", r.URL.Path, "status", p.Status,
			"request", RequestID(r.Context()), "error", err.Error())
	}
	k.refuse(w, r, p)
}

// refuse writes a problem. If an answer has already started, the connection is cut, so that nobody mistakes half of it for the whole.
func (k *Kernel) refuse(w http.ResponseWriter, r *http.Request, p *Problem) {
	if out, ok := w.(*response); ok && out.begun {
		panic(http.ErrAbortHandler)
	}
	said := *p
	said.Instance = r.URL.EscapedPath()
	said.RequestID = RequestID(r.Context())
	WriteProblem(w, r, &said)
}

// catch turns a panic into an answer.
func (k *Kernel) catch(w *response, r *http.Request) {
	why := recover()
	if why == nil {
		return
	}
	if err, ok := why.(error); ok && errors.Is(err, http.ErrAbortHandler) {
		panic(why)
	}
	k.o.Log.ErrorContext(r.Context(), "panic while serving", "method", r.Method, "path", r.URL.Path,
		"request", RequestID(r.Context()), "panic", fmt.Sprint(why), "stack", string(debug.Stack()))
	if w.begun {
		panic(http.ErrAbortHandler)
	}
	k.refuse(w, r, NewProblem(http.StatusInternalServerError, "failed",
		"internal error; the server's log has the details under %s", RequestID(r.Context())))
}

// response records whether an answer has started.
type response struct {
	http.ResponseWriter
	begun bool
}

func (w *response) WriteHeader(status int) {
	w.begun = true
	w.ResponseWriter.WriteHeader(status)
}

func (w *response) Write(data []byte) (int, error) {
	w.begun = true
	return w.ResponseWriter.Write(data)
}

// Unwrap is for http.ResponseController.
func (w *response) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// probe captures the mux's answer without sending it.
type probe struct {
	header http.Header
	status int
}

func (p *probe) Header() http.Header {
	if p.header == nil {
		p.header = http.Header{}
	}
	return p.header
}
func (p *probe) WriteHeader(status int)             { p.status = status }
func (p *probe) Write(data []byte) (n int, _ error) { return len(data), nil }

func newRequestID() string {
	var b [8]byte
	_, _ = rand.Read(b[:]) // it never fails
	return hex.EncodeToString(b[:])
}

// encode writes a value as JSON that leaves <, > and & alone.
func encode(v any) ([]byte, error) {
	var buf bytes.Buffer
	if err := text.WriteJSON(&buf, v); err != nil {
		return nil, fmt.Errorf("write the answer: %w", err)
	}
	return buf.Bytes(), nil
}

func clip(s string, most int) string {
	s = strings.ToValidUTF8(s, "?")
	if runes := []rune(s); len(runes) > most {
		return string(runes[:most]) + "…"
	}
	return s
}
