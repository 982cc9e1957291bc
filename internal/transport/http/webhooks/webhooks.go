// Package webhooks receives webhooks for hooks: POST /hooks/in/{id}. The signature authorizes the sender; no token is needed.
package webhooks

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"

	"chorus/internal/operation"
	"chorus/internal/operations"
	"chorus/internal/transport/http/rest"
)

// Pattern is the address of webhooks.
const Pattern = "POST /hooks/in/{id}"

// maxBody is more than useful senders send; GitHub's limit is 25 MB, which nobody reads to the end.
const maxBody = 1 << 20

// Receiver handles what was sent to a hook.
type Receiver interface {
	ReceiveWebhook(ctx context.Context, id string, h http.Header, body []byte) (operations.WebhookReceived, error)
}

// Public reports whether a request is a webhook's, which needs no token.
func Public(r *http.Request) bool {
	return r.Method == http.MethodPost && len(r.URL.Path) > len(prefix) && r.URL.Path[:len(prefix)] == prefix
}

const prefix = "/hooks/in/"

// New returns the handler.
func New(to Receiver, log *slog.Logger) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
		if tooLong := (*http.MaxBytesError)(nil); errors.As(err, &tooLong) {
			rest.WriteProblem(w, r, rest.NewProblem(http.StatusRequestEntityTooLarge, "too-large", "a webhook may have at most %d bytes; send less, or send a reference", maxBody))
			return
		}
		if err != nil {
			rest.WriteProblem(w, r, rest.NewProblem(http.StatusBadRequest, "invalid", "the request was cut off; send it again"))
			return
		}
		out, err := to.ReceiveWebhook(r.Context(), r.PathValue("id"), r.Header, body)
		if err != nil {
			fail(w, r, err, log)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusAccepted)
		_ = json.NewEncoder(w).Encode(out) // a sender that has gone needs no answer
	})
}

func fail(w http.ResponseWriter, r *http.Request, err error, log *slog.Logger) {
	if ours := (*operation.Error)(nil); errors.As(err, &ours) && ours.Kind == operation.Unsigned {
		log.Warn("a webhook was refused: "+ours.Message, "component", "hooks", "event", "webhook_refused", "hook", r.PathValue("id"))
		rest.WriteProblem(w, r, rest.NewProblem(http.StatusUnauthorized, "unsigned", "%s", ours.Message))
		return
	}
	log.Error("a webhook could not be taken: "+err.Error(), "component", "hooks", "event", "webhook_failed", "hook", r.PathValue("id"))
	rest.WriteProblem(w, r, rest.NewProblem(http.StatusServiceUnavailable, "unavailable", "it could not be accepted now; send it again"))
}
