package telemetry

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

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

func TestEventsBecomeNumbers(t *testing.T) {
	t.Parallel()
	var b bus.Bus
	tel := New(Options{Bus: &b, Version: "1.2.3", Tool: func(name string) bool { return name == "bash" },
		Look: func(context.Context) (Standing, error) {
			return Standing{Queued: 3, Running: 2, Approvals: 1, Actors: 4, Abandoned: 5, Lost: 6}, nil
		}})
	for _, events := range story(time.Unix(1000, 0)) {
		b.Ring(thread, bus.Note{Events: events})
	}
	b.Ring(thread, bus.Note{Live: chat.Progress{Text: "nobody counts this"}})
	tel.Close()
	tel.Close()
	p, text := scrape(t, tel)
	for key, want := range map[string]float64{
		`chorus_inbound_messages_total{platform="web",outcome="accepted"}`:   1,
		`chorus_inbound_messages_total{platform="web",outcome="refused"}`:    1,
		`chorus_inbound_messages_total{platform="web",outcome="heard"}`:      1,
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
		`chorus_tool_duration_seconds_sum{tool="bash",outcome="ok"}`:         2,
		`chorus_tool_duration_seconds_count{tool="mcp",outcome="failed"}`:    1,
		`chorus_tool_duration_seconds_count{tool="other",outcome="invalid"}`: 1,
		`chorus_queue_depth`:                                                 3,
		`chorus_runs_active`:                                                 2,
		`chorus_approvals_pending`:                                           1,
		`chorus_actors`:                                                      4,
		`chorus_abandoned_waits`:                                             5,
		`chorus_lease_lost_total`:                                            6,
		`chorus_telemetry_gaps_total`:                                        0,
	} {
		if got, ok := p.samples[key]; !ok || got != want {
			t.Errorf("%s is %v, want %v", key, got, want)
		}
	}
	for _, word := range []string{"ada", "helper", "r1", "secret", "made-up", "weather"} {
		if strings.Contains(text, word) {
			t.Errorf("the numbers tell %q:\n%s", word, text)
		}
	}
	if !strings.Contains(text, `chorus_build_info{version="1.2.3",revision="`) || !(p.samples["go_goroutines"] > 0) {
		t.Errorf("the scrape:\n%s", text)
	}
}

// Whoever has not been told how something began does not guess.
func TestEndsWithoutABeginning(t *testing.T) {
	t.Parallel()
	tel := New(Options{})
	defer tel.Close()
	tel.meter.count([]chat.Event{{Thread: thread, Run: "r", Body: chat.RunEnded{Run: "r", Reason: chat.EndDone, Cost: 1}},
		{Thread: thread, Run: "r", Body: chat.Said{}}, {Thread: thread, Body: chat.ApprovalAnswered{ID: "a"}}, {Thread: thread, Body: chat.Took{Seqs: []int64{1}}}})
	p, text := scrape(t, tel)
	for key, value := range p.samples {
		if strings.HasSuffix(p.labels[key]["__name__"], "_count") && value > 0 {
			t.Errorf("%s %v", key, value)
		}
	}
	if !strings.Contains(text, "chorus_prompt_cache_hit_ratio NaN\n") {
		t.Error("a ratio of nothing")
	}
	for i := range 3 * maxOpen {
		tel.meter.count([]chat.Event{{Thread: thread, Seq: int64(i), Body: chat.Received{Prompt: true}},
			{Thread: thread, Body: chat.RunStarted{Run: fmt.Sprint(i)}}, {Thread: thread, Body: chat.ApprovalAsked{ID: fmt.Sprint(i)}}})
	}
	if m := tel.meter; len(m.prompts) > maxOpen || len(m.runs) > maxOpen || len(m.question) > maxOpen {
		t.Error("what is open grows without end")
	}
}

