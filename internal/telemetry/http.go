package telemetry

import (
	"context"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// routeKey is where an outer counter keeps the place for the route's name.
type routeKey struct{}

// HTTP counts requests by the pattern that answered them. A mux tells its pattern only to
// those who handed it the request itself; where something between copies requests, wrap both
// ends: the outer one counts, the inner one tells it the pattern.
func (t *Telemetry) HTTP(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if route, inside := r.Context().Value(routeKey{}).(*string); inside {
			defer func() { *route = r.Pattern }()
			next.ServeHTTP(w, r)
			return
		}
		var route string
		began := time.Now()
		answer := &counted{ResponseWriter: w, meter: t.meter}
		inner := r.WithContext(context.WithValue(r.Context(), routeKey{}, &route))
		defer func() { // also after a panic, which is the server's way to cut a connection
			if route == "" {
				route = inner.Pattern
			}
			answer.done(method(r.Method), pathOf(route), time.Since(began))
		}()
		next.ServeHTTP(answer, inner)
		answer.whole = true
	})
}

// method is a request's method as a label: a stranger may send any.
func method(name string) string {
	switch name {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodOptions:
		return name
	}
	return "other"
}

// pathOf is a pattern without its method. What no pattern answered was turned away before.
func pathOf(pattern string) string {
	if _, path, ok := strings.Cut(pattern, " "); ok {
		pattern = strings.TrimSpace(path)
	}
	if pattern == "" {
		return "none"
	}
	return pattern
}

// counted watches one answer.
type counted struct {
	http.ResponseWriter
	meter  *meter
	status int
	stream bool
	whole  bool // the handler came to its end
}

var _ http.Flusher = (*counted)(nil)

// WriteHeader implements http.ResponseWriter.
func (c *counted) WriteHeader(status int) {
	c.begin(status)
	c.ResponseWriter.WriteHeader(status)
}

// Write implements http.ResponseWriter.
func (c *counted) Write(data []byte) (int, error) {
	c.begin(http.StatusOK)
	return c.ResponseWriter.Write(data)
}

// Flush implements http.Flusher.
func (c *counted) Flush() {
	c.begin(http.StatusOK)
	_ = http.NewResponseController(c.ResponseWriter).Flush() // who cannot flush writes through
}

// Unwrap is for http.ResponseController.
func (c *counted) Unwrap() http.ResponseWriter { return c.ResponseWriter }

func (c *counted) begin(status int) {
	if c.status != 0 || status < 200 {
		return // the first word counts; 1xx announce one
	}
	c.status = status
	if strings.HasPrefix(c.Header().Get("Content-Type"), "text/event-stream") {
		c.stream = true
		c.meter.streams.add(1)
		c.meter.readers.add(1)
	}
}

func (c *counted) done(method, route string, took time.Duration) {
	code := strconv.Itoa(c.status/100) + "xx"
	switch {
	case !c.whole && !c.stream:
		code = "cut"
	case c.status == 0:
		code = "2xx" // a handler that writes nothing has said yes
	}
	c.meter.requests.with(method, route, code).add(1)
	if c.stream {
		c.meter.readers.add(-1)
		return
	}
	c.meter.answers.observe(took.Seconds(), method, route)
}
