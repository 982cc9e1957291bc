package compat

import (
	"errors"
	"net/http"

	"chorus/internal/command"
)

// apiError is an error in OpenAI's format.
type apiError struct {
	Message string  `json:"message"`
	Type    string  `json:"type"`
	Param   *string `json:"param"`
	Code    *string `json:"code"`
}

// statuses map each kind of error to an HTTP status and to the type and code of OpenAI.
var statuses = map[command.Kind]struct {
	status     int
	kind, code string
}{
	command.Invalid:     {http.StatusBadRequest, "invalid_request_error", ""},
	command.Unsigned:    {http.StatusUnauthorized, "invalid_request_error", "invalid_api_key"},
	command.Forbidden:   {http.StatusForbidden, "invalid_request_error", "insufficient_permissions"},
	command.NotFound:    {http.StatusNotFound, "invalid_request_error", ""},
	command.Conflict:    {http.StatusConflict, "invalid_request_error", ""},
	command.TooLarge:    {http.StatusRequestEntityTooLarge, "invalid_request_error", ""},
	command.Busy:        {http.StatusTooManyRequests, "rate_limit_error", "rate_limit_exceeded"},
	command.Unavailable: {http.StatusServiceUnavailable, "server_error", ""},
	command.Failed:      {http.StatusInternalServerError, "server_error", ""},
}

func toAPIError(err error) (int, apiError) {
	var ours *command.Error
	if !errors.As(err, &ours) {
		ours = command.Errorf(command.Failed, "internal error; the server's log has the details")
	}
	known, ok := statuses[ours.Kind]
	if !ok {
		known = statuses[command.Failed]
	}
	out := apiError{Message: ours.Message, Type: known.kind}
	if ours.Field != "" {
		out.Param = &ours.Field
	}
	code := known.code
	if ours.Kind == command.NotFound && ours.Field == "model" {
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

func invalid(field, format string, args ...any) *command.Error {
	err := command.Errorf(command.Invalid, format, args...)
	err.Field = field
	return err
}
