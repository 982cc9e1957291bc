package telemetry

import (
	"compress/gzip"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// collected is one request of spans, as a collector reads it.
type collected struct {
	ResourceSpans []struct {
		Resource   struct{ Attributes []attribute }
		ScopeSpans []struct {
			Scope struct{ Name, Version string }
			Spans []span
		}
	}
}

// collector is a small one on a socket. It answers as answer says and passes requests on.
type collector struct {
	*httptest.Server
	got     chan collected
	headers chan http.Header
}

func newCollector(t *testing.T, answer http.HandlerFunc) *collector {
	c := &collector{got: make(chan collected, 100), headers: make(chan http.Header, 100)}
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
		var in collected
		read := json.NewDecoder(body)
		read.DisallowUnknownFields()
		if err := read.Decode(&in); err != nil || r.Method != http.MethodPost || r.URL.Path != "/v1/traces" || r.Header.Get("Content-Type") != "application/json" {
			t.Errorf("%s %s %v: %v", r.Method, r.URL, r.Header, err)
		}
		c.headers <- r.Header
		if answer != nil {
			answer(w, r)
		}
		c.got <- in
	}))
	t.Cleanup(c.Close)
	return c
}

func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }

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

// wait takes a value, but not for ever.
func wait[T any](t *testing.T, from <-chan T) T {
	t.Helper()
	select {
	case v := <-from:
		return v
	case <-time.After(time.Minute):
		t.Fatal("nothing came")
		panic("unreachable")
	}
}

func export(t *testing.T, pairs ...string) *exporter {
	t.Helper()
	s := read(env(pairs...), "1.0", func(text string) { t.Error(text) })
	e := newExporter(s, "1.0", quiet())
	t.Cleanup(func() { e.close(t.Context()) })
	return e
}

func oneSpan(n int) span {
	at := time.Unix(1, 5)
	return newSpan("r", fmt.Sprint("part ", n), "chat some-model", clientSpan, at, at.Add(time.Second))
}

func TestSpansArrive(t *testing.T) {
	t.Parallel()
	c := newCollector(t, nil)
	e := export(t, "OTEL_EXPORTER_OTLP_ENDPOINT", c.URL+"/", "OTEL_EXPORTER_OTLP_HEADERS", "x-key=test%20key, other=b",
		"OTEL_EXPORTER_OTLP_COMPRESSION", "gzip", "OTEL_RESOURCE_ATTRIBUTES", "deployment.environment=test,service.name=hidden", "OTEL_SERVICE_NAME", "choir")
	for i := range 3 {
		e.put(oneSpan(i))
	}
	e.close(t.Context()) // flushes
	in, header := wait(t, c.got), wait(t, c.headers)
	if header.Get("X-Key") != "test key" || header.Get("Other") != "b" || header.Get("User-Agent") != "chorus/1.0" {
		t.Error(header)
	}
	if len(in.ResourceSpans) != 1 || len(in.ResourceSpans[0].ScopeSpans) != 1 || len(in.ResourceSpans[0].ScopeSpans[0].Spans) != 3 {
		t.Fatalf("%+v", in)
	}
	said := attributes(in.ResourceSpans[0].Resource.Attributes)
	if said["service.name"] != "choir" || said["deployment.environment"] != "test" || said["service.version"] != "1.0" {
		t.Error(said)
	}
	s := in.ResourceSpans[0].ScopeSpans[0].Spans[0]
	if s.Start != "1000000005" || s.End != "2000000005" || len(s.TraceID) != 32 || len(s.SpanID) != 16 || s.Parent != rootOf("r") || s.Kind != 3 {
		t.Errorf("%+v", s)
	}
	if e.sent.Load() != 3 || e.dropped.Load() != 0 {
		t.Error(e.sent.Load(), e.dropped.Load())
	}
}

