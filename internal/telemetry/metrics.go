package telemetry

import (
	"math"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"chorus/internal/chat"
	"chorus/internal/ledger"
)

// metrics turns events into numbers. Only one goroutine may call count; everything else is
// safe from any goroutine.
type metrics struct {
	builtInTool func(name string) bool // nil: no tool is

	inbound         *prometheus.CounterVec   // platform, outcome
	inboundLag      prometheus.Histogram     //
	turns           *prometheus.HistogramVec // outcome
	modelRequests   *prometheus.HistogramVec // outcome
	tokens          *prometheus.CounterVec   // type
	cost            prometheus.Counter
	cacheHitRatio   prometheus.Gauge
	approvals       prometheus.Histogram
	tools           *prometheus.HistogramVec // tool, outcome
	commits         *prometheus.HistogramVec // outcome
	requests        *prometheus.CounterVec   // method, route, code
	requestDuration *prometheus.HistogramVec // method, route
	streams         prometheus.Counter
	streamReaders   prometheus.Gauge
	gaps            prometheus.Counter
	scrapeErrors    prometheus.Counter

	input, cached float64 // tokens so far, for the ratio

	// When something started that has not ended. Each map is bounded by maxOpen: what
	// started in another process, or long ago, is not measured.
	prompts        map[eventKey]time.Time
	runs           map[string]time.Time // by run
	modelCalls     map[string]time.Time // by run, which has one request at a time
	approvalsAsked map[string]time.Time // by approval
}

// eventKey identifies an event.
type eventKey struct {
	thread chat.ThreadID
	seq    int64
}

// maxOpen is how many things of each kind may be waiting for their end.
const maxOpen = 10000

// newMetrics registers everything that is counted as it happens. The buckets follow from what
// is measured: a turn takes from a second to an hour, a tool from a millisecond to ten minutes,
// a person from a second to a day, a commit from 0.1 ms to seconds.
func newMetrics(reg prometheus.Registerer, builtInTool func(string) bool) *metrics {
	with := promauto.With(reg)
	counter := func(name, help string) prometheus.Counter {
		return with.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
	}
	counters := func(name, help string, labels ...string) *prometheus.CounterVec {
		return with.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	}
	gauge := func(name, help string) prometheus.Gauge {
		return with.NewGauge(prometheus.GaugeOpts{Name: name, Help: help})
	}
	histogram := func(name, help string, buckets ...float64) prometheus.Histogram {
		return with.NewHistogram(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets})
	}
	histograms := func(name, help string, labels []string, buckets ...float64) *prometheus.HistogramVec {
		return with.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets}, labels)
	}
	m := &metrics{
		builtInTool: builtInTool,
		inbound:     counters("chorus_inbound_messages_total", "Messages to agents, by platform and by what became of them.", "platform", "outcome"),
		inboundLag: histogram("chorus_inbound_lag_seconds", "From the arrival of a prompt in the journal to the run that takes it.",
			0.001, 0.005, 0.025, 0.1, 0.5, 1, 5, 30, 120, 600, 3600),
		turns: histograms("chorus_turn_duration_seconds", "Runs, from their start to their end, waits for approvals included.", []string{"outcome"},
			0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600, 1800, 3600),
		modelRequests: histograms("chorus_llm_request_duration_seconds", "Requests to a model, each attempt by itself.", []string{"outcome"},
			0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20, 40, 80, 160, 320),
		tokens:        counters("chorus_llm_tokens_total", "Tokens as the providers counted them.", "type"),
		cost:          counter("chorus_llm_cost_usd_total", "Cost of the runs that ended in this process, in US dollars."),
		cacheHitRatio: gauge("chorus_prompt_cache_hit_ratio", "Share of all input tokens so far that came from a provider's cache."),
		approvals: histogram("chorus_approval_latency_seconds", "From an approval request to its answer, by a person or by its deadline.",
			1, 5, 15, 60, 300, 900, 3600, 14400, 86400),
		tools: histograms("chorus_tool_duration_seconds", "Calls of tools. Those of MCP servers are counted as mcp, unknown names as other.", []string{"tool", "outcome"},
			0.001, 0.005, 0.025, 0.1, 0.5, 1, 5, 10, 30, 60, 120, 600),
		commits: histograms("chorus_db_commit_duration_seconds", "Commits to the journal, the wait for the write lock included.", []string{"outcome"},
			0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5, 1, 5),
		requests: counters("chorus_http_requests_total", "HTTP requests, by the pattern of their route.", "method", "route", "code"),
		requestDuration: histograms("chorus_http_request_duration_seconds", "HTTP requests from their arrival to the end of their response, streams excluded.",
			[]string{"method", "route"}, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10),
		streams:       counter("chorus_sse_streams_total", "Event streams that were opened."),
		streamReaders: gauge("chorus_sse_readers", "Event streams that are open."),
		gaps:          counter("chorus_telemetry_gaps_total", "How often events came faster than they could be counted, so that some are missing here."),
		scrapeErrors:  counter("chorus_telemetry_scrape_errors_total", "Scrapes that could not read the database and left out what comes from it."),

		prompts: map[eventKey]time.Time{}, runs: map[string]time.Time{}, modelCalls: map[string]time.Time{}, approvalsAsked: map[string]time.Time{},
	}
	m.cacheHitRatio.Set(math.NaN())
	for _, kind := range []string{"input", "output", "cache_read", "cache_write"} {
		m.tokens.WithLabelValues(kind) // 0 is a value too: rates need a first sample
	}
	return m
}

