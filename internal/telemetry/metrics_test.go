package telemetry

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"chorus/internal/bus"
	"chorus/internal/chat"
)

const thread = chat.ThreadID("web:local/ada:one@helper")

// story is a run as the journal has it: one commit a line.
func story(at time.Time) [][]chat.Event {
	seq := int64(0)
	ev := func(after time.Duration, run string, body chat.Body) chat.Event {
		seq++
		return chat.Event{Thread: thread, Seq: seq, At: at.Add(after), Run: run, Body: body}
	}
	half := 0.5
	return [][]chat.Event{
		{ev(0, "", chat.Received{Prompt: true})},
		{ev(0, "", chat.Received{Prompt: true}), ev(0, "", chat.Refused{Seq: 2, Why: "full"})},
		{ev(0, "", chat.Received{})},
		{ev(time.Second, "r1", chat.RunStarted{Run: "r1", Model: "anthropic/some-model", Settings: chat.Settings{MaxTokens: 100, Temperature: &half, Stop: []string{"x"}}}),
			ev(time.Second, "r1", chat.Took{Run: "r1", Step: 1, Seqs: []int64{1}})},
		{ev(2*time.Second, "r1", chat.Asked{Step: 1, Attempt: 1, Model: "anthropic/some-model", Purpose: chat.ForTurn})},
		{ev(3*time.Second, "r1", chat.Said{Step: 1, Attempt: 1, Stop: chat.StopError, Error: &chat.Failure{Kind: "overloaded", Message: "test-key busy"}})},
		{ev(4*time.Second, "r1", chat.Asked{Step: 1, Attempt: 2, Model: "anthropic/some-model", Purpose: chat.ForTurn})},
		{ev(7*time.Second, "r1", chat.Said{Step: 1, Attempt: 2, Stop: chat.StopTools, Usage: chat.Usage{Input: 10, Output: 20, CacheRead: 60, CacheWrite: 30},
			Blocks: chat.Blocks{chat.Text{Text: "secret words"}}}),
			ev(7*time.Second, "r1", chat.ApprovalAsked{ID: "a1", Call: "c1", Name: "bash"})},
		{ev(27*time.Second, "", chat.ApprovalAnswered{ID: "a1", Call: "c1", OK: true})},
		{ev(28*time.Second, "r1", chat.ToolBegan{Call: "c1", Name: "bash"})},
		{ev(31*time.Second, "r1", chat.ToolRan{Call: "c1", Name: "bash", Outcome: chat.Ran, TookMS: 2000}),
			ev(31*time.Second, "r1", chat.ToolRan{Call: "c2", Name: "mcp__weather__now", Outcome: chat.Ran, Failed: true, TookMS: 10}),
			ev(31*time.Second, "r1", chat.ToolRan{Call: "c3", Name: "made-up", Outcome: chat.Invalid})},
		{ev(32*time.Second, "r1", chat.RunEnded{Run: "r1", Reason: chat.EndDone, Steps: 1, Cost: 1_500_000_000,
			Usage: chat.Usage{Input: 10, Output: 20, CacheRead: 60, CacheWrite: 30}})},
	}
}