func attributes(list []attribute) map[string]string {
	out := map[string]string{}
	for _, a := range list {
		switch {
		case a.Value.Str != nil:
			out[a.Key] = *a.Value.Str
		case a.Value.Int != nil:
			out[a.Key] = *a.Value.Int
		case a.Value.Float != nil:
			out[a.Key] = fmt.Sprint(*a.Value.Float)
		case a.Value.Array != nil:
			var texts []string
			for _, v := range a.Value.Array.Values {
				texts = append(texts, *v.Str)
			}
			out[a.Key] = strings.Join(texts, ",")
		}
	}
	return out
}

// A full batch goes at once, a small one after the delay.
func TestBatches(t *testing.T) {
	t.Parallel()
	c := newCollector(t, nil)
	e := export(t, "OTEL_EXPORTER_OTLP_ENDPOINT", c.URL, "OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "2", "OTEL_BSP_SCHEDULE_DELAY", "20")
	for i := range 3 {
		e.put(oneSpan(i))
	}
	for _, want := range []int{2, 1} {
		if got := len(wait(t, c.got).ResourceSpans[0].ScopeSpans[0].Spans); got != want {
			t.Errorf("%d spans, want %d", got, want)
		}
	}
}

// trip is a collector without a socket, for what takes time.
type trip func(*http.Request) (*http.Response, error)

func (f trip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func answer(code int, body string, headers ...string) *http.Response {
	w := httptest.NewRecorder()
	for i := 0; i < len(headers); i += 2 {
		w.Header().Set(headers[i], headers[i+1])
	}
	w.WriteHeader(code)
	_, _ = w.WriteString(body)
	return w.Result()
}

// What a collector can answer, what is tried again and when, and what is lost.
func TestAnswers(t *testing.T) {
	t.Parallel()
	refused := errors.New("connection refused")
	for name, c := range map[string]struct {
		answers []any // *http.Response or error, then 200 for ever
		sent    int64
		dropped int64
		tries   int
		after   time.Duration
	}{
		"well":                  {nil, 1, 0, 1, 0},
		"an answer of nonsense": {[]any{answer(200, "<html>")}, 1, 0, 1, 0},
		"no answer":             {[]any{answer(204, "")}, 1, 0, 1, 0},
		"not all wanted":        {[]any{answer(200, `{"partialSuccess":{"rejectedSpans":"1","errorMessage":"no"}}`)}, 0, 1, 1, 0},
		"impossible numbers":    {[]any{answer(200, `{"partialSuccess":{"rejectedSpans":-5}}`)}, 1, 0, 1, 0},
		"too many said":         {[]any{answer(200, `{"partialSuccess":{"rejectedSpans":500}}`)}, 0, 1, 1, 0},
		"busy, says when":       {[]any{answer(429, "", "Retry-After", "7")}, 1, 0, 2, 7 * time.Second},
		"busy, says nothing":    {[]any{answer(503, "")}, 1, 0, 2, time.Second},
		"busy, says nonsense":   {[]any{answer(503, "", "Retry-After", "soon")}, 1, 0, 2, time.Second},
		"busy for days":         {[]any{answer(429, "", "Retry-After", "999999")}, 1, 0, 2, longPause},
		"down for a while":      {[]any{refused, refused}, 1, 0, 3, 3 * time.Second},
		"down":                  {[]any{refused, refused, refused, refused, refused}, 0, 1, 5, 15 * time.Second},
		"not wanted":            {[]any{answer(400, "bad")}, 0, 1, 1, 0},
		"elsewhere":             {[]any{answer(307, "", "Location", "http://other.example/v1/traces")}, 0, 1, 1, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				e := newExporter(read(env("OTEL_TRACES_EXPORTER", "otlp", "OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "1"), "1.0", func(s string) { t.Error(s) }), "1.0", quiet())
				tries := 0
				e.client.Transport = trip(func(r *http.Request) (*http.Response, error) {
					tries++
					if r.URL.Host != "localhost:4318" {
						t.Error(r.URL)
					}
					if tries > len(c.answers) {
						return answer(200, "{}"), nil
					}
					if err, failed := c.answers[tries-1].(error); failed {
						return nil, err
					}
					return c.answers[tries-1].(*http.Response), nil
				})
				began := time.Now()
				e.put(oneSpan(1))
				for e.sent.Load()+e.dropped.Load() == 0 && time.Since(began) < time.Hour {
					time.Sleep(time.Millisecond) // the bubble's clock
				}
				took := time.Since(began).Round(100 * time.Millisecond)
				e.close(t.Context())
				if e.sent.Load() != c.sent || e.dropped.Load() != c.dropped || tries != c.tries || took != c.after {
					t.Errorf("sent %d, dropped %d, %d tries in %s", e.sent.Load(), e.dropped.Load(), tries, took)
				}
			})
		})
	}
}

// A collector that does not answer costs spans and never a run: putting returns at once,
// the queue is bounded, and the end is not waited for longer than allowed.
func TestSlowCollector(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e := newExporter(read(env("OTEL_TRACES_EXPORTER", "otlp", "OTEL_BSP_MAX_QUEUE_SIZE", "10", "OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "1"), "1.0", func(s string) { t.Error(s) }),
			"1.0", quiet())
		e.client.Transport = trip(func(r *http.Request) (*http.Response, error) {
			<-r.Context().Done()
			return nil, r.Context().Err()
		})
		began := time.Now()
		for i := range 100 {
			e.put(oneSpan(i))
		}
		if took := time.Since(began); took > 0 {
			t.Errorf("putting took %s", took)
		}
		synctest.Wait()
		if e.dropped.Load() < 89 {
			t.Errorf("%d dropped", e.dropped.Load())
		}
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		e.close(ctx)
		if took := time.Since(began); took > 3*time.Second || e.dropped.Load() != 100 {
			t.Errorf("the end took %s, %d dropped", took, e.dropped.Load())
		}
	})
}

// At the end there is one try and no pause.
func TestEndWithCollectorDown(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e := newExporter(read(env("OTEL_TRACES_EXPORTER", "otlp"), "1.0", func(s string) { t.Error(s) }), "1.0", quiet())
		e.client.Transport = trip(func(*http.Request) (*http.Response, error) { return nil, errors.New("connection refused") })
		e.put(oneSpan(1))
		began := time.Now()
		e.close(t.Context())
		if took := time.Since(began); took > 0 || e.dropped.Load() != 1 {
			t.Errorf("%s, %d dropped", took, e.dropped.Load())
		}
	})
}

