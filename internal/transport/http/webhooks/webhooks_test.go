package webhooks

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"chorus/internal/operation"
	"chorus/internal/operations"
)

type receiver struct{ got []byte }

func (r *receiver) ReceiveWebhook(_ context.Context, id string, h http.Header, body []byte) (operations.WebhookReceived, error) {
	if h.Get("X-Hub-Signature-256") == "" {
		return operations.WebhookReceived{}, operation.Errorf(operation.Unsigned, "sign it")
	}
	r.got = body
	return operations.WebhookReceived{Run: id}, nil
}

func TestWebhooksAreTaken(t *testing.T) {
	t.Parallel()
	r := &receiver{}
	mux := http.NewServeMux()
	mux.Handle(Pattern, New(r, slog.New(slog.DiscardHandler)))
	for name, c := range map[string]struct {
		signed bool
		body   string
		status int
		want   string
	}{
		"signed":   {true, `{"a":1}`, http.StatusAccepted, `{"run":"deploys"}`},
		"unsigned": {false, `{}`, http.StatusUnauthorized, "sign it"},
		"too long": {true, strings.Repeat("x", maxBody+1), http.StatusRequestEntityTooLarge, "at most 1048576 bytes"},
	} {
		req := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/hooks/in/deploys", strings.NewReader(c.body))
		if c.signed {
			req.Header.Set("X-Hub-Signature-256", "sha256=00")
		}
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, req)
		if w.Code != c.status || !strings.Contains(w.Body.String(), c.want) {
			t.Errorf("%s: %d %s", name, w.Code, w.Body)
		}
		if !Public(req) {
			t.Errorf("%s: a token is asked for", name)
		}
	}
	for _, path := range []string{"/hooks", "/hooks/in/", "/api/hooks"} {
		if Public(httptest.NewRequestWithContext(t.Context(), http.MethodPost, path, nil)) {
			t.Errorf("%s needs no token", path)
		}
	}
}