func TestEventsBecomeMetrics(t *testing.T) {
	t.Parallel()
	var b bus.Bus
	tel := New(Options{Bus: &b, Version: "1.2.3", BuiltInTool: func(name string) bool { return name == "bash" },
		Snapshot: func(context.Context) (Snapshot, error) {
			return Snapshot{Queued: 3, Running: 2, Approvals: 1, Actors: 4, Abandoned: 5, Lost: 6}, nil
		}})
	for _, events := range story(time.Unix(1000, 0)) {
		b.Publish(thread, bus.Note{Events: events})
	}
	b.Publish(thread, bus.Note{Live: chat.Progress{Text: "not counted"}})
	tel.Close()
	tel.Close()
	samples, text := scrape(t, tel)
	for key, want := range map[string]float64{
		`chorus_inbound_messages_total{outcome="accepted",platform="web"}`:   1,
		`chorus_inbound_messages_total{outcome="refused",platform="web"}`:    1,
		`chorus_inbound_messages_total{outcome="heard",platform="web"}`:      1,
		`chorus_inbound_lag_seconds_sum`:                                     1,
		`chorus_turn_duration_seconds_sum{outcome="done"}`:                   31,
		`chorus_llm_request_duration_seconds_sum{outcome="ok"}`:              3,
		`chorus_llm_request_duration_seconds_count{outcome="error"}`:         1,
		`chorus_llm_tokens_total{type="input"}`:                              10,
		`chorus_llm_tokens_total{type="output"}`:                             20,
		`chorus_llm_tokens_total{type="cache_read"}`:                         60,
		`chorus_llm_tokens_total{type="cache_write"}`:                        30,
		`chorus_llm_cost_usd_total`:                                          1.5,
		`chorus_prompt_cache_hit_ratio`:                                      0.6,
		`chorus_approval_latency_seconds_sum`:                                20,
		`chorus_tool_duration_seconds_sum{outcome="ok",tool="bash"}`:         2,
		`chorus_tool_duration_seconds_count{outcome="failed",tool="mcp"}`:    1,
		`chorus_tool_duration_seconds_count{outcome="invalid",tool="other"}`: 1,
		`chorus_queue_depth`:                                                 3,
		`chorus_runs_active`:                                                 2,
		`chorus_approvals_pending`:                                           1,
		`chorus_actors`:                                                      4,
		`chorus_abandoned_waits`:                                             5,
		`chorus_lease_lost_total`:                                            6,
		`chorus_telemetry_gaps_total`:                                        0,
	} {
		if got, ok := samples[key]; !ok || got != want {
			t.Errorf("%s is %v, want %v", key, got, want)
		}
	}
	for key := range samples {
		for _, word := range []string{"ada", "helper", "r1", "secret", "made-up", "weather"} {
			if strings.Contains(key, word) {
				t.Errorf("%s shows %q", key, word)
			}
		}
	}
	if !strings.Contains(text, `,version="1.2.3"} 1`) || !(samples["go_goroutines"] > 0) {
		t.Errorf("the scrape:\n%s", text)
	}
}

// What was not seen to start is not measured, and what never ends does not pile up.
func TestEndsWithoutAStart(t *testing.T) {
	t.Parallel()
	tel := New(Options{})
	defer tel.Close()
	tel.metrics.count([]chat.Event{{Thread: thread, Run: "r", Body: chat.RunEnded{Run: "r", Reason: chat.EndDone, Cost: 1}},
		{Thread: thread, Run: "r", Body: chat.Said{}}, {Thread: thread, Body: chat.ApprovalAnswered{ID: "a"}}, {Thread: thread, Body: chat.Took{Seqs: []int64{1}}}})
	samples, text := scrape(t, tel)
	for key, value := range samples {
		if name, _, _ := strings.Cut(key, "{"); strings.HasPrefix(name, "chorus_") && strings.HasSuffix(name, "_count") && value > 0 {
			t.Errorf("%s %v", key, value)
		}
	}
	if !strings.Contains(text, "chorus_prompt_cache_hit_ratio NaN\n") {
		t.Error("a ratio without tokens")
	}
	for i := range 3 * maxOpen {
		tel.metrics.count([]chat.Event{{Thread: thread, Seq: int64(i), Body: chat.Received{Prompt: true}},
			{Thread: thread, Body: chat.RunStarted{Run: fmt.Sprint(i)}}, {Thread: thread, Body: chat.ApprovalAsked{ID: fmt.Sprint(i)}}})
	}
	if m := tel.metrics; len(m.prompts) > maxOpen || len(m.runs) > maxOpen || len(m.approvalsAsked) > maxOpen {
		t.Error("the maps of open things grow without bound")
	}
}

// Many scrapers cost one snapshot a second, and one that fails leaves its metrics out.
func TestSnapshotsAreShared(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var reads atomic.Int64
		broken := false
		tel := New(Options{Snapshot: func(ctx context.Context) (Snapshot, error) {
			reads.Add(1)
			if _, bounded := ctx.Deadline(); !bounded {
				t.Error("the read has no deadline")
			}
			if broken {
				return Snapshot{}, errors.New("no disk")
			}
			return Snapshot{Queued: 1}, nil
		}})
		defer tel.Close()
		for range 10 {
			scrape(t, tel)
		}
		if reads.Load() != 1 {
			t.Errorf("%d reads", reads.Load())
		}
		time.Sleep(time.Second) // the bubble's clock
		broken = true
		for range 10 {
			if samples, _ := scrape(t, tel); samples["chorus_telemetry_scrape_errors_total"] != 1 {
				t.Error("a failed read is not counted")
			} else if _, there := samples["chorus_queue_depth"]; there {
				t.Error("an old number was reported")
			}
		}
		if reads.Load() != 2 {
			t.Errorf("%d reads", reads.Load())
		}
	})
}

