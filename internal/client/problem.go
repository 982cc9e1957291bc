package client

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"

	"chorus/internal/operation"
)

// trouble is a problem as sent by the server.
type trouble struct {
	Type   string `json:"type"`
	Detail string `json:"detail"`
	Error  string `json:"error"`
	Fields []struct {
		In      string `json:"in"`
		Field   string `json:"field"`
		Message string `json:"message"`
	} `json:"errors"`
	About any `json:"about"`
}

// kinds maps statuses to kinds, for servers that send no kind we know.
var kinds = map[int]operation.Kind{
	http.StatusBadRequest: operation.Invalid, http.StatusUnprocessableEntity: operation.Conflict, http.StatusUnauthorized: operation.Unsigned,
	http.StatusForbidden: operation.Forbidden, http.StatusNotFound: operation.NotFound, http.StatusConflict: operation.Conflict,
	http.StatusRequestEntityTooLarge: operation.TooLarge, http.StatusTooManyRequests: operation.Busy,
	http.StatusInsufficientStorage: operation.NoSpace, http.StatusServiceUnavailable: operation.Unavailable, http.StatusBadGateway: operation.Unavailable, http.StatusGatewayTimeout: operation.Unavailable,
	http.StatusUnsupportedMediaType: operation.Invalid, http.StatusMethodNotAllowed: operation.Invalid,
}

// problem turns a response that is not a success into an error.
func (c *Client) problem(res *http.Response) error {
	out := &operation.Error{Kind: operation.Failed}
	if kind, ok := kinds[res.StatusCode]; ok {
		out.Kind = kind
	}
	if res.StatusCode >= 300 && res.StatusCode < 400 {
		out.Kind = operation.Unavailable
		out.Message = fmt.Sprintf("%s redirects to %.200q; give that address as --server", c.base.Host, res.Header.Get("Location"))
		return out
	}
	data, _ := io.ReadAll(io.LimitReader(res.Body, maxProblem)) // the status is enough
	var t trouble
	if json.Unmarshal(data, &t) != nil || t.Detail == "" && t.Error == "" {
		out.Message = fmt.Sprintf("%s answered %s; is it a Chorus server?", c.base.Host, res.Status)
		return out
	}
	out.Message, out.About = t.Detail, t.About
	out.Message = cmp.Or(out.Message, t.Error)
	if len(t.Fields) > 0 {
		out.Field = t.Fields[0].Field
		out.Message = t.about(out.Message)
	}
	if _, name, ok := strings.Cut(t.Type, "#problem-"); ok {
		out.Kind = named(name, out.Kind)
	}
	return out
}

// about describes what is wrong with an input without its position in the request, which the caller has not seen. For
// the input as a whole, it keeps the position.
func (t *trouble) about(otherwise string) string {
	said := make([]string, 0, len(t.Fields))
	for _, f := range t.Fields {
		if f.Message == "" || f.In == "request" {
			return otherwise
		}
		if f.Field != "" {
			f.Message = f.Field + ": " + f.Message
		}
		said = append(said, f.Message)
	}
	return strings.Join(said, "; ")
}

func named(name string, otherwise operation.Kind) operation.Kind {
	if slices.Contains(operation.Kinds(), operation.Kind(name)) {
		return operation.Kind(name)
	}
	return otherwise
}
