package compat

import (
	"errors"
	"net/http"

	"chorus/internal/feed"
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
	operation.NoSpace:     {http.StatusInsufficientStorage, "server_error", ""},
	operation.Failed:      {http.StatusInternalServerError, "server_error", ""},
}

// runError is a run's failure as reported to the client. Clients decide by the status whether to retry, so it must
// distinguish a busy provider from a request that will fail again.
type runError struct {
	status     int
	kind, code string
	message    string
	pointless  bool // the client should retry it unchanged
}

func (e *runError) Error() string { return e.message }

// runErrors are the failures of a run, by their kind.
var runErrors = map[string]runError{
	"rate_limit":       {status: http.StatusTooManyRequests, kind: "rate_limit_error", code: "rate_limit_exceeded"},
	"overloaded":       {status: http.StatusServiceUnavailable, kind: "server_error", code: "overloaded"},
	"network":          {status: http.StatusBadGateway, kind: "server_error", code: "provider_unreachable"},
	"stuck":            {status: http.StatusGatewayTimeout, kind: "server_error", code: "timeout"},
	"auth":             {status: http.StatusBadGateway, kind: "server_error", code: "provider_auth", pointless: true},
	"context_too_long": {status: http.StatusBadRequest, kind: "invalid_request_error", code: "context_length_exceeded", pointless: true},
	"refused":          {status: http.StatusBadRequest, kind: "invalid_request_error", code: "refused", pointless: true},
	"bad_request":      {status: http.StatusBadRequest, kind: "invalid_request_error", code: "rejected_by_provider", pointless: true},
	"budget":           {status: http.StatusTooManyRequests, kind: "insufficient_quota", code: "insufficient_quota", pointless: true},
}

func runFailed(it feed.Error) *runError {
	kind := it.Kind
	if it.StopReason == "budget" {
		kind = "budget"
	}
	e, known := runErrors[kind]
	if !known {
		e = runError{status: http.StatusInternalServerError, kind: "server_error"}
	}
	e.message = it.Message
	return &e
}

func toAPIError(err error) (int, apiError) {
	if failed, ok := errors.AsType[*runError](err); ok {
		out := apiError{Message: failed.message, Type: failed.kind}
		if failed.code != "" {
			out.Code = &failed.code
		}
		return failed.status, out
	}
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

// retryHeader tells OpenAI's clients, whatever the status, whether to send the request again.
const retryHeader = "X-Should-Retry"

// fail writes an error. Nothing must have been written before.
func (d *handler) fail(w http.ResponseWriter, r *http.Request, err error) {
	status, out := toAPIError(err)
	if status >= http.StatusInternalServerError && r.Context().Err() == nil {
		d.Log.Warn("a completion failed", "component", "http", "path", r.URL.Path, "error", err)
	}
	if failed, ok := errors.AsType[*runError](err); ok && failed.pointless {
		w.Header().Set(retryHeader, "false")
	}
	if (status == http.StatusTooManyRequests || status == http.StatusServiceUnavailable) && w.Header().Get(retryHeader) == "" {
		w.Header().Set("Retry-After", "1")
	}
	writeJSON(w, status, map[string]apiError{"error": out})
}
