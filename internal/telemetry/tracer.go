package telemetry

import (
	"cmp"
	"context"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"chorus/internal/chat"
	"chorus/internal/model/catalog"
)

// tracer makes spans from events, after the fact and with the times of the journal. Only one
// goroutine may use it. What people, models and tools said is not in them.
type tracer struct {
	runs     map[string]*tracedRun
	spans    trace.Tracer
	ended    *atomic.Int64                       // sampled spans that have ended
	runStart func(chat.Event) (chat.Event, bool) // finds the start of a run that another process started
}

// tracedRun is a run that has not ended.
type tracedRun struct {
	id      string
	thread  chat.ThreadID
	start   chat.RunStarted
	span    span // of the whole run
	asked   chat.Asked
	askedAt time.Time // of the request that has no answer yet; zero: there is none
	tools   map[string]time.Time
}

// span is an unfinished span.
type span struct {
	trace.Span
	from  time.Time
	ended *atomic.Int64
}

// fail marks a span as failed with a kind of error.
func (s span) fail(kind string) {
	s.SetAttributes(attribute.String("error.type", kind))
	s.SetStatus(codes.Error, kind)
}

// end ends a span, not before its start: clocks are set back.
func (s span) end(to time.Time) {
	if to.Before(s.from) {
		to = s.from
	}
	if s.IsRecording() {
		s.ended.Add(1)
	}
	s.End(trace.WithTimestamp(to))
}

// maxTraced is how many runs may be in progress; a process has far fewer.
const maxTraced = 10000

func (t *tracer) event(ev chat.Event) {
	if ev.Run == "" {
		return
	}
	r := t.run(ev)
	switch body := ev.Body.(type) {
	case chat.Asked:
		if !r.askedAt.IsZero() { // the process that asked died before the answer
			s := t.request(r)
			s.fail("lost")
			s.end(ev.At)
		}
		r.asked, r.askedAt = body, ev.At
	case chat.Said:
		t.answered(r, ev, body)
	case chat.Compacted:
		if !r.askedAt.IsZero() {
			s := t.request(r)
			s.SetAttributes(usage(body.Usage)...)
			s.end(ev.At)
			r.askedAt = time.Time{}
		}
	case chat.ToolBegan:
		r.tools[body.Call] = ev.At
	case chat.Deferred:
		r.tools[body.Call] = ev.At
	case chat.ToolRan:
		t.tool(r, ev, body)
		delete(r.tools, body.Call)
	case chat.RunEnded:
		r.end(ev, body)
		delete(t.runs, ev.Run)
	}
}

// run finds the run of an event, or starts its span. The span of the run is started first and ended last, so
// that the SDK's sampler decides once for all of its parts.
func (t *tracer) run(ev chat.Event) *tracedRun {
	r := t.runs[ev.Run]
	if r != nil {
		return r
	}
	r = &tracedRun{id: ev.Run, thread: ev.Thread, tools: map[string]time.Time{}}
	at := ev.At
	body, ok := ev.Body.(chat.RunStarted)
	if !ok && t.runStart != nil {
		if first, found := t.runStart(ev); found {
			at = first.At
			body, _ = first.Body.(chat.RunStarted)
		}
	}
	r.start = body
	r.span = t.start(context.Background(), part{run: ev.Run}, "invoke_agent "+agentOf(ev.Thread), trace.SpanKindInternal, at)
	if len(t.runs) >= maxTraced {
		clear(t.runs) // their ends were lost
	}
	t.runs[ev.Run] = r
	return r
}

func (t *tracer) start(ctx context.Context, p part, name string, kind trace.SpanKind, from time.Time) span {
	_, s := t.spans.Start(context.WithValue(ctx, partKey{}, p), name, trace.WithSpanKind(kind), trace.WithTimestamp(from))
	return span{s, from, t.ended}
}

// child starts the span of a part of a run.
func (t *tracer) child(r *tracedRun, name, title string, kind trace.SpanKind, from time.Time) span {
	return t.start(trace.ContextWithSpan(context.Background(), r.span.Span), part{r.id, name}, title, kind, from)
}

// about returns the attributes that every span of a run has.
func (r *tracedRun) about(operation string) []attribute.KeyValue {
	return []attribute.KeyValue{attribute.String("gen_ai.operation.name", operation), attribute.String("gen_ai.conversation.id", string(r.thread)),
		attribute.String("gen_ai.agent.name", agentOf(r.thread))}
}

// defaultAgent answers in threads that name none.
const defaultAgent = "chorus"

func agentOf(thread chat.ThreadID) string {
	return cmp.Or(thread.Agent(), defaultAgent)
}

