package telemetry

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	collectorpb "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"go.opentelemetry.io/otel/trace"
)

// The tests of this file set variables of the process, which the SDK reads, and so do not run in parallel.

// collector receives OTLP over HTTP on a socket of this machine and answers as answer says.
type collector struct {
	*httptest.Server
	mu       sync.Mutex
	requests []*collectorpb.ExportTraceServiceRequest
	headers  []http.Header
}

func newCollector(t *testing.T, answer http.HandlerFunc) *collector {
	c := &collector{}
	c.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body := io.Reader(r.Body)
		if r.Header.Get("Content-Encoding") == "gzip" {
			z, err := gzip.NewReader(r.Body)
			if err != nil {
				t.Error(err)
				return
			}
			body = z
		}
		data, err := io.ReadAll(body)
		request := &collectorpb.ExportTraceServiceRequest{}
		if err == nil {
			err = proto.Unmarshal(data, request)
		}
		if err != nil || r.Method != http.MethodPost || r.URL.Path != "/v1/traces" || r.Header.Get("Content-Type") != "application/x-protobuf" {
			t.Errorf("%s %s %v: %v", r.Method, r.URL, r.Header, err)
		}
		c.mu.Lock()
		c.requests, c.headers = append(c.requests, request), append(c.headers, r.Header)
		c.mu.Unlock()
		if answer != nil {
			answer(w, r)
		}
	}))
	t.Cleanup(c.Close)
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", c.URL+"/")
	return c
}

// spans are all that arrived, in the order of their arrival.
func (c *collector) spans() (out []*tracepb.Span) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, request := range c.requests {
		for _, resource := range request.ResourceSpans {
			for _, scope := range resource.ScopeSpans {
				out = append(out, scope.Spans...)
			}
		}
	}
	return out
}

func env(pairs ...string) func(string) string {
	return func(name string) string {
		for i := 0; i < len(pairs); i += 2 {
			if pairs[i] == name {
				return pairs[i+1]
			}
		}
		return ""
	}
}

