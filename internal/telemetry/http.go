package telemetry

import (
	"cmp"
	"context"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// patternKey is the context key under which the outer handler of HTTP receives the pattern.
type patternKey struct{}

// HTTP counts requests by the pattern of the route that answered them. A ServeMux sets the pattern only on
// the request it was given; where a handler in between copies requests, wrap both ends: the outer
// one counts, the inner one passes it the pattern.
func (t *Telemetry) HTTP(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if pattern, inner := r.Context().Value(patternKey{}).(*string); inner {
			defer func() { *pattern = r.Pattern }()
			next.ServeHTTP(w, r)
			return
		}
		var pattern string
		started := time.Now()
		response := &countedResponse{ResponseWriter: w, metrics: t.metrics}
		request := r.WithContext(context.WithValue(r.Context(), patternKey{}, &pattern))
		defer func() { // also after a panic, which is how a handler aborts a connection
			pattern = cmp.Or(pattern, request.Pattern)
			response.finish(methodLabel(r.Method), routeLabel(pattern), time.Since(started))
		}()
		next.ServeHTTP(response, request)
		response.returned = true
	})
}

// methodLabel is a request's method as a label: a client may send any.
func methodLabel(method string) string {
	switch method {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodOptions:
		return method
	}
	return "other"
}

// routeLabel is a pattern without its method; "none" if the request was rejected before it reached a route.
func routeLabel(pattern string) string {
	if _, path, ok := strings.Cut(pattern, " "); ok {
		pattern = strings.TrimSpace(path)
	}
	return cmp.Or(pattern, "none")
}

// countedResponse observes one response.
type countedResponse struct {
	http.ResponseWriter
	metrics  *metrics
	status   int
	stream   bool
	returned bool // the handler returned; it did not panic
}

var _ http.Flusher = (*countedResponse)(nil)

func (c *countedResponse) WriteHeader(status int) {
	c.begin(status)
	c.ResponseWriter.WriteHeader(status)
}

func (c *countedResponse) Write(data []byte) (int, error) {
	c.begin(http.StatusOK)
	return c.ResponseWriter.Write(data)
}

func (c *countedResponse) Flush() {
	c.begin(http.StatusOK)
	_ = http.NewResponseController(c.ResponseWriter).Flush() // a writer that cannot flush does not buffer
}

// Unwrap is for http.ResponseController.
func (c *countedResponse) Unwrap() http.ResponseWriter { return c.ResponseWriter }

func (c *countedResponse) begin(status int) {
	if c.status != 0 || status < 200 {
		return // the first status counts; 1xx announce one
	}
	c.status = status
	if strings.HasPrefix(c.Header().Get("Content-Type"), "text/event-stream") {
		c.stream = true
		c.metrics.streams.Inc()
		c.metrics.streamReaders.Inc()
	}
}

func (c *countedResponse) finish(method, route string, took time.Duration) {
	code := strconv.Itoa(c.status/100) + "xx"
	switch {
	case !c.returned && !c.stream:
		code = "cut"
	case c.status == 0:
		code = "2xx" // net/http sends 200 for a handler that writes nothing
	}
	c.metrics.requests.WithLabelValues(method, route, code).Inc()
	if c.stream {
		c.metrics.streamReaders.Dec()
		return
	}
	c.metrics.requestDuration.WithLabelValues(method, route).Observe(took.Seconds())
}