// The log says once that it does not work, and once that it does again.
func TestTroubleIsSaidOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var lines strings.Builder
		log := slog.New(slog.NewTextHandler(writer(func(p []byte) {
			mu.Lock()
			defer mu.Unlock()
			lines.Write(p)
		}), nil))
		e := newExporter(read(env("OTEL_TRACES_EXPORTER", "otlp", "OTEL_EXPORTER_OTLP_HEADERS", "x=test-key", "OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "1"), "1.0", func(s string) { t.Error(s) }),
			"1.0", log)
		n := 0
		e.client.Transport = trip(func(*http.Request) (*http.Response, error) {
			if n++; n < 8 {
				return answer(401, "who are you"), nil
			}
			return answer(200, "{}"), nil
		})
		for i := range 10 {
			e.put(oneSpan(i))
		}
		synctest.Wait()
		e.close(t.Context())
		text := lines.String()
		if strings.Count(text, "event=export_failed") != 1 || strings.Count(text, "event=export_recovered") != 1 || strings.Count(text, "event=spans_dropped dropped=7 sent=3") != 1 {
			t.Error(text)
		}
		if strings.Contains(text, "test-key") {
			t.Error("the log shows a header")
		}
	})
}

type writer func([]byte)

func (w writer) Write(p []byte) (int, error) { w(p); return len(p), nil }

