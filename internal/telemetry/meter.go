package telemetry

import (
	"math"
	"strings"
	"time"

	"chorus/internal/chat"
	"chorus/internal/ledger"
)

// meter makes numbers of events. Only one goroutine may count; anybody may read.
type meter struct {
	tool func(string) bool

	inbound   *family
	lag       *family
	turns     *family
	models    *family
	tokens    *family
	cost      *series
	approvals *family
	tools     *family
	requests  *family
	answers   *family
	streams   *series
	readers   *series
	commits   *family
	missed    *series
	blind     *series

	input, cached float64 // tokens so far, for the ratio; only the counting goroutine has them
	ratio         *series

	// When something began whose end is to come. Each is bounded: what began in another
	// process, or long ago, is not measured.
	prompts  map[place]time.Time
	runs     map[string]time.Time
	asked    map[string]time.Time // a run has one request at a time
	question map[string]time.Time
}

// place is an event's.
type place struct {
	thread chat.ThreadID
	seq    int64
}

// maxOpen is how much of each kind may be waiting for its end.
const maxOpen = 10000

// The buckets. A turn takes from a second to an hour, a tool from a millisecond to ten minutes, a
// person from a second to a day, a commit from 0.1 ms to seconds.
var (
	turnBounds     = []float64{0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600, 1800, 3600}
	modelBounds    = []float64{0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20, 40, 80, 160, 320}
	toolBounds     = []float64{0.001, 0.005, 0.025, 0.1, 0.5, 1, 5, 10, 30, 60, 120, 600}
	approvalBounds = []float64{1, 5, 15, 60, 300, 900, 3600, 14400, 86400}
	lagBounds      = []float64{0.001, 0.005, 0.025, 0.1, 0.5, 1, 5, 30, 120, 600, 3600}
	httpBounds     = []float64{0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10}
	commitBounds   = []float64{0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5, 1, 5}
)

func newMeter(r *registry, tool func(string) bool) *meter {
	m := &meter{tool: tool, prompts: map[place]time.Time{}, runs: map[string]time.Time{}, asked: map[string]time.Time{}, question: map[string]time.Time{}}
	m.inbound = r.vec("chorus_inbound_messages_total", "What people and programs said to agents, by where they said it and what became of it.", "counter", "platform", "outcome")
	m.lag = r.histogram("chorus_inbound_lag_seconds", "From a prompt's arrival in the journal to the run that takes it.", lagBounds)
	m.turns = r.histogram("chorus_turn_duration_seconds", "Runs, from their start to their end, waits for approvals included.", turnBounds, "outcome")
	m.models = r.histogram("chorus_llm_request_duration_seconds", "Calls of a model, each attempt by itself.", modelBounds, "outcome")
	m.tokens = r.vec("chorus_llm_tokens_total", "Tokens as the providers counted them.", "counter", "type")
	m.cost = r.counter("chorus_llm_cost_usd_total", "What the runs that ended here cost, in US dollars.")
	m.ratio = r.vec("chorus_prompt_cache_hit_ratio", "Share of all input tokens so far that came from a provider's cache.", "gauge").with()
	m.ratio.set(math.NaN())
	m.approvals = r.histogram("chorus_approval_latency_seconds", "From a question to its answer, by a person or by its deadline.", approvalBounds)
	m.tools = r.histogram("chorus_tool_duration_seconds", "Calls of tools. Those of MCP servers are counted as mcp, unknown names as other.", toolBounds, "tool", "outcome")
	m.commits = r.histogram("chorus_db_commit_duration_seconds", "Commits to the journal, the wait for their turn included.", commitBounds, "outcome")
	m.requests = r.vec("chorus_http_requests_total", "Requests that were answered, by the pattern of their route.", "counter", "method", "route", "code")
	m.answers = r.histogram("chorus_http_request_duration_seconds", "Requests from their arrival to the end of their answer. Streams are not among them.", httpBounds, "method", "route")
	m.streams = r.counter("chorus_sse_streams_total", "Streams of events that were opened.")
	m.readers = r.vec("chorus_sse_readers", "Streams of events that are open.", "gauge").with()
	m.missed = r.counter("chorus_telemetry_gaps_total", "How often events came faster than they could be counted, so that some are missing here.")
	m.blind = r.counter("chorus_telemetry_scrape_errors_total", "Scrapes that could not read the books, and left out what stands in them.")
	for _, kind := range []string{"input", "output", "cache_read", "cache_write"} {
		m.tokens.with(kind)
	}
	return m
}

