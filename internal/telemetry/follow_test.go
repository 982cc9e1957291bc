package telemetry

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"strings"
	"testing"
	"time"

	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"

	"chorus/internal/bus"
	"chorus/internal/chat"
)

// spansOf publishes commits to a follower with a collector and gives its spans, and its log.
func spansOf(t *testing.T, commits [][]chat.Event, runStart func(context.Context, chat.Event) (chat.Event, error)) ([]*tracepb.Span, string) {
	t.Helper()
	c := newCollector(t, nil)
	var b bus.Bus
	var log logBuffer
	f := Follow(FollowOptions{Bus: &b, Log: slog.New(slog.NewTextHandler(&log, nil)), Version: "1.0", RunStart: runStart, Env: os.Getenv})
	for _, events := range commits {
		b.Publish(thread, bus.Note{Events: events})
	}
	f.Close(t.Context())
	f.Close(t.Context())
	return c.spans(), log.String()
}

// byName finds spans by their name and error.
func byName(spans []*tracepb.Span) map[string]*tracepb.Span {
	out := map[string]*tracepb.Span{}
	for _, s := range spans {
		out[s.Name+" "+s.GetStatus().GetMessage()] = s
	}
	return out
}

func TestRunBecomesSpans(t *testing.T) {
	at := time.Unix(1000, 0)
	all, _ := spansOf(t, story(at), nil)
	spans := byName(all)
	if len(all) != 6 || len(spans) != 6 {
		t.Fatalf("%d spans: %+v", len(all), spans)
	}
	trace, root := traceID("r1"), spanID(part{run: "r1"})
	for name, want := range map[string]struct {
		from, to   time.Duration
		kind       tracepb.Span_SpanKind
		attributes map[string]string
	}{
		"invoke_agent helper ": {time.Second, 32 * time.Second, tracepb.Span_SPAN_KIND_INTERNAL, map[string]string{"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "helper",
			"gen_ai.agent.id": "helper", "gen_ai.conversation.id": string(thread), "gen_ai.usage.input_tokens": "100", "gen_ai.usage.output_tokens": "20",
			"gen_ai.provider.name": "anthropic", "gen_ai.request.model": "some-model", "chorus.run.id": "r1", "chorus.run.outcome": "done", "chorus.run.cost_usd": "1.5"}},
		"chat some-model overloaded": {2 * time.Second, 3 * time.Second, tracepb.Span_SPAN_KIND_CLIENT, map[string]string{"gen_ai.operation.name": "chat", "error.type": "overloaded", "chorus.attempt": "1"}},
		"chat some-model ": {4 * time.Second, 7 * time.Second, tracepb.Span_SPAN_KIND_CLIENT, map[string]string{"gen_ai.provider.name": "anthropic", "gen_ai.request.model": "some-model",
			"gen_ai.request.max_tokens": "100", "gen_ai.request.temperature": "0.5", "gen_ai.request.stop_sequences": "x", "gen_ai.response.finish_reasons": "tool_call",
			"gen_ai.usage.input_tokens": "100", "gen_ai.usage.cache_read.input_tokens": "60", "gen_ai.usage.cache_creation.input_tokens": "30", "chorus.attempt": "2"}},
		"execute_tool bash ": {28 * time.Second, 30 * time.Second, tracepb.Span_SPAN_KIND_INTERNAL, map[string]string{"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "bash",
			"gen_ai.tool.type": "function", "gen_ai.tool.call.id": "c1"}},
		"execute_tool mcp__weather__now failed": {31*time.Second - 10*time.Millisecond, 31 * time.Second, tracepb.Span_SPAN_KIND_INTERNAL, map[string]string{"error.type": "failed"}},
		"execute_tool made-up invalid":          {31 * time.Second, 31 * time.Second, tracepb.Span_SPAN_KIND_INTERNAL, map[string]string{"error.type": "invalid"}},
	} {
		s, ok := spans[name]
		if !ok || s.StartTimeUnixNano != uint64(at.Add(want.from).UnixNano()) || s.EndTimeUnixNano != uint64(at.Add(want.to).UnixNano()) || s.Kind != want.kind || !bytes.Equal(s.TraceId, trace[:]) {
			t.Errorf("%s: %+v", name, s)
			continue
		}
		if strings.HasPrefix(name, "invoke") {
			if len(s.ParentSpanId) != 0 || !bytes.Equal(s.SpanId, root[:]) {
				t.Errorf("%s: %+v", name, s)
			}
		} else if !bytes.Equal(s.ParentSpanId, root[:]) {
			t.Errorf("%s has the parent %x", name, s.ParentSpanId)
		}
		got := attributes(s.Attributes)
		for key, value := range want.attributes {
			if got[key] != value {
				t.Errorf("%s: %s is %q, want %q", name, key, got[key], value)
			}
		}
		for key, value := range got {
			if strings.Contains(value, "secret") || strings.Contains(value, "test-key") {
				t.Errorf("%s: %s shows what was said: %q", name, key, value)
			}
		}
	}
}

