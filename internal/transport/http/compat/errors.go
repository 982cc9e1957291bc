package compat

import (
	"errors"
	"net/http"

	"chorus/internal/operation"
)

// apiError is an error in OpenAI's format.
type apiError struct {
	Message string  `json:"message"`
	Type    string  `json:"type"`
	Param   *string `json:"param"`
	Code    *string `json:"code"`
}

// statuses map each kind of error to an HTTP status and to the type and code of OpenAI.
var statuses = map[operation.Kind]struct {
	status     int
	kind, code string
}{
	operation.Invalid:     {http.StatusBadRequest, "invalid_request_error", ""},
	operation.Unsigned:    {http.StatusUnauthorized, "invalid_request_error", "invalid_api_key"},
	operation.Forbidden:   {http.StatusForbidden, "invalid_request_error", "insufficient_permissions"},
	operation.NotFound:    {http.StatusNotFound, "invalid_request_error", ""},
	operation.Conflict:    {http.StatusConflict, "invalid_request_error", ""},
	operation.TooLarge:    {http.StatusRequestEntityTooLarge, "invalid_request_error", ""},
	operation.Busy:        {http.StatusTooManyRequests, "rate_limit_error", "rate_limit_exceeded"},
	operation.Unavailable: {http.StatusServiceUnavailable, "server_error", ""},
	operation.Failed:      {http.StatusInternalServerError, "server_error", ""},
}

func toAPIError(err error) (int, apiError) {
	var ours *operation.Error
	if !errors.As(err, &ours) {
		ours = operation.Errorf(operation.Failed, "internal error; the server's log has the details")
	}
	known, ok := statuses[ours.Kind]
	if !ok {
		known = statuses[operation.Failed]
	}
	out := apiError{Message: ours.Message, Type: known.kind}
	if ours.Field != "" {
		out.Param = &ours.Field
	}
	code := known.code
	if ours.Kind == operation.NotFound && ours.Field == "model" {
		code = "model_not_found"
	}
	if code != "" {
		out.Code = &code
	}
	return known.status, out
}

// fail writes an error. Nothing must have been written before.
func (d *handler) fail(w http.ResponseWriter, r *http.Request, err error) {
	status, out := toAPIError(err)
	if status >= http.StatusInternalServerError && r.Context().Err() == nil {
		d.Log.Warn("a completion failed", "component", "http", "path", r.URL.Path, "error", err)
	}
	if status == http.StatusTooManyRequests || status == http.StatusServiceUnavailable {
		w.Header().Set("Retry-After", "1")
	}
	writeJSON(w, status, map[string]apiError{"error": out})
}

func invalid(field, format string, args ...any) *operation.Error {
	err := operation.Errorf(operation.Invalid, format, args...)
	err.Field = field
	return err
}
