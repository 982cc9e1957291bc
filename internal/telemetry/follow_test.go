package telemetry

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"chorus/internal/bus"
	"chorus/internal/chat"
)

// spansOf plays a story to a follower with a collector and gives its spans by name.
func spansOf(t *testing.T, story [][]chat.Event, began func(context.Context, chat.Event) (chat.Event, error), more ...string) (map[string]span, string) {
	t.Helper()
	c := newCollector(t, nil)
	var b bus.Bus
	var lines bytes.Buffer
	f := Follow(FollowOptions{Bus: &b, Log: slog.New(slog.NewTextHandler(&lines, nil)), Version: "1.0", Began: began,
		Env: env(append([]string{"OTEL_EXPORTER_OTLP_ENDPOINT", c.URL}, more...)...)})
	for _, events := range story {
		b.Ring(thread, bus.Note{Events: events})
	}
	f.Close(t.Context())
	f.Close(t.Context())
	out := map[string]span{}
	select {
	case in := <-c.got:
		for _, s := range in.ResourceSpans[0].ScopeSpans[0].Spans {
			out[s.Name+" "+s.Status.Message] = s
		}
	default:
	}
	return out, lines.String()
}

func TestRunBecomesSpans(t *testing.T) {
	t.Parallel()
	at := time.Unix(1000, 0)
	spans, _ := spansOf(t, story(at), nil)
	if len(spans) != 6 {
		t.Fatalf("%d spans: %+v", len(spans), spans)
	}
	id := traceOf("r1")
	for name, want := range map[string]struct {
		from, to time.Duration
		kind     int
		said     map[string]string
	}{
		"invoke_agent helper ": {time.Second, 32 * time.Second, internalSpan, map[string]string{"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "helper",
			"gen_ai.agent.id": "helper", "gen_ai.conversation.id": string(thread), "gen_ai.usage.input_tokens": "100", "gen_ai.usage.output_tokens": "20",
			"gen_ai.provider.name": "anthropic", "gen_ai.request.model": "some-model", "chorus.run.id": "r1", "chorus.run.outcome": "done", "chorus.run.cost_usd": "1.5"}},
		"chat some-model overloaded": {2 * time.Second, 3 * time.Second, clientSpan, map[string]string{"gen_ai.operation.name": "chat", "error.type": "overloaded", "chorus.attempt": "1"}},
		"chat some-model ": {4 * time.Second, 7 * time.Second, clientSpan, map[string]string{"gen_ai.provider.name": "anthropic", "gen_ai.request.model": "some-model",
			"gen_ai.request.max_tokens": "100", "gen_ai.request.temperature": "0.5", "gen_ai.request.stop_sequences": "x", "gen_ai.response.finish_reasons": "tool_call",
			"gen_ai.usage.input_tokens": "100", "gen_ai.usage.cache_read.input_tokens": "60", "gen_ai.usage.cache_creation.input_tokens": "30", "chorus.attempt": "2"}},
		"execute_tool bash ": {28 * time.Second, 30 * time.Second, internalSpan, map[string]string{"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "bash",
			"gen_ai.tool.type": "function", "gen_ai.tool.call.id": "c1"}},
		"execute_tool mcp__weather__now failed": {31*time.Second - 10*time.Millisecond, 31 * time.Second, internalSpan, map[string]string{"error.type": "failed"}},
		"execute_tool made-up invalid":          {31 * time.Second, 31 * time.Second, internalSpan, map[string]string{"error.type": "invalid"}},
	} {
		s, ok := spans[name]
		if !ok || s.Start != nanos(at.Add(want.from)) || s.End != nanos(at.Add(want.to)) || s.Kind != want.kind || s.TraceID != hex.EncodeToString(id[:]) {
			t.Errorf("%s: %+v", name, s)
		}
		if root := strings.HasPrefix(name, "invoke"); root != (s.Parent == "") || root != (s.SpanID == rootOf("r1")) || !root && s.Parent != rootOf("r1") {
			t.Errorf("%s hangs on %q", name, s.Parent)
		}
		said := attributes(s.Attributes)
		for key, value := range want.said {
			if said[key] != value {
				t.Errorf("%s: %s is %q, want %q", name, key, said[key], value)
			}
		}
		for key, value := range said {
			if strings.Contains(value, "secret") || strings.Contains(value, "test-key") {
				t.Errorf("%s: %s tells what was said: %q", name, key, value)
			}
		}
	}
}