// count takes what one commit wrote.
func (m *meter) count(events []chat.Event) {
	refused := map[int64]bool{}
	for _, ev := range events {
		if body, ok := ev.Body.(chat.Refused); ok {
			refused[body.Seq] = true
		}
	}
	for _, ev := range events {
		m.one(ev, refused)
	}
}

func (m *meter) one(ev chat.Event, refused map[int64]bool) {
	switch body := ev.Body.(type) {
	case chat.Received:
		m.received(ev, body.Prompt, refused[ev.Seq])
	case chat.Steered:
		m.inbound.with(ev.Thread.Transport(), "steered").add(1)
		m.begin(ev)
	case chat.Refused:
		delete(m.prompts, place{ev.Thread, body.Seq})
	case chat.Took:
		for _, seq := range body.Seqs {
			at := place{ev.Thread, seq}
			if began, ok := m.prompts[at]; ok {
				m.lag.observe(between(began, ev.At))
				delete(m.prompts, at)
			}
		}
	case chat.RunStarted:
		open(m.runs, body.Run, ev.At)
	case chat.Asked:
		open(m.asked, ev.Run, ev.At)
	case chat.Said:
		m.spent(body.Usage)
		end(m.asked, ev.Run, ev.At, m.models, answered(body))
	case chat.Compacted:
		m.spent(body.Usage)
		end(m.asked, ev.Run, ev.At, m.models, "ok")
	case chat.ToolRan:
		m.tools.observe(float64(body.TookMS)/1e3, m.known(body.Name), ended(body))
	case chat.ApprovalAsked:
		open(m.question, body.ID, ev.At)
	case chat.ApprovalAnswered:
		end(m.question, body.ID, ev.At, m.approvals)
	case chat.RunEnded:
		m.cost.add(float64(body.Cost) / float64(dollar))
		delete(m.asked, body.Run)
		end(m.runs, body.Run, ev.At, m.turns, string(body.Reason))
	}
}

// dollar is one, as the ledger counts.
const dollar = ledger.Nanos(1_000_000_000)

func (m *meter) received(ev chat.Event, prompt, refused bool) {
	what := "heard"
	switch {
	case refused:
		what = "refused"
	case prompt:
		what = "accepted"
		m.begin(ev)
	}
	m.inbound.with(ev.Thread.Transport(), what).add(1)
}

func (m *meter) begin(ev chat.Event) {
	if len(m.prompts) >= maxOpen {
		clear(m.prompts) // people do not wait by the ten thousand: these were taken elsewhere
	}
	m.prompts[place{ev.Thread, ev.Seq}] = ev.At
}

func (m *meter) spent(u chat.Usage) {
	for kind, n := range map[string]int{"input": u.Input, "output": u.Output, "cache_read": u.CacheRead, "cache_write": u.CacheWrite} {
		m.tokens.with(kind).add(float64(n))
	}
	m.cached += float64(u.CacheRead)
	m.input += float64(u.Input + u.CacheRead + u.CacheWrite)
	if m.input > 0 {
		m.ratio.set(m.cached / m.input)
	}
}

// known is a tool's name as a label.
func (m *meter) known(name string) string {
	switch {
	case strings.HasPrefix(name, "mcp__"):
		return "mcp"
	case m.tool != nil && m.tool(name):
		return name
	}
	return "other"
}

// answered is how a call of a model ended, as a label.
func answered(s chat.Said) string {
	switch {
	case s.Error != nil:
		return "error"
	case s.Partial || s.Stop == chat.StopAborted:
		return "aborted"
	}
	return "ok"
}

// ended is how a call of a tool ended, as a label.
func ended(t chat.ToolRan) string {
	switch {
	case t.Outcome != chat.Ran && t.Outcome != "":
		return string(t.Outcome)
	case t.Failed:
		return "failed"
	}
	return "ok"
}

// open notes when something began.
func open(in map[string]time.Time, name string, at time.Time) {
	if len(in) >= maxOpen {
		clear(in) // the ends of these are not coming any more
	}
	in[name] = at
}

// end measures something whose beginning was seen.
func end(in map[string]time.Time, name string, at time.Time, f *family, labels ...string) {
	if began, ok := in[name]; ok {
		f.observe(between(began, at), labels...)
		delete(in, name)
	}
}

// between is never negative: clocks are set back.
func between(from, to time.Time) float64 { return max(0, to.Sub(from).Seconds()) }
