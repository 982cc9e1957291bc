package compat

import (
	"encoding/json"
	"mime"
	"net/http"
	"strings"

	"chorus/internal/command"
)

// Guarded says what the door before us refuses (no token, a wrong host) in the format
// that clients of /v1/ read. Everything else passes as it is.
func Guarded(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasPrefix(r.URL.Path, "/v1/") {
			next.ServeHTTP(w, r)
			return
		}
		out := &translator{ResponseWriter: w}
		next.ServeHTTP(out, r)
		out.finish()
	})
}

// translator holds a problem back until it is whole.
type translator struct {
	http.ResponseWriter
	begun  bool
	status int // of a problem; 0: it is none
	body   []byte
}

// Unwrap is for http.ResponseController.
func (t *translator) Unwrap() http.ResponseWriter { return t.ResponseWriter }

func (t *translator) WriteHeader(status int) {
	if t.begun {
		return
	}
	t.begun = true
	media, _, err := mime.ParseMediaType(t.Header().Get("Content-Type"))
	if err == nil && media == "application/problem+json" {
		t.status = status
		return
	}
	t.ResponseWriter.WriteHeader(status)
}

func (t *translator) Write(data []byte) (int, error) {
	if !t.begun {
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

func (t *translator) finish() {
	if t.status == 0 {
		return
	}
	var problem struct {
		Detail string `json:"detail"`
	}
	if json.Unmarshal(t.body, &problem) != nil || problem.Detail == "" {
		problem.Detail = http.StatusText(t.status)
	}
	_, what := explain(command.Errorf(kindOf(t.status), "%s", problem.Detail))
	t.Header().Del("Content-Length")
	write(t.ResponseWriter, t.status, map[string]wrong{"error": what})
}

func kindOf(status int) command.Kind {
	for kind, known := range kinds {
		if known.status == status {
			return kind
		}
	}
	return command.Failed
}
