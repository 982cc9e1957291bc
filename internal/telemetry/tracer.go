package telemetry

import (
	"strconv"
	"strings"
	"time"

	"chorus/internal/chat"
)

// tracer makes spans of events, after the fact and with the times of the journal. Only one
// goroutine may use it. What people and models said is not in them.
type tracer struct {
	runs   map[string]*traced
	sample func([16]byte) bool
	put    func(span)
	began  func(chat.Event) (chat.Event, bool) // finds the start of a run that began elsewhere
}

// traced is a run that is on.
type traced struct {
	thread chat.ThreadID
	at     time.Time
	start  chat.RunStarted
	asked  chat.Asked // the request that has no answer yet
	since  time.Time  // when it was made; zero: there is none
	tools  map[string]time.Time
}

// maxTraced is how many runs may be on; a process has far fewer.
const maxTraced = 10000

func (t *tracer) one(ev chat.Event) {
	if ev.Run == "" || !t.sample(traceOf(ev.Run)) {
		return
	}
	r := t.run(ev)
	switch body := ev.Body.(type) {
	case chat.Asked:
		if !r.since.IsZero() { // a process that died never heard the answer to the last one
			s := r.chat(ev.Run, ev.At)
			s.fail("lost")
			t.put(s)
		}
		r.asked, r.since = body, ev.At
	case chat.Said:
		t.said(r, ev, body)
	case chat.Compacted:
		if !r.since.IsZero() {
			s := r.chat(ev.Run, ev.At)
			s.Attributes = append(s.Attributes, usage(body.Usage)...)
			t.put(s)
			r.since = time.Time{}
		}
	case chat.ToolBegan:
		r.tools[body.Call] = ev.At
	case chat.ToolRan:
		t.put(r.tool(ev, body))
		delete(r.tools, body.Call)
	case chat.RunEnded:
		t.put(r.whole(ev, body))
		delete(t.runs, ev.Run)
	}
}

// run is the run of an event.
func (t *tracer) run(ev chat.Event) *traced {
	r := t.runs[ev.Run]
	if r != nil {
		return r
	}
	r = &traced{thread: ev.Thread, at: ev.At, tools: map[string]time.Time{}}
	body, ok := ev.Body.(chat.RunStarted)
	if !ok && t.began != nil {
		if first, found := t.began(ev); found {
			r.at = first.At
			body, _ = first.Body.(chat.RunStarted)
		}
	}
	r.start = body
	if len(t.runs) >= maxTraced {
		clear(t.runs) // their ends were lost
	}
	t.runs[ev.Run] = r
	return r
}

// about is what every span of a run says.
func (r *traced) about(operation string) []attribute {
	return []attribute{str("gen_ai.operation.name", operation), str("gen_ai.conversation.id", string(r.thread)), str("gen_ai.agent.name", agentOf(r.thread))}
}

// defaultAgent answers in threads that name none.
const defaultAgent = "chorus"

// agentOf is the agent of a thread, as people call it.
func agentOf(thread chat.ThreadID) string {
	if name := thread.Agent(); name != "" {
		return name
	}
	return defaultAgent
}

// chat is the call of a model that is open, ending now.
func (r *traced) chat(run string, end time.Time) span {
	provider, name, ok := strings.Cut(r.asked.Model, "/")
	if !ok {
		provider, name = "", r.asked.Model
	}
	part := "chat " + strconv.Itoa(r.asked.Step) + "." + strconv.Itoa(r.asked.Attempt) + " " + string(r.asked.Purpose)
	s := newSpan(run, part, "chat "+name, clientSpan, r.since, end)
	s.Attributes = append(r.about("chat"), str("gen_ai.provider.name", providerName(provider)), str("gen_ai.request.model", name),
		num("chorus.step", r.asked.Step), num("chorus.attempt", r.asked.Attempt), str("chorus.purpose", string(r.asked.Purpose)))
	set := r.start.Settings
	if set.MaxTokens > 0 {
		s.Attributes = append(s.Attributes, num("gen_ai.request.max_tokens", set.MaxTokens))
	}
	if set.Temperature != nil {
		s.Attributes = append(s.Attributes, float("gen_ai.request.temperature", *set.Temperature))
	}
	if set.TopP != nil {
		s.Attributes = append(s.Attributes, float("gen_ai.request.top_p", *set.TopP))
	}
	if len(set.Stop) > 0 {
		s.Attributes = append(s.Attributes, list("gen_ai.request.stop_sequences", set.Stop...))
	}
	return s
}