// logBuffer is a log that tests can read while others write.
type logBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *logBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *logBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// startExport makes an export to the collector of the environment, and the log it writes.
func startExport(t *testing.T, c *collector) (*traceExport, *logBuffer) {
	t.Helper()
	log := &logBuffer{}
	e, err := newTraceExport(c.URL+"/v1/traces", "1.0", slog.New(slog.NewTextHandler(log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.close(t.Context()) })
	return e, log
}

// put makes a span of one second.
func (e *traceExport) put(run, name string) {
	tr := &tracer{spans: e.tracer, ended: &e.ended}
	at := time.Unix(1, 5)
	tr.start(context.Background(), part{run, name}, "chat some-model", trace.SpanKindClient, at).end(at.Add(time.Second))
}

func attributes(list []*commonpb.KeyValue) map[string]string {
	out := map[string]string{}
	for _, a := range list {
		switch v := a.Value.Value.(type) {
		case *commonpb.AnyValue_StringValue:
			out[a.Key] = v.StringValue
		case *commonpb.AnyValue_IntValue:
			out[a.Key] = fmt.Sprint(v.IntValue)
		case *commonpb.AnyValue_DoubleValue:
			out[a.Key] = fmt.Sprint(v.DoubleValue)
		case *commonpb.AnyValue_ArrayValue:
			var texts []string
			for _, v := range v.ArrayValue.Values {
				texts = append(texts, v.GetStringValue())
			}
			out[a.Key] = strings.Join(texts, ",")
		}
	}
	return out
}

// The variables of the environment reach the collector as OpenTelemetry defines them.
func TestSpansArrive(t *testing.T) {
	c := newCollector(t, nil)
	t.Setenv("OTEL_EXPORTER_OTLP_HEADERS", "x-key=test%20key, other=b")
	t.Setenv("OTEL_EXPORTER_OTLP_COMPRESSION", "gzip")
	t.Setenv("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment=test,service.name=hidden")
	t.Setenv("OTEL_SERVICE_NAME", "choir")
	e, log := startExport(t, c)
	for i := range 3 {
		e.put("r", fmt.Sprint("part ", i))
	}
	e.close(t.Context()) // flushes
	spans := c.spans()
	if len(c.requests) != 1 || len(spans) != 3 {
		t.Fatalf("%d requests, %d spans", len(c.requests), len(spans))
	}
	if h := c.headers[0]; h.Get("X-Key") != "test key" || h.Get("Other") != "b" || h.Get("Content-Encoding") != "gzip" {
		t.Error(h)
	}
	resource := attributes(c.requests[0].ResourceSpans[0].Resource.Attributes)
	if resource["service.name"] != "choir" || resource["deployment.environment"] != "test" || resource["service.version"] != "1.0" {
		t.Error(resource)
	}
	id := traceID("r")
	if s := spans[0]; s.StartTimeUnixNano != 1000000005 || s.EndTimeUnixNano != 2000000005 || !bytes.Equal(s.TraceId, id[:]) || s.Kind != tracepb.Span_SPAN_KIND_CLIENT {
		t.Error(s)
	}
	if text := log.String(); text != "" || e.exporter.sent.Load() != 3 {
		t.Error(text, e.exporter.sent.Load())
	}
}

// A full batch is sent at once, a small one after the delay.
func TestBatches(t *testing.T) {
	sizes := make(chan int, 10)
	var c *collector
	c = newCollector(t, func(http.ResponseWriter, *http.Request) { sizes <- len(c.spans()) })
	t.Setenv("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "2")
	t.Setenv("OTEL_BSP_SCHEDULE_DELAY", "20")
	e, _ := startExport(t, c)
	for i := range 3 {
		e.put("r", fmt.Sprint(i))
	}
	for _, want := range []int{2, 3} {
		select {
		case got := <-sizes:
			if got != want {
				t.Errorf("%d spans have arrived, want %d", got, want)
			}
		case <-time.After(time.Minute):
			t.Fatal("nothing arrived")
		}
	}
}

// What a collector can answer, and what the log says about it.
func TestAnswers(t *testing.T) {
	partial := func(rejected int64) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			data, err := proto.Marshal(&collectorpb.ExportTraceServiceResponse{PartialSuccess: &collectorpb.ExportTracePartialSuccess{RejectedSpans: rejected, ErrorMessage: "too (many)"}})
			if err != nil {
				t.Error(err)
			}
			w.Header().Set("Content-Type", "application/x-protobuf")
			_, _ = w.Write(data)
		}
	}
	status := func(code int) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "who are you", code) }
	}
	for _, c := range []struct {
		name   string
		answer http.HandlerFunc
		sent   int64
		log    string // the event, "" is none
	}{
		{"ok", nil, 2, ""},
		{"no content", status(http.StatusNoContent), 2, ""},
		{"partly rejected", partial(1), 1, "event=spans_rejected spans=1"},
		{"a warning", partial(0), 2, ""},
		{"impossible number", partial(-5), 2, ""},
		{"more than were sent", partial(500), 0, "event=spans_rejected spans=500"},
		{"refused", status(http.StatusBadRequest), 0, "event=export_failed"},
		{"unauthorized", status(http.StatusUnauthorized), 0, "event=export_failed"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Setenv("OTEL_EXPORTER_OTLP_HEADERS", "x-key=test-key")
			e, log := startExport(t, newCollector(t, c.answer))
			e.put("r", "1")
			e.put("r", "2")
			e.close(t.Context())
			text := log.String()
			if sent := e.exporter.sent.Load(); sent != c.sent || c.log == "" && text != "" || !strings.Contains(text, c.log) || strings.Contains(text, "test-key") {
				t.Errorf("%d sent; the log:\n%s", sent, text)
			}
			if dropped := 2 - c.sent; dropped > 0 && !strings.Contains(text, fmt.Sprintf("event=spans_dropped dropped=%d sent=%d", dropped, c.sent)) {
				t.Errorf("the log:\n%s", text)
			}
		})
	}
}