// The ids of a trace and of a run's span are those that earlier versions sent.
func TestIDsOfARun(t *testing.T) {
	t.Parallel()
	trace, span := traceID("01m7f7f0gh"), spanID(part{run: "01m7f7f0gh"})
	if hex.EncodeToString(trace[:]) != "7c12d3548d58e38e47d48370fd5782c2" || hex.EncodeToString(span[:]) != "c363ee2ad87d8ec2" {
		t.Errorf("%x %x", trace, span)
	}
}

// A run that another process started has the same trace and the right start; the request whose
// answer that process never got is there too.
func TestRunContinuesInAnotherProcess(t *testing.T) {
	at := time.Unix(1000, 0)
	first := chat.Event{Thread: thread, Seq: 1, At: at, Run: "r1", Body: chat.RunStarted{Run: "r1", Model: "openai/m"}}
	runStart := func(ctx context.Context, ev chat.Event) (chat.Event, error) {
		if _, bounded := ctx.Deadline(); !bounded || ev.Run != "r1" {
			t.Error("a read without a deadline, or for another run")
		}
		return first, nil
	}
	ev := func(after time.Duration, body chat.Body) []chat.Event {
		return []chat.Event{{Thread: thread, Run: "r1", At: at.Add(after), Body: body}}
	}
	all, log := spansOf(t, [][]chat.Event{
		ev(10*time.Second, chat.Asked{Step: 1, Attempt: 1, Model: "openai/m"}),
		ev(20*time.Second, chat.Asked{Step: 1, Attempt: 2, Model: "openai/m"}),
		ev(30*time.Second, chat.Compacted{Usage: chat.Usage{Input: 5}}),
		ev(60*time.Second, chat.RunEnded{Run: "r1", Reason: chat.EndFailed, Error: &chat.Failure{Kind: "network", Message: "gone"}}),
	}, runStart)
	spans := byName(all)
	root, ok := spans["invoke_agent helper network"]
	if !ok || root.StartTimeUnixNano != uint64(at.UnixNano()) {
		t.Errorf("%+v", spans)
	}
	if _, ok := spans["chat m lost"]; !ok || len(spans) != 3 {
		t.Errorf("%+v", spans)
	}
	if !strings.Contains(log, "level=WARN") || !strings.Contains(log, "seconds=60 model=openai/m") || !strings.Contains(log, `error="network: gone"`) {
		t.Error(log)
	}
}

