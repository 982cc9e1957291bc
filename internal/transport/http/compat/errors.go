package compat

import (
	"errors"
	"net/http"

	"chorus/internal/command"
)

// wrong is an error as OpenAI's clients read it.
type wrong struct {
	Message string  `json:"message"`
	Type    string  `json:"type"`
	Param   *string `json:"param"`
	Code    *string `json:"code"`
}

// kinds give each kind of error its status and the words that clients know.
var kinds = map[command.Kind]struct {
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

func explain(err error) (int, wrong) {
	var ours *command.Error
	if !errors.As(err, &ours) {
		ours = command.Errorf(command.Failed, "something went wrong here; the log has it")
	}
	known, ok := kinds[ours.Kind]
	if !ok {
		known = kinds[command.Failed]
	}
	out := wrong{Message: ours.Message, Type: known.kind}
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

// fail answers an error. Where the answer has not begun.
func (d *door) fail(w http.ResponseWriter, r *http.Request, err error) {
	status, out := explain(err)
	if status >= http.StatusInternalServerError && r.Context().Err() == nil {
		d.Log.Warn("a completion failed", "component", "http", "path", r.URL.Path, "error", err)
	}
	if status == http.StatusTooManyRequests || status == http.StatusServiceUnavailable {
		w.Header().Set("Retry-After", "1")
	}
	write(w, status, map[string]wrong{"error": out})
}

func bad(field, format string, args ...any) *command.Error {
	err := command.Errorf(command.Invalid, format, args...)
	err.Field = field
	return err
}