// Many scrapers are one look a second, and a look that fails leaves out what it would have said.
func TestLooksAreFew(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var looks atomic.Int64
		broken := false
		tel := New(Options{Look: func(ctx context.Context) (Standing, error) {
			looks.Add(1)
			if _, bounded := ctx.Deadline(); !bounded {
				t.Error("a look without an end")
			}
			if broken {
				return Standing{}, errors.New("no disk")
			}
			return Standing{Queued: 1}, nil
		}})
		defer tel.Close()
		for range 10 {
			scrape(t, tel)
		}
		if looks.Load() != 1 {
			t.Errorf("%d looks", looks.Load())
		}
		time.Sleep(time.Second) // the bubble's clock
		broken = true
		for range 10 {
			if p, _ := scrape(t, tel); len(p.samples) == 0 || p.samples["chorus_telemetry_scrape_errors_total"] != 1 {
				t.Error("a failed look is not counted")
			} else if _, told := p.samples["chorus_queue_depth"]; told {
				t.Error("an old number was told")
			}
		}
		if looks.Load() != 2 {
			t.Errorf("%d looks", looks.Load())
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
		p, _ := scrape(t, tel)
		during <- p.samples["chorus_sse_readers"]
	})
	inner.HandleFunc("GET /panic", func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
	type mark struct{}
	guard := func(next http.Handler) http.Handler { // copies requests and turns some away
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
		t.Errorf("%v readers while there was one", n)
	}
	server.Close() // what is being answered has ended
	p, text := scrape(t, tel)
	for key, want := range map[string]float64{
		`chorus_http_requests_total{method="GET",route="/api/things/{id}",code="2xx"}`:      2,
		`chorus_http_requests_total{method="GET",route="/api/things/{id}",code="4xx"}`:      1,
		`chorus_http_requests_total{method="GET",route="none",code="4xx"}`:                  2,
		`chorus_http_requests_total{method="GET",route="/events",code="2xx"}`:               1,
		`chorus_http_request_duration_seconds_count{method="GET",route="/api/things/{id}"}`: 3,
		`chorus_http_request_duration_seconds_count{method="GET",route="/panic"}`:           1,
		`chorus_http_requests_total{method="GET",route="/panic",code="cut"}`:                1,
		`chorus_sse_readers`:       0,
		`chorus_sse_streams_total`: 1,
	} {
		if got, ok := p.samples[key]; !ok || got != want {
			t.Errorf("%s is %v, want %v", key, got, want)
		}
	}
	if _, timed := p.samples[`chorus_http_request_duration_seconds_count{method="GET",route="/events"}`]; timed {
		t.Error("a stream was timed")
	}
	if strings.Contains(text, "nowhere") {
		t.Error("a path that a stranger chose is a label")
	}
	w := httptest.NewRecorder()
	tel.Handler().ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/metrics", nil))
	if w.Code != http.StatusMethodNotAllowed {
		t.Error(w.Code)
	}
	r := httptest.NewRequest("BREW", "/api/things/1", nil)
	tel.HTTP(inner).ServeHTTP(httptest.NewRecorder(), r)
	if _, text := scrape(t, tel); strings.Contains(text, "BREW") {
		t.Error("a method that a stranger chose is a label")
	}
}

// What nobody scrapes costs next to nothing.
func BenchmarkCount(b *testing.B) {
	tel := New(Options{Tool: func(string) bool { return true }})
	defer tel.Close()
	commits := story(time.Unix(1000, 0))
	b.ReportAllocs()
	for b.Loop() {
		for _, events := range commits {
			tel.meter.count(events)
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

// The guide explains every number that there is, and none that there is not.
func TestGuideExplainsTheNumbers(t *testing.T) {
	t.Parallel()
	guide, err := os.ReadFile("../../docs/guides/observability.md")
	if err != nil {
		t.Fatal(err)
	}
	tel := New(Options{})
	defer tel.Close()
	there := map[string]bool{}
	for _, f := range tel.reg.families {
		there[f.name] = true
		if strings.HasPrefix(f.name, "chorus_") && !bytes.Contains(guide, []byte("`"+f.name+"`")) {
			t.Errorf("%s is not explained", f.name)
		}
	}
	for _, name := range regexp.MustCompile("`(chorus_[a-z_]+)`").FindAllSubmatch(guide, -1) {
		if !there[string(name[1])] {
			t.Errorf("there is no %s", name[1])
		}
	}
}