func (t *tracer) said(r *traced, ev chat.Event, body chat.Said) {
	if r.since.IsZero() { // asked by a process that died before this one listened
		r.asked, r.since = chat.Asked{Step: body.Step, Attempt: body.Attempt, Model: r.start.Model, Purpose: chat.ForTurn}, ev.At
	}
	s := r.chat(ev.Run, ev.At)
	r.since = time.Time{}
	s.Attributes = append(s.Attributes, usage(body.Usage)...)
	if body.Stop != "" {
		s.Attributes = append(s.Attributes, list("gen_ai.response.finish_reasons", finish(body.Stop)))
	}
	if body.Error != nil {
		s.fail(body.Error.Kind)
	}
	t.put(s)
}

// tool is a call that has its result. Its time is the tool's own; the journal may have
// written the result a little later, together with something else.
func (r *traced) tool(ev chat.Event, body chat.ToolRan) span {
	took := time.Duration(body.TookMS) * time.Millisecond
	from, known := r.tools[body.Call]
	if !known {
		from = ev.At.Add(-took)
	}
	s := newSpan(ev.Run, "tool "+body.Call, "execute_tool "+body.Name, internalSpan, from, from.Add(took))
	s.Attributes = append(r.about("execute_tool"), str("gen_ai.tool.name", body.Name), str("gen_ai.tool.type", "function"),
		str("gen_ai.tool.call.id", body.Call), str("chorus.tool.outcome", string(body.Outcome)))
	if how := ended(body); how != "ok" {
		s.fail(how)
	}
	return s
}

// whole is the run itself.
func (r *traced) whole(ev chat.Event, body chat.RunEnded) span {
	agent := agentOf(r.thread)
	provider, model, _ := strings.Cut(r.start.Model, "/")
	s := newSpan(ev.Run, "", "invoke_agent "+agent, internalSpan, r.at, ev.At)
	s.Attributes = append(r.about("invoke_agent"), str("gen_ai.agent.id", agent), str("chorus.run.id", ev.Run),
		str("chorus.run.outcome", string(body.Reason)), num("chorus.run.steps", body.Steps), float("chorus.run.cost_usd", float64(body.Cost)/float64(dollar)))
	if model != "" {
		s.Attributes = append(s.Attributes, str("gen_ai.provider.name", providerName(provider)), str("gen_ai.request.model", model))
	}
	s.Attributes = append(s.Attributes, usage(body.Usage)...)
	switch {
	case body.Error != nil:
		s.fail(body.Error.Kind)
	case body.Reason != chat.EndDone:
		s.fail(string(body.Reason))
	}
	return s
}

// usage counts as the conventions do: what came from a cache is part of the input.
func usage(u chat.Usage) []attribute {
	if u == (chat.Usage{}) {
		return nil
	}
	return []attribute{num("gen_ai.usage.input_tokens", u.Input+u.CacheRead+u.CacheWrite), num("gen_ai.usage.output_tokens", u.Output),
		num("gen_ai.usage.cache_read.input_tokens", u.CacheRead), num("gen_ai.usage.cache_creation.input_tokens", u.CacheWrite)}
}

// providerName is a vendor as the conventions call it; others keep their own names.
func providerName(vendor string) string {
	switch vendor {
	case "google":
		return "gcp.gemini"
	case "bedrock":
		return "aws.bedrock"
	}
	return vendor
}

// finish is why a model stopped, in the words of the conventions.
func finish(s chat.Stop) string {
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
