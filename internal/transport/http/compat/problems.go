package compat

import (
	"encoding/json"
	"mime"
	"net/http"
	"strings"

	"chorus/internal/operation"
)

// TranslateProblems rewrites problem documents of the guard (no token, a wrong host) to OpenAI's
// error format below /v1/. Everything else passes unchanged.
func TranslateProblems(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasPrefix(r.URL.Path, "/v1/") {
			next.ServeHTTP(w, r)
			return
		}
		out := &problemTranslator{ResponseWriter: w}
		next.ServeHTTP(out, r)
		out.finish()
	})
}

// problemTranslator buffers a problem document until it is complete.
type problemTranslator struct {
	http.ResponseWriter
	started bool
	status  int // of a problem document; 0: the response is none
	body    []byte
}

// Unwrap implements what http.ResponseController needs.
func (t *problemTranslator) Unwrap() http.ResponseWriter { return t.ResponseWriter }

func (t *problemTranslator) WriteHeader(status int) {
	if t.started {
		return
	}
	t.started = true
	media, _, err := mime.ParseMediaType(t.Header().Get("Content-Type"))
	if err == nil && media == "application/problem+json" {
		t.status = status
		return
	}
	t.ResponseWriter.WriteHeader(status)
}

func (t *problemTranslator) Write(data []byte) (int, error) {
	if !t.started {
		t.WriteHeader(http.StatusOK)
	}
	if t.status == 0 {
		return t.ResponseWriter.Write(data)
	}
	if room := maxBody - len(t.body); len(data) <= room {
		t.body = append(t.body, data...)
	}
	return len(data), nil
}

func (t *problemTranslator) finish() {
	if t.status == 0 {
		return
	}
	var problem struct {
		Detail string `json:"detail"`
	}
	if json.Unmarshal(t.body, &problem) != nil || problem.Detail == "" {
		problem.Detail = http.StatusText(t.status)
	}
	_, what := toAPIError(operation.Errorf(kindOf(t.status), "%s", problem.Detail))
	t.Header().Del("Content-Length")
	writeJSON(t.ResponseWriter, t.status, map[string]apiError{"error": what})
}

func kindOf(status int) operation.Kind {
	for kind, known := range statuses {
		if known.status == status {
			return kind
		}
	}
	return operation.Failed
}
