package google

import (
	"bytes"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"time"

	"chorus/internal/model"
	"chorus/internal/model/wire"
)

// status is google.rpc.Status, with the fields that are used.
type status struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
	Status  string `json:"status"`
	Details []struct {
		Reason     string `json:"reason"`     // of an ErrorInfo
		RetryDelay string `json:"retryDelay"` // of a RetryInfo
	} `json:"details"`
}

// readStatus reads an error from a body, which may be a list of one. It returns the body without the list.
func readStatus(body []byte) (status, []byte, bool) {
	body = bytes.TrimSpace(body)
	var list []json.RawMessage
	if len(body) > 0 && body[0] == '[' && json.Unmarshal(body, &list) == nil && len(list) > 0 {
		body = list[0]
	}
	var reply struct {
		Error *status `json:"error"`
	}
	if json.Unmarshal(body, &reply) != nil || reply.Error == nil {
		return status{}, body, false
	}
	return *reply.Error, body, true
}

// delay returns how long the vendor wants us to wait; 0 if it does not say.
func (s status) delay() time.Duration {
	for _, d := range s.Details {
		if wait, err := time.ParseDuration(d.RetryDelay); err == nil && wait > 0 {
			return min(wait, 24*time.Hour)
		}
	}
	return 0
}

// kind recognises failures whose HTTP status is misleading by their code. It returns "" for the rest.
func (s status) kind() model.ErrorKind {
	reason := func(names ...string) bool {
		for _, d := range s.Details {
			if slices.Contains(names, d.Reason) {
				return true
			}
		}
		return false
	}
	text := strings.ToLower(s.Message)
	switch {
	case reason("API_KEY_INVALID", "API_KEY_SERVICE_BLOCKED", "API_KEY_EXPIRED"),
		strings.Contains(text, "api key not valid"), strings.Contains(text, "api key expired"), strings.Contains(text, "api key not found"):
		return model.Auth // with status 400
	case strings.Contains(text, "exceeds the maximum number of tokens"):
		return model.TooLong
	case s.Status == "RESOURCE_EXHAUSTED" && s.delay() > 0:
		// The vendor says "You exceeded your current quota" at every rate limit. Only
		// without a delay does it mean a quota that no wait restores.
		return model.RateLimited
	default:
		return ""
	}
}

// refused reads an HTTP error.
func refused(side wire.Side) func(int, http.Header, []byte) *model.Error {
	return func(code int, header http.Header, body []byte) *model.Error {
		s, body, _ := readStatus(body)
		return s.refine(side.Status(code, header, body))
	}
}

func (s status) refine(e *model.Error) *model.Error {
	if kind := s.kind(); kind != "" {
		e.Kind = kind
	}
	if e.RetryAfter == 0 && e.Retryable() {
		e.RetryAfter = s.delay()
	}
	return e
}

// inStream returns the error for one in the middle of an answer.
func (s status) inStream(side wire.Side) *model.Error {
	r := wire.Report{Message: s.Message}
	switch s.Status {
	case "RESOURCE_EXHAUSTED":
		r.Type = "rate_limit_error"
	case "INVALID_ARGUMENT", "FAILED_PRECONDITION", "NOT_FOUND", "OUT_OF_RANGE", "UNIMPLEMENTED":
		r.Type = "invalid_request_error"
	case "UNAUTHENTICATED", "PERMISSION_DENIED":
		r.Type = "authentication_error"
	default: // INTERNAL, UNAVAILABLE, DEADLINE_EXCEEDED, and future codes
		r.Type = "overloaded_error"
	}
	return s.refine(side.Event(r))
}