// count takes the events of one commit.
func (m *metrics) count(events []chat.Event) {
	refused := map[int64]bool{}
	for _, ev := range events {
		if body, ok := ev.Body.(chat.Refused); ok {
			refused[body.Seq] = true
		}
	}
	for _, ev := range events {
		m.event(ev, refused)
	}
}

func (m *metrics) event(ev chat.Event, refused map[int64]bool) {
	switch body := ev.Body.(type) {
	case chat.Received:
		m.received(ev, body.Prompt, refused[ev.Seq])
	case chat.Steered:
		m.inbound.WithLabelValues(platform(ev.Thread), "steered").Inc()
		m.waiting(ev)
	case chat.Refused:
		delete(m.prompts, eventKey{ev.Thread, body.Seq})
	case chat.Took:
		for _, seq := range body.Seqs {
			finish(m.prompts, eventKey{ev.Thread, seq}, ev.At, m.inboundLag)
		}
	case chat.RunStarted:
		start(m.runs, body.Run, ev.At)
	case chat.Asked:
		start(m.modelCalls, ev.Run, ev.At)
	case chat.Said:
		m.used(body.Usage)
		finish(m.modelCalls, ev.Run, ev.At, m.modelRequests.WithLabelValues(modelOutcome(body)))
	case chat.Compacted:
		m.used(body.Usage)
		finish(m.modelCalls, ev.Run, ev.At, m.modelRequests.WithLabelValues("ok"))
	case chat.ToolRan:
		m.tools.WithLabelValues(m.toolLabel(body.Name), toolOutcome(body)).Observe(float64(body.TookMS) / 1e3)
	case chat.ApprovalAsked:
		start(m.approvalsAsked, body.ID, ev.At)
	case chat.ApprovalAnswered:
		finish(m.approvalsAsked, body.ID, ev.At, m.approvals)
	case chat.RunEnded:
		m.cost.Add(max(0, float64(body.Cost)/float64(dollar)))
		delete(m.modelCalls, body.Run)
		finish(m.runs, body.Run, ev.At, m.turns.WithLabelValues(string(body.Reason)))
	}
}

// dollar is one US dollar in the unit of the ledger.
const dollar = ledger.Nanos(1_000_000_000)

func (m *metrics) received(ev chat.Event, prompt, refused bool) {
	outcome := "heard"
	switch {
	case refused:
		outcome = "refused"
	case prompt:
		outcome = "accepted"
		m.waiting(ev)
	}
	m.inbound.WithLabelValues(platform(ev.Thread), outcome).Inc()
}

// waiting notes a prompt that waits for its run.
func (m *metrics) waiting(ev chat.Event) { start(m.prompts, eventKey{ev.Thread, ev.Seq}, ev.At) }

func (m *metrics) used(u chat.Usage) {
	for kind, n := range map[string]int{"input": u.Input, "output": u.Output, "cache_read": u.CacheRead, "cache_write": u.CacheWrite} {
		m.tokens.WithLabelValues(kind).Add(float64(max(0, n))) // a counter panics when it is lowered
	}
	m.cached += float64(u.CacheRead)
	m.input += float64(u.Input + u.CacheRead + u.CacheWrite)
	if m.input > 0 {
		m.cacheHitRatio.Set(m.cached / m.input)
	}
}

// platform is a thread's transport as a label. The library panics on a label that is not UTF-8.
func platform(thread chat.ThreadID) string { return strings.ToValidUTF8(thread.Transport(), "�") }

// toolLabel is a tool's name as a label. Models and MCP servers choose names freely, so
// only those of built-in tools are kept.
func (m *metrics) toolLabel(name string) string {
	switch {
	case strings.HasPrefix(name, "mcp__"):
		return "mcp"
	case m.builtInTool != nil && m.builtInTool(name):
		return name
	}
	return "other"
}

// modelOutcome is how a request to a model ended, as a label.
func modelOutcome(s chat.Said) string {
	switch {
	case s.Error != nil:
		return "error"
	case s.Partial || s.Stop == chat.StopAborted:
		return "aborted"
	}
	return "ok"
}

// toolOutcome is how a call of a tool ended, as a label.
func toolOutcome(t chat.ToolRan) string {
	switch {
	case t.Outcome != chat.Ran && t.Outcome != "":
		return string(t.Outcome)
	case !t.Succeeded():
		return "failed"
	}
	return "ok"
}

// start notes when something started.
func start[K comparable](open map[K]time.Time, key K, at time.Time) {
	if len(open) >= maxOpen {
		clear(open) // they ended in another process
	}
	open[key] = at
}

// finish measures something if its start was seen.
func finish[K comparable](open map[K]time.Time, key K, at time.Time, to prometheus.Observer) {
	if from, ok := open[key]; ok {
		to.Observe(seconds(from, at))
		delete(open, key)
	}
}

// seconds is never negative: clocks are set back.
func seconds(from, to time.Time) float64 { return max(0, to.Sub(from).Seconds()) }