// request starts the span of the request to a model that is open.
func (t *tracer) request(r *tracedRun) span {
	provider, name, ok := strings.Cut(r.asked.Model, "/")
	if !ok {
		provider, name = "", r.asked.Model
	}
	s := t.child(r, "chat "+strconv.Itoa(r.asked.Step)+"."+strconv.Itoa(r.asked.Attempt)+" "+string(r.asked.Purpose), "chat "+name, trace.SpanKindClient, r.askedAt)
	s.SetAttributes(r.about("chat")...)
	s.SetAttributes(attribute.String("gen_ai.provider.name", catalog.TelemetryName(provider)), attribute.String("gen_ai.request.model", name),
		attribute.Int("chorus.step", r.asked.Step), attribute.Int("chorus.attempt", r.asked.Attempt), attribute.String("chorus.purpose", string(r.asked.Purpose)))
	set := r.start.Settings
	if set.MaxTokens > 0 {
		s.SetAttributes(attribute.Int("gen_ai.request.max_tokens", set.MaxTokens))
	}
	if set.Temperature != nil {
		s.SetAttributes(attribute.Float64("gen_ai.request.temperature", *set.Temperature))
	}
	if set.TopP != nil {
		s.SetAttributes(attribute.Float64("gen_ai.request.top_p", *set.TopP))
	}
	if len(set.Stop) > 0 {
		s.SetAttributes(attribute.StringSlice("gen_ai.request.stop_sequences", set.Stop))
	}
	return s
}

func (t *tracer) answered(r *tracedRun, ev chat.Event, body chat.Said) {
	if r.askedAt.IsZero() { // asked by a process that died before this one subscribed
		r.asked, r.askedAt = chat.Asked{Step: body.Step, Attempt: body.Attempt, Model: r.start.Model, Purpose: chat.ForTurn}, ev.At
	}
	s := t.request(r)
	r.askedAt = time.Time{}
	s.SetAttributes(usage(body.Usage)...)
	if body.Stop != "" {
		s.SetAttributes(attribute.StringSlice("gen_ai.response.finish_reasons", []string{finishReason(body.Stop)}))
	}
	if body.Error != nil {
		s.fail(body.Error.Kind)
	}
	s.end(ev.At)
}

// tool makes the span of a call that has its result. Its duration is the tool's own; the
// result may have been committed a little later, together with something else.
func (t *tracer) tool(r *tracedRun, ev chat.Event, body chat.ToolRan) {
	took := time.Duration(body.TookMS) * time.Millisecond
	from, known := r.tools[body.Call]
	if !known {
		from = ev.At.Add(-took)
	}
	s := t.child(r, "tool "+body.Call, "execute_tool "+body.Name, trace.SpanKindInternal, from)
	s.SetAttributes(r.about("execute_tool")...)
	s.SetAttributes(attribute.String("gen_ai.tool.name", body.Name), attribute.String("gen_ai.tool.type", "function"),
		attribute.String("gen_ai.tool.call.id", body.Call), attribute.String("chorus.tool.outcome", string(body.Outcome)))
	if outcome := toolOutcome(body); outcome != "ok" {
		s.fail(outcome)
	}
	s.end(from.Add(took))
}

// end ends the span of the run.
func (r *tracedRun) end(ev chat.Event, body chat.RunEnded) {
	s := r.span
	provider, model, _ := strings.Cut(r.start.Model, "/")
	s.SetAttributes(r.about("invoke_agent")...)
	s.SetAttributes(attribute.String("gen_ai.agent.id", agentOf(r.thread)), attribute.String("chorus.run.id", ev.Run), attribute.String("chorus.run.outcome", string(body.Reason)),
		attribute.Int("chorus.run.steps", body.Steps), attribute.Float64("chorus.run.cost_usd", float64(body.Cost)/float64(dollar)))
	if model != "" {
		s.SetAttributes(attribute.String("gen_ai.provider.name", catalog.TelemetryName(provider)), attribute.String("gen_ai.request.model", model))
	}
	s.SetAttributes(usage(body.Usage)...)
	switch {
	case body.Error != nil:
		s.fail(body.Error.Kind)
	case body.Reason != chat.EndDone:
		s.fail(string(body.Reason))
	}
	s.end(ev.At)
}

// usage counts as the conventions do: what came from a cache is part of the input.
func usage(u chat.Usage) []attribute.KeyValue {
	if u == (chat.Usage{}) {
		return nil
	}
	return []attribute.KeyValue{attribute.Int("gen_ai.usage.input_tokens", u.Input+u.CacheRead+u.CacheWrite), attribute.Int("gen_ai.usage.output_tokens", u.Output),
		attribute.Int("gen_ai.usage.cache_read.input_tokens", u.CacheRead), attribute.Int("gen_ai.usage.cache_creation.input_tokens", u.CacheWrite)}
}

// finishReason is why a model stopped, in the words of the GenAI conventions.
func finishReason(s chat.Stop) string {
	switch s {
	case chat.StopEnd, chat.StopSeq:
		return "stop"
	case chat.StopTools:
		return "tool_call"
	case chat.StopRefused:
		return "content_filter"
	}
	return string(s)
}