func TestRequestsAreCounted(t *testing.T) {
	t.Parallel()
	tel := New(Options{})
	defer tel.Close()
	during := make(chan float64, 1)
	inner := http.NewServeMux()
	inner.HandleFunc("GET /api/things/{id}", func(w http.ResponseWriter, r *http.Request) {
		if r.PathValue("id") == "7" {
			http.Error(w, "no", http.StatusNotFound)
		}
	})
	inner.HandleFunc("GET /events", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		if err := http.NewResponseController(w).Flush(); err != nil {
			t.Error(err)
		}
		samples, _ := scrape(t, tel)
		during <- samples["chorus_sse_readers"]
	})
	inner.HandleFunc("GET /panic", func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
	type mark struct{}
	guard := func(next http.Handler) http.Handler { // copies requests and rejects some
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/away" {
				w.WriteHeader(http.StatusUnauthorized)
				return
			}
			next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), mark{}, 1)))
		})
	}
	server := httptest.NewServer(tel.HTTP(guard(tel.HTTP(inner))))
	defer server.Close()
	for _, path := range []string{"/api/things/1", "/api/things/2", "/api/things/7", "/away", "/nowhere", "/events", "/panic"} {
		if res, err := server.Client().Get(server.URL + path); err == nil {
			_ = res.Body.Close()
		} else if path != "/panic" {
			t.Fatal(err)
		}
	}
	if n := <-during; n != 1 {
		t.Errorf("%v readers during a stream", n)
	}
	server.Close() // waits for the handlers
	samples, text := scrape(t, tel)
	for key, want := range map[string]float64{
		`chorus_http_requests_total{code="2xx",method="GET",route="/api/things/{id}"}`:      2,
		`chorus_http_requests_total{code="4xx",method="GET",route="/api/things/{id}"}`:      1,
		`chorus_http_requests_total{code="4xx",method="GET",route="none"}`:                  2,
		`chorus_http_requests_total{code="2xx",method="GET",route="/events"}`:               1,
		`chorus_http_request_duration_seconds_count{method="GET",route="/api/things/{id}"}`: 3,
		`chorus_http_request_duration_seconds_count{method="GET",route="/panic"}`:           1,
		`chorus_http_requests_total{code="cut",method="GET",route="/panic"}`:                1,
		`chorus_sse_readers`:       0,
		`chorus_sse_streams_total`: 1,
	} {
		if got, ok := samples[key]; !ok || got != want {
			t.Errorf("%s is %v, want %v", key, got, want)
		}
	}
	if _, timed := samples[`chorus_http_request_duration_seconds_count{method="GET",route="/events"}`]; timed {
		t.Error("a stream was timed")
	}
	if strings.Contains(text, "nowhere") {
		t.Error("a path that a client chose is a label")
	}
	w := httptest.NewRecorder()
	tel.Handler().ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/metrics", nil))
	if w.Code != http.StatusMethodNotAllowed {
		t.Error(w.Code)
	}
	r := httptest.NewRequest("BREW", "/api/things/1", nil)
	tel.HTTP(inner).ServeHTTP(httptest.NewRecorder(), r)
	if _, text := scrape(t, tel); strings.Contains(text, "BREW") {
		t.Error("a method that a client chose is a label")
	}
}

func BenchmarkCount(b *testing.B) {
	tel := New(Options{BuiltInTool: func(string) bool { return true }})
	defer tel.Close()
	commits := story(time.Unix(1000, 0))
	b.ReportAllocs()
	for b.Loop() {
		for _, events := range commits {
			tel.metrics.count(events)
		}
	}
}

