// Package compat serves OpenAI's chat completions API: each agent is a model called agent/NAME.
//
// It promises:
//   - a completion is one run of the agent, with the agent's model, tools and permissions, and
//     with the rights of the token that asked for it;
//   - a call that needs approval ends the completion with a text that says so, instead of
//     hanging; the approval stays pending;
//   - a client that disconnects ends its run, unless the request has an Idempotency-Key;
//   - a request that comes again with the same Idempotency-Key goes on with the same run, and one
//     that must not be repeated says so (X-Should-Retry);
//   - parameters that cannot be honoured are refused by name, in OpenAI's error format.
package compat

import (
	"cmp"
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"time"

	"chorus/internal/operation"
	"chorus/internal/operations"
)

// Options configure the handler.
type Options struct {
	Executor operation.Executor
	// Memory knows which Idempotency-Key belongs to which request; nil: keys are not checked.
	Memory Memory
	Log    *slog.Logger
	// MaxDuration is how long a completion may take; 0: 30 minutes.
	MaxDuration time.Duration
	// Heartbeat is how often a stream without text sends a comment; 0: 15 s.
	Heartbeat time.Duration
}

// Memory stores the digests of requests with an Idempotency-Key for a day, across restarts. It may be called from any goroutine.
type Memory interface {
	RecallAnswer(ctx context.Context, principal, key, route string) (digest string, status int, body []byte, err error)
	// KeepAnswer stores the digest of a key. The first one stays.
	KeepAnswer(ctx context.Context, principal, key, route, digest string, status int, body []byte) error
}

// completionsRoute is the route of completions.
const completionsRoute = "POST /v1/chat/completions"

type handler struct {
	Options
	mux       *http.ServeMux
	beginning sync.Mutex // held while a request with a key starts
}

// maxBody has room for a long conversation with images.
const maxBody = 32 << 20

// writeTimeout is how long one write may take.
const writeTimeout = 30 * time.Second

// New makes the handler of everything below /v1/. The caller is in the request's context.
func New(o Options) http.Handler {
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	if o.MaxDuration <= 0 {
		o.MaxDuration = 30 * time.Minute
	}
	if o.Heartbeat <= 0 {
		o.Heartbeat = 15 * time.Second
	}
	d := &handler{Options: o, mux: http.NewServeMux()}
	d.mux.HandleFunc("GET /v1/models", d.models)
	d.mux.HandleFunc("GET /v1/models/{model...}", d.model)
	d.mux.HandleFunc(completionsRoute, d.completions)
	d.mux.HandleFunc("/v1/", func(w http.ResponseWriter, r *http.Request) {
		d.fail(w, r, operation.Errorf(operation.NotFound, "%s %.100s is not supported; there are /v1/models and /v1/chat/completions", r.Method, r.URL.Path))
	})
	return d.mux
}

// modelInfo describes an agent as a model.
type modelInfo struct {
	ID      string `json:"id"`
	Object  string `json:"object"`
	Created int64  `json:"created"`
	OwnedBy string `json:"owned_by"`
}

// modelPrefix turns an agent's name into a model's name.
const modelPrefix = "agent/"

func modelInfoOf(a operations.Agent) modelInfo {
	created := a.CreatedAt.Unix()
	if a.CreatedAt.IsZero() {
		created = 0
	}
	return modelInfo{ID: modelPrefix + a.Name, Object: "model", Created: created, OwnedBy: "chorus"}
}

func (d *handler) models(w http.ResponseWriter, r *http.Request) {
	agents, err := d.agents(r.Context())
	if err != nil {
		d.fail(w, r, err)
		return
	}
	cards := make([]modelInfo, len(agents))
	for i, a := range agents {
		cards[i] = modelInfoOf(a)
	}
	writeJSON(w, http.StatusOK, map[string]any{"object": "list", "data": cards})
}

func (d *handler) model(w http.ResponseWriter, r *http.Request) {
	agent, err := d.agentByModel(r.Context(), r.PathValue("model"))
	if err != nil {
		d.fail(w, r, err)
		return
	}
	writeJSON(w, http.StatusOK, modelInfoOf(agent))
}

// caller is the authenticated caller, who must have the scope chat.
func caller(ctx context.Context) (operation.Caller, error) {
	by, ok := operation.CallerOf(ctx)
	if !ok {
		return by, operation.Errorf(operation.Unsigned, "a token is required: send it as the API key; `chorus token create --scopes chat` makes one")
	}
	if !by.May(operation.Chat) {
		return by, operation.Errorf(operation.Forbidden, "this needs a token with the scope chat; `chorus token create --scopes chat` makes one")
	}
	return by, nil
}

func (d *handler) agents(ctx context.Context) ([]operations.Agent, error) {
	by, err := caller(ctx)
	if err != nil {
		return nil, err
	}
	return operation.CallWhole(ctx, operations.ListAgents, d.Executor, by, operations.AgentQuery{})
}

// agentByModel finds the agent that a model name stands for.
func (d *handler) agentByModel(ctx context.Context, model string) (operations.Agent, error) {
	agents, err := d.agents(ctx)
	if err != nil {
		return operations.Agent{}, err
	}
	var names []string
	for _, a := range agents {
		if a.Name == strings.TrimPrefix(model, modelPrefix) {
			return a, nil
		}
		names = append(names, modelPrefix+a.Name)
	}
	missing := operation.Errorf(operation.NotFound, "there is no model %.80q; the models are the agents: %s", model, strings.Join(names, ", "))
	missing.Field = "model"
	return operations.Agent{}, missing
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	data, err := json.Marshal(v)
	if err != nil { // cannot happen: text and numbers only
		status, data = http.StatusInternalServerError, []byte(`{"error":{"message":"the answer could not be written","type":"server_error"}}`)
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, _ = w.Write(append(data, '\n')) // the client may have disconnected
}