// A sampler takes a run with all of its parts or not at all, and every process takes the same runs.
func TestSampling(t *testing.T) {
	t.Setenv("OTEL_TRACES_SAMPLER", "traceidratio")
	t.Setenv("OTEL_TRACES_SAMPLER_ARG", "0.5")
	const runs = 64
	var commits [][]chat.Event
	for i := range runs {
		run := fmt.Sprint("run ", i)
		at := time.Unix(int64(i), 0)
		for _, body := range []chat.Body{chat.RunStarted{Run: run}, chat.Asked{Step: 1}, chat.Said{Step: 1}, chat.RunEnded{Run: run, Reason: chat.EndDone}} {
			commits = append(commits, []chat.Event{{Thread: thread, Run: run, At: at, Body: body}})
		}
	}
	sample := func() map[string]int {
		spans, _ := spansOf(t, commits, nil)
		taken := map[string]int{}
		for _, s := range spans {
			taken[hex.EncodeToString(s.TraceId)]++
		}
		return taken
	}
	taken := sample()
	if len(taken) < runs/4 || len(taken) > runs*3/4 {
		t.Errorf("%d of %d runs were taken", len(taken), runs)
	}
	for id, spans := range taken {
		if spans != 2 {
			t.Errorf("trace %s has %d spans", id, spans)
		}
	}
	if again := sample(); !maps.Equal(taken, again) {
		t.Error("the second process took other runs")
	}
}

func TestNoSpansUnlessWanted(t *testing.T) {
	for _, c := range [][2]string{{"OTEL_SDK_DISABLED", "true"}, {"OTEL_TRACES_SAMPLER", "always_off"}, {"OTEL_TRACES_EXPORTER", "none"}} {
		t.Run(c[0], func(t *testing.T) {
			t.Setenv(c[0], c[1])
			if spans, log := spansOf(t, story(time.Unix(1000, 0)), nil); len(spans) != 0 || strings.Count(log, "\n") != 1 {
				t.Errorf("%v %s", spans, log)
			}
		})
	}
}

// A read of the journal that hangs does not hold up the end.
func TestCloseKeepsItsDeadline(t *testing.T) {
	t.Parallel()
	var b bus.Bus
	f := Follow(FollowOptions{Bus: &b, Log: slog.New(slog.DiscardHandler), Env: env(), RunStart: func(ctx context.Context, _ chat.Event) (chat.Event, error) {
		<-ctx.Done()
		return chat.Event{}, ctx.Err()
	}})
	for i := range 500 { // each would take two seconds
		run := fmt.Sprint(i)
		b.Publish(thread, bus.Note{Events: []chat.Event{{Thread: thread, Run: run, Body: chat.RunEnded{Run: run}}}})
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	began := time.Now()
	f.Close(ctx)
	if took := time.Since(began); took > 30*time.Second {
		t.Errorf("closing took %s", took)
	}
}

func TestOneLinePerRun(t *testing.T) {
	t.Parallel()
	var b bus.Bus
	var log bytes.Buffer
	f := Follow(FollowOptions{Bus: &b, Log: slog.New(slog.NewTextHandler(&log, nil)), Env: env(),
		RunStart: func(context.Context, chat.Event) (chat.Event, error) { return chat.Event{}, errors.New("no disk") }})
	if f.tracer != nil || f.export != nil {
		t.Error("spans are made")
	}
	for _, events := range story(time.Unix(1000, 0)) {
		b.Publish(thread, bus.Note{Events: events})
	}
	b.Publish(thread, bus.Note{Events: []chat.Event{{Thread: thread, Run: "r2", Body: chat.RunEnded{Run: "r2", Reason: chat.EndFailed,
		Error: &chat.Failure{Kind: "odd", Message: strings.Repeat("ä", 1000)}}}}})
	f.Close(t.Context())
	got := strings.Split(strings.TrimSpace(log.String()), "\n")
	want := "level=INFO msg=\"run ended\" component=run event=run_ended thread=web:local/ada:one@helper run=r1 outcome=done steps=1 input=100 output=20 cached=60 cost=1.5 " +
		"seconds=31 model=anthropic/some-model"
	if len(got) != 2 || !strings.HasSuffix(got[0], want) {
		t.Fatalf("the log:\n%s", log.String())
	}
	if strings.Contains(got[1], "seconds=") || !strings.Contains(got[1], "level=WARN") || len(got[1]) > 1400 || strings.Contains(got[1], "�") {
		t.Errorf("the line of a run whose start is not known: %s", got[1])
	}
}
