package rest

import (
	"cmp"
	"fmt"
	"net/http"
	"strconv"
	"strings"
)

// Problem says why a request failed, as in RFC 9457. Message repeats the detail under the name that simple clients expect.
type Problem struct {
	Type      string       `json:"type" doc:"address of the description of this kind of problem"`
	Title     string       `json:"title" doc:"the kind of problem"`
	Status    int          `json:"status"`
	Detail    string       `json:"detail" doc:"what is wrong and what to do"`
	Instance  string       `json:"instance,omitempty" doc:"the path of the request"`
	Message   string       `json:"error" doc:"the same as detail"`
	RequestID string       `json:"requestId,omitempty" doc:"the number of the request in the log"`
	Fields    []FieldError `json:"errors,omitempty" doc:"each place in the request that is wrong"`
	About     any          `json:"about,omitempty" doc:"for a conflict: what causes it"`

	RetryAfter int `json:"-"` // seconds; 0: not said
}

// FieldError is one mistake in a request.
type FieldError struct {
	In      string `json:"in" doc:"body, path, query or header"`
	Field   string `json:"field,omitempty"`
	Message string `json:"message"`
	Line    int    `json:"line,omitempty"`
	Column  int    `json:"column,omitempty"`
}

func (f FieldError) String() string {
	var out strings.Builder
	if f.Line > 0 {
		fmt.Fprintf(&out, "line %d, column %d: ", f.Line, f.Column)
	}
	if f.In != "body" {
		out.WriteString(f.In + " ")
	}
	if f.Field != "" {
		out.WriteString(f.Field + ": ")
	}
	return out.String() + f.Message
}

// Error makes a problem an error, so that any function may return one.
func (p *Problem) Error() string { return p.Detail }

// NewProblem makes a problem from a kind, which is one word, and a sentence.
func NewProblem(status int, kind, format string, args ...any) *Problem {
	detail := fmt.Sprintf(format, args...)
	return &Problem{Type: "/docs#problem-" + kind, Title: title(status, kind), Status: status, Detail: detail, Message: detail}
}

func title(status int, kind string) string {
	return cmp.Or(http.StatusText(status), kind)
}

// badFields is the problem of a request with these mistakes.
func badFields(status int, fields ...FieldError) *Problem {
	said := make([]string, len(fields))
	for i, f := range fields {
		said[i] = f.String()
	}
	p := NewProblem(status, "invalid", "%s", strings.Join(said, "; "))
	p.Fields = fields
	return p
}

// WriteProblem answers with a problem. Handlers outside the kernel use it too.
func WriteProblem(w http.ResponseWriter, r *http.Request, p *Problem) {
	body, err := encode(p)
	if err != nil { // About cannot be encoded
		p.About = nil
		body, _ = encode(p)
	}
	h := w.Header()
	h.Set("Content-Type", "application/problem+json")
	h.Set("Content-Length", strconv.Itoa(len(body)))
	h.Set("Cache-Control", "no-store")
	if p.RetryAfter > 0 {
		h.Set("Retry-After", strconv.Itoa(p.RetryAfter))
	}
	if p.Status == http.StatusUnauthorized && h.Get("WWW-Authenticate") == "" {
		h.Set("WWW-Authenticate", "Bearer")
	}
	w.WriteHeader(p.Status)
	if r.Method != http.MethodHead {
		_, _ = w.Write(body) // the client may be gone
	}
}