func TestSettings(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		env      []string
		endpoint string
		warns    string
	}{
		{nil, "", ""},
		{[]string{"OTEL_SERVICE_NAME", "x"}, "", ""},
		{[]string{"OTEL_EXPORTER_OTLP_ENDPOINT", "http://c:1"}, "http://c:1/v1/traces", ""},
		{[]string{"OTEL_EXPORTER_OTLP_ENDPOINT", "https://c/base/"}, "https://c/base/v1/traces", ""},
		{[]string{"OTEL_EXPORTER_OTLP_ENDPOINT", "http://c:1", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://d:2/x"}, "http://d:2/x", ""},
		{[]string{"OTEL_TRACES_EXPORTER", "otlp"}, "http://localhost:4318/v1/traces", ""},
		{[]string{"OTEL_TRACES_EXPORTER", "none", "OTEL_EXPORTER_OTLP_ENDPOINT", "http://c:1"}, "", ""},
		{[]string{"OTEL_TRACES_EXPORTER", "zipkin"}, "", "there are otlp and none"},
		{[]string{"OTEL_SDK_DISABLED", "TRUE", "OTEL_EXPORTER_OTLP_ENDPOINT", "http://c:1"}, "", ""},
		{[]string{"OTEL_EXPORTER_OTLP_ENDPOINT", "http://c:1", "OTEL_EXPORTER_OTLP_PROTOCOL", "http/json"}, "http://c:1/v1/traces", ""},
		{[]string{"OTEL_EXPORTER_OTLP_ENDPOINT", "http://c:1", "OTEL_EXPORTER_OTLP_PROTOCOL", "http/protobuf"}, "http://c:1/v1/traces", "sent as http/json"},
		{[]string{"OTEL_EXPORTER_OTLP_ENDPOINT", "http://c:1", "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "grpc"}, "", "not spoken here"},
		{[]string{"OTEL_EXPORTER_OTLP_ENDPOINT", "c:4317"}, "", "no http or https address"},
		{[]string{"OTEL_EXPORTER_OTLP_ENDPOINT", "http://c:1", "OTEL_EXPORTER_OTLP_HEADERS", "test-key"}, "http://c:1/v1/traces", "not name=value"},
		{[]string{"OTEL_EXPORTER_OTLP_ENDPOINT", "http://c:1", "OTEL_EXPORTER_OTLP_COMPRESSION", "zstd"}, "http://c:1/v1/traces", "gzip and none"},
		{[]string{"OTEL_EXPORTER_OTLP_ENDPOINT", "http://c:1", "OTEL_TRACES_SAMPLER", "dice"}, "http://c:1/v1/traces", "every trace is sent"},
	} {
		var warned []string
		s := read(env(c.env...), "1", func(text string) { warned = append(warned, text) })
		got := strings.Join(warned, "\n")
		if s.endpoint != c.endpoint || !strings.Contains(got, c.warns) || c.warns == "" && got != "" || strings.Contains(got, "test-key") {
			t.Errorf("%v: %q, warned %q", c.env, s.endpoint, got)
		}
	}
}

// Samplers choose by the trace alone, so that every process chooses the same.
func TestSamplers(t *testing.T) {
	t.Parallel()
	const many = 2000
	for _, c := range []struct {
		name, arg   string
		least, most int
	}{
		{"", "", many, many},
		{"always_on", "", many, many},
		{"parentbased_always_on", "", many, many},
		{"always_off", "", 0, 0},
		{"parentbased_always_off", "", 0, 0},
		{"traceidratio", "0", 0, 0},
		{"traceidratio", "1", many, many},
		{"traceidratio", "", many, many},
		{"traceidratio", "0.25", many * 20 / 100, many * 30 / 100},
		{"parentbased_traceidratio", "0.25", many * 20 / 100, many * 30 / 100},
	} {
		choose := sampler(c.name, c.arg, func(text string) { t.Error(text) })
		taken := 0
		for i := range many {
			if choose(traceOf(fmt.Sprint("run ", i))) {
				taken++
			}
		}
		if taken < c.least || taken > c.most {
			t.Errorf("%s %s: %d of %d", c.name, c.arg, taken, many)
		}
	}
	warned := ""
	if choose := sampler("traceidratio", "lots", func(text string) { warned = text }); !choose(traceOf("r")) || warned == "" {
		t.Error("a wrong ratio was swallowed")
	}
	id := traceOf("r")
	if hex.EncodeToString(id[:]) != newSpan("r", "", "n", 1, time.Time{}, time.Time{}).TraceID {
		t.Error("a run has two traces")
	}
}