func BenchmarkRequest(b *testing.B) {
	tel := New(Options{})
	defer tel.Close()
	h := tel.HTTP(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	b.ReportAllocs()
	for b.Loop() {
		h.ServeHTTP(httptest.NewRecorder(), r)
	}
}

// The guide explains every metric that there is, and none that there is not.
func TestGuideExplainsTheMetrics(t *testing.T) {
	t.Parallel()
	guide, err := os.ReadFile("../../docs/guides/observability.md")
	if err != nil {
		t.Fatal(err)
	}
	there := metricNames(t)
	for name := range there {
		if !bytes.Contains(guide, []byte("`"+name+"`")) {
			t.Errorf("%s is not explained", name)
		}
	}
	for _, name := range regexp.MustCompile("`(chorus_[a-z_]+)`").FindAllSubmatch(guide, -1) {
		if !there[string(name[1])] {
			t.Errorf("there is no %s", name[1])
		}
	}
}

// The dashboard asks for metrics that there are, with panels that a reader can tell apart.
func TestDashboardShowsTheMetrics(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../deploy/grafana/chorus.json")
	if err != nil {
		t.Fatal(err)
	}
	var dashboard struct {
		Panels []struct {
			ID          int
			Type, Title string
			Description string
			Targets     []struct{ Expr string }
		}
	}
	if err := json.Unmarshal(text, &dashboard); err != nil {
		t.Fatal(err)
	}
	there := metricNames(t)
	ids, titles := map[int]bool{}, map[string]bool{}
	for _, panel := range dashboard.Panels {
		if ids[panel.ID] || titles[panel.Title] {
			t.Errorf("%q: its number or its title is there twice", panel.Title)
		}
		ids[panel.ID], titles[panel.Title] = true, true
		if panel.Type == "row" {
			continue
		}
		if panel.Description == "" || len(panel.Targets) == 0 {
			t.Errorf("%q says or shows nothing", panel.Title)
		}
		for _, target := range panel.Targets {
			names := regexp.MustCompile(`chorus_[a-z_]+`).FindAllString(target.Expr, -1)
			if len(names) == 0 {
				t.Errorf("%q: %s names no metric", panel.Title, target.Expr)
			}
			for _, name := range names {
				base := strings.TrimSuffix(strings.TrimSuffix(name, "_bucket"), "_count")
				if !there[name] && !there[base] {
					t.Errorf("%q: there is no %s", panel.Title, name)
				}
			}
		}
	}
	if len(dashboard.Panels) < 10 {
		t.Errorf("only %d panels were read", len(dashboard.Panels))
	}
}

// metricNames are the metrics of ours.
func metricNames(t *testing.T) map[string]bool {
	t.Helper()
	tel := New(Options{})
	defer tel.Close()
	descs := make(chan *prometheus.Desc)
	go func() {
		defer close(descs)
		tel.registry.Describe(descs)
	}()
	there := map[string]bool{}
	for desc := range descs {
		if match := regexp.MustCompile(`fqName: "(chorus_\w+)"`).FindStringSubmatch(desc.String()); match != nil {
			there[match[1]] = true // the others are of the Go runtime or of the process
		}
	}
	if len(there) < 20 {
		t.Fatalf("only %d metrics were found", len(there))
	}
	return there
}

// scrape asks as Prometheus does without a preference, and gives the samples by name and labels.
func scrape(t testing.TB, tel *Telemetry) (samples map[string]float64, text string) {
	t.Helper()
	w := httptest.NewRecorder()
	tel.Handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	if w.Code != http.StatusOK || !strings.HasPrefix(w.Header().Get("Content-Type"), "text/plain; version=0.0.4; charset=utf-8") {
		t.Error(w.Code, w.Header())
	}
	text = w.Body.String()
	samples = map[string]float64{}
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		at := strings.LastIndexByte(line, ' ')
		value, err := strconv.ParseFloat(strings.TrimSpace(line[at+1:]), 64)
		if err != nil {
			t.Errorf("%q: %v", line, err)
		}
		samples[line[:at]] = value
	}
	return samples, text
}

// A scraper that asks for OpenMetrics gets it, and every name of ours is valid there.
func TestOpenMetrics(t *testing.T) {
	t.Parallel()
	tel := New(Options{})
	defer tel.Close()
	w, r := httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/metrics", nil)
	r.Header.Set("Accept", "application/openmetrics-text; version=1.0.0")
	tel.Handler().ServeHTTP(w, r)
	if !strings.HasPrefix(w.Header().Get("Content-Type"), "application/openmetrics-text") || !strings.HasSuffix(w.Body.String(), "# EOF\n") {
		t.Errorf("%v\n%s", w.Header(), w.Body)
	}
	if !strings.Contains(w.Body.String(), "\n# TYPE chorus_llm_cost_usd counter\n") {
		t.Error(w.Body.String())
	}
}

// Many count while many scrape, and nothing is lost.
func TestCountingFromManyGoroutines(t *testing.T) {
	t.Parallel()
	tel := New(Options{Snapshot: func(context.Context) (Snapshot, error) { return Snapshot{}, nil }})
	defer tel.Close()
	const workers, each = 8, 200
	var work sync.WaitGroup
	for range workers {
		work.Go(func() {
			for i := range each {
				tel.Committed(1000, nil)
				if i%100 == 0 {
					scrape(t, tel)
				}
			}
		})
	}
	work.Wait()
	if samples, text := scrape(t, tel); samples[`chorus_db_commit_duration_seconds_count{outcome="ok"}`] != workers*each {
		t.Error(text)
	}
}