// A collector that does not answer costs spans and never a run: making spans returns at once, the
// queue is bounded, and closing takes no longer than it may.
func TestSlowCollector(t *testing.T) {
	release := make(chan struct{})
	c := newCollector(t, func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-release:
		case <-r.Context().Done():
		}
	})
	defer close(release)
	t.Setenv("OTEL_BSP_MAX_QUEUE_SIZE", "10")
	t.Setenv("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "1")
	e, log := startExport(t, c)
	const spans = 100
	for i := range spans {
		e.put("r", fmt.Sprint(i))
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	done := make(chan struct{})
	go func() {
		defer close(done)
		e.close(ctx)
	}()
	select {
	case <-done:
	case <-time.After(20 * time.Second): // the exporter's own limit for a request is ten, for a batch thirty
		t.Fatal("close does not end")
	}
	if text := log.String(); !strings.Contains(text, "event=spans_dropped dropped=100 sent=0") {
		t.Error(text)
	}
}

// The log says once that exports fail, and once that they work again.
func TestFailureIsLoggedOnce(t *testing.T) {
	var mu sync.Mutex
	n := 0
	c := newCollector(t, func(w http.ResponseWriter, _ *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		if n++; n < 8 {
			http.Error(w, "who are you", http.StatusUnauthorized)
		}
	})
	t.Setenv("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "1")
	e, log := startExport(t, c)
	for i := range 10 {
		e.put("r", fmt.Sprint(i))
	}
	e.close(t.Context())
	text := log.String()
	for _, want := range []string{"event=export_failed", "event=export_recovered", "event=spans_dropped dropped=7 sent=3"} {
		if strings.Count(text, want) != 1 {
			t.Errorf("%s:\n%s", want, text)
		}
	}
}

func TestEndpoint(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		env      []string
		endpoint string // "": none are wanted
		problem  string
	}{
		{nil, "", ""},
		{[]string{"OTEL_SERVICE_NAME", "x"}, "", ""},
		{[]string{"OTEL_EXPORTER_OTLP_ENDPOINT", "http://c:1"}, "http://c:1/v1/traces", ""},
		{[]string{"OTEL_EXPORTER_OTLP_ENDPOINT", "https://c/base/"}, "https://c/base/v1/traces", ""},
		{[]string{"OTEL_EXPORTER_OTLP_ENDPOINT", "http://c:1", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://d:2/x"}, "http://d:2/x", ""},
		{[]string{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://d:2"}, "http://d:2/", ""},
		{[]string{"OTEL_TRACES_EXPORTER", "otlp"}, "http://localhost:4318/v1/traces", ""},
		{[]string{"OTEL_TRACES_EXPORTER", "none", "OTEL_EXPORTER_OTLP_ENDPOINT", "http://c:1"}, "", ""},
		{[]string{"OTEL_TRACES_EXPORTER", "zipkin"}, "", "it may be otlp or none"},
		{[]string{"OTEL_SDK_DISABLED", "TRUE", "OTEL_EXPORTER_OTLP_ENDPOINT", "http://c:1"}, "", ""},
		{[]string{"OTEL_EXPORTER_OTLP_ENDPOINT", "http://c:1", "OTEL_EXPORTER_OTLP_PROTOCOL", "http/json"}, "http://c:1/v1/traces", ""},
		{[]string{"OTEL_EXPORTER_OTLP_ENDPOINT", "http://c:1", "OTEL_EXPORTER_OTLP_PROTOCOL", "http/protobuf"}, "http://c:1/v1/traces", ""},
		{[]string{"OTEL_EXPORTER_OTLP_ENDPOINT", "http://c:1", "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "grpc"}, "", "set http/protobuf or http/json"},
		{[]string{"OTEL_EXPORTER_OTLP_ENDPOINT", "c:4317"}, "", "not an http or https address"},
	} {
		if !wantsTraces(env(c.env...)) {
			if c.endpoint != "" || c.problem != "" {
				t.Errorf("%v: not wanted", c.env)
			}
			continue
		}
		got, err := tracesEndpoint(env(c.env...))
		if got != c.endpoint || (err == nil) != (c.problem == "") || err != nil && !strings.Contains(err.Error(), c.problem) {
			t.Errorf("%v: %q, %v", c.env, got, err)
		}
	}
}

// What the SDK does not understand is in the log, without values that may be secret.
func TestSettingsThatAreNotUnderstood(t *testing.T) {
	c := newCollector(t, nil)
	t.Setenv("OTEL_EXPORTER_OTLP_HEADERS", "test-key")
	t.Setenv("OTEL_TRACES_SAMPLER", "dice")
	e, log := startExport(t, c)
	e.put("r", "1")
	e.close(t.Context())
	if text := log.String(); strings.Count(text, "event=otel_settings") != 2 || strings.Contains(text, "test-key") || len(c.spans()) != 1 {
		t.Errorf("%d spans; the log:\n%s", len(c.spans()), text)
	}
}
