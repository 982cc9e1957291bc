// Package compat lets programs that speak OpenAI's chat protocol talk to agents: each
// agent is a model called agent/NAME.
//
// It promises:
//   - a completion is one run of the agent, with its own model, tools and rules, under
//     the rights of the token that asked for it;
//   - what would have to be asked of a person ends the completion with a sentence that
//     says so; nothing hangs, and the question stays open for whoever may answer it;
//   - a caller that goes away ends its run;
//   - what cannot be honoured is refused by name, in OpenAI's format of errors.
package compat

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"chorus/internal/command"
)

// Options are what the handler is made of.
type Options struct {
	Service command.Service
	Log     *slog.Logger
	// Longest is how long a completion may take; 0: 30 minutes.
	Longest time.Duration
	// Heartbeat is how long a stream says nothing at most; 0: 15 s.
	Heartbeat time.Duration
}

type door struct {
	Options
	mux *http.ServeMux
}

// maxBody has room for a long conversation with pictures in it.
const maxBody = 32 << 20

// patience is how long a write of one piece may take.
const patience = 30 * time.Second

// New makes the handler of everything below /v1/. Who calls is in the request's context.
func New(o Options) http.Handler {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Longest <= 0 {
		o.Longest = 30 * time.Minute
	}
	if o.Heartbeat <= 0 {
		o.Heartbeat = 15 * time.Second
	}
	d := &door{Options: o, mux: http.NewServeMux()}
	d.mux.HandleFunc("GET /v1/models", d.models)
	d.mux.HandleFunc("GET /v1/models/{model...}", d.model)
	d.mux.HandleFunc("POST /v1/chat/completions", d.completions)
	d.mux.HandleFunc("/v1/", func(w http.ResponseWriter, r *http.Request) {
		d.fail(w, r, command.Errorf(command.NotFound, "there is no %s %.100s here; there are /v1/models and /v1/chat/completions", r.Method, r.URL.Path))
	})
	return d.mux
}

// card is an agent as a model.
type card struct {
	ID      string `json:"id"`
	Object  string `json:"object"`
	Created int64  `json:"created"`
	OwnedBy string `json:"owned_by"`
}

// prefix stands before the names of agents.
const prefix = "agent/"

func cardOf(a command.Agent) card {
	created := a.CreatedAt.Unix()
	if a.CreatedAt.IsZero() {
		created = 0
	}
	return card{ID: prefix + a.Name, Object: "model", Created: created, OwnedBy: "chorus"}
}

func (d *door) models(w http.ResponseWriter, r *http.Request) {
	agents, err := d.agents(r.Context())
	if err != nil {
		d.fail(w, r, err)
		return
	}
	cards := make([]card, len(agents))
	for i, a := range agents {
		cards[i] = cardOf(a)
	}
	write(w, http.StatusOK, map[string]any{"object": "list", "data": cards})
}

func (d *door) model(w http.ResponseWriter, r *http.Request) {
	agent, err := d.find(r.Context(), r.PathValue("model"))
	if err != nil {
		d.fail(w, r, err)
		return
	}
	write(w, http.StatusOK, cardOf(agent))
}

// caller is who asks; there must be somebody who may chat.
func caller(ctx context.Context) (command.Caller, error) {
	by, ok := command.CallerOf(ctx)
	if !ok {
		return by, command.Errorf(command.Unsigned, "nobody is signed in; give a token as the API key, `chorus token create --scopes chat` makes one")
	}
	if !by.May(command.Chat) {
		return by, command.Errorf(command.Forbidden, "this needs a token with the scope chat; `chorus token create --scopes chat` makes one")
	}
	return by, nil
}

func (d *door) agents(ctx context.Context) ([]command.Agent, error) {
	by, err := caller(ctx)
	if err != nil {
		return nil, err
	}
	list, err := d.Service.ListAgents(ctx, by)
	return list.Items, err
}

// find is the agent that a model's name means.
func (d *door) find(ctx context.Context, model string) (command.Agent, error) {
	agents, err := d.agents(ctx)
	if err != nil {
		return command.Agent{}, err
	}
	var names []string
	for _, a := range agents {
		if a.Name == strings.TrimPrefix(model, prefix) {
			return a, nil
		}
		names = append(names, prefix+a.Name)
	}
	missing := command.Errorf(command.NotFound, "there is no model %.80q here; an agent is a model, and there are: %s", model, strings.Join(names, ", "))
	missing.Field = "model"
	return command.Agent{}, missing
}

func write(w http.ResponseWriter, status int, v any) {
	data, err := json.Marshal(v)
	if err != nil { // only text and numbers
		status, data = http.StatusInternalServerError, []byte(`{"error":{"message":"the answer could not be written","type":"server_error"}}`)
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, _ = w.Write(append(data, '\n')) // whoever asked may be gone
}