// A run that another process began has the same trace and the right beginning; the request
// whose answer that process never heard is there too.
func TestRunGoesOnElsewhere(t *testing.T) {
	t.Parallel()
	at := time.Unix(1000, 0)
	first := chat.Event{Thread: thread, Seq: 1, At: at, Run: "r1", Body: chat.RunStarted{Run: "r1", Model: "openai/m"}}
	began := func(ctx context.Context, ev chat.Event) (chat.Event, error) {
		if _, bounded := ctx.Deadline(); !bounded || ev.Run != "r1" {
			t.Error("a look without an end, or for another run")
		}
		return first, nil
	}
	ev := func(after time.Duration, body chat.Body) []chat.Event {
		return []chat.Event{{Thread: thread, Run: "r1", At: at.Add(after), Body: body}}
	}
	spans, lines := spansOf(t, [][]chat.Event{
		ev(10*time.Second, chat.Asked{Step: 1, Attempt: 1, Model: "openai/m"}),
		ev(20*time.Second, chat.Asked{Step: 1, Attempt: 2, Model: "openai/m"}),
		ev(30*time.Second, chat.Compacted{Usage: chat.Usage{Input: 5}}),
		ev(60*time.Second, chat.RunEnded{Run: "r1", Reason: chat.EndFailed, Error: &chat.Failure{Kind: "network", Message: "gone"}}),
	}, began)
	root, ok := spans["invoke_agent helper network"]
	if !ok || root.Start != nanos(at) {
		t.Errorf("%+v", spans)
	}
	if _, ok := spans["chat m lost"]; !ok || len(spans) != 3 {
		t.Errorf("%+v", spans)
	}
	if !strings.Contains(lines, "level=WARN") || !strings.Contains(lines, "seconds=60 model=openai/m") || !strings.Contains(lines, `error="network: gone"`) {
		t.Error(lines)
	}
}

func TestNoSpansUnlessWanted(t *testing.T) {
	t.Parallel()
	for _, more := range [][]string{{"OTEL_SDK_DISABLED", "true"}, {"OTEL_TRACES_SAMPLER", "always_off"}, {"OTEL_TRACES_EXPORTER", "none"}} {
		if spans, lines := spansOf(t, story(time.Unix(1000, 0)), nil, more...); len(spans) != 0 || strings.Count(lines, "\n") != 1 {
			t.Errorf("%v: %v %s", more, spans, lines)
		}
	}
}

func TestOneLineForARun(t *testing.T) {
	t.Parallel()
	var b bus.Bus
	var lines bytes.Buffer
	f := Follow(FollowOptions{Bus: &b, Log: slog.New(slog.NewTextHandler(&lines, nil)), Env: env(),
		Began: func(context.Context, chat.Event) (chat.Event, error) { return chat.Event{}, errors.New("no disk") }})
	if f.tracer != nil || f.export != nil {
		t.Error("somebody makes spans")
	}
	for _, events := range story(time.Unix(1000, 0)) {
		b.Ring(thread, bus.Note{Events: events})
	}
	b.Ring(thread, bus.Note{Events: []chat.Event{{Thread: thread, Run: "r2", Body: chat.RunEnded{Run: "r2", Reason: chat.EndFailed,
		Error: &chat.Failure{Kind: "odd", Message: strings.Repeat("ä", 1000)}}}}})
	f.Close(t.Context())
	got := strings.Split(strings.TrimSpace(lines.String()), "\n")
	want := "level=INFO msg=\"run ended\" component=run event=run_ended thread=web:local/ada:one@helper run=r1 outcome=done steps=1 input=100 output=20 cached=60 cost=1.5 " +
		"seconds=31 model=anthropic/some-model"
	if len(got) != 2 || !strings.HasSuffix(got[0], want) {
		t.Fatalf("the log:\n%s", lines.String())
	}
	if strings.Contains(got[1], "seconds=") || !strings.Contains(got[1], "level=WARN") || len(got[1]) > 900 || strings.Contains(got[1], "�") {
		t.Errorf("the line of a run whose beginning is not known: %s", got[1])
	}
}
