package guard

import (
	"encoding/json"
	"errors"
	"net/http"

	"chorus/internal/operation"
)

// writeProblem writes an error as the API does: RFC 9457.
func writeProblem(w http.ResponseWriter, _ *http.Request, err error) {
	status := map[operation.Kind]int{operation.Unsigned: http.StatusUnauthorized, operation.Forbidden: http.StatusForbidden,
		operation.Busy: http.StatusTooManyRequests}[operation.KindOf(err)]
	text := "the token could not be checked; try again"
	if status == 0 {
		status = http.StatusServiceUnavailable
	} else {
		if known, ok := errors.AsType[*operation.Error](err); ok {
			text = known.Message
		}
	}
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]any{"type": "about:blank", "title": http.StatusText(status), "status": status, "detail": text, "error": text})
}
