package telemetry

import (
	"cmp"
	"context"
	"crypto/sha256"
	"fmt"
	"log/slog"
	"net/url"
	"strings"
	"sync/atomic"

	"github.com/go-logr/logr"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"chorus/internal/text"
)

// wantsTraces reports whether the environment asks for traces at all. The SDK does not
// look at these three variables.
func wantsTraces(env func(string) string) bool {
	if strings.EqualFold(strings.TrimSpace(env("OTEL_SDK_DISABLED")), "true") {
		return false
	}
	if exporter := strings.TrimSpace(env("OTEL_TRACES_EXPORTER")); exporter != "" {
		return exporter != "none"
	}
	return env("OTEL_EXPORTER_OTLP_ENDPOINT") != "" || env("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT") != ""
}

// tracesEndpoint is the address that traces are sent to. It refuses what the SDK would
// misread: another exporter, gRPC, an address without a scheme.
func tracesEndpoint(env func(string) string) (string, error) {
	get := func(name string) string { return strings.TrimSpace(env("OTEL_" + name)) }
	if exporter := get("TRACES_EXPORTER"); exporter != "" && exporter != "otlp" {
		return "", fmt.Errorf("OTEL_TRACES_EXPORTER is %q; it may be otlp or none", exporter)
	}
	protocol := cmp.Or(get("EXPORTER_OTLP_TRACES_PROTOCOL"), get("EXPORTER_OTLP_PROTOCOL"))
	switch protocol {
	case "", "http/protobuf", "http/json":
	default:
		return "", fmt.Errorf("OTEL_EXPORTER_OTLP_PROTOCOL is %q; set http/protobuf or http/json and the address of the collector's HTTP port (usually 4318)", protocol)
	}
	endpoint := get("EXPORTER_OTLP_TRACES_ENDPOINT")
	if endpoint == "" {
		base := cmp.Or(get("EXPORTER_OTLP_ENDPOINT"), "http://localhost:4318")
		endpoint = strings.TrimRight(base, "/") + "/v1/traces"
	}
	u, err := url.Parse(endpoint)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return "", fmt.Errorf("%q is not an http or https address; use for example http://localhost:4318", endpoint)
	}
	if u.Path == "" {
		u.Path = "/" // for the SDK, no path means its default one
	}
	return u.String(), nil
}

// traceExport sends spans to a collector with the OpenTelemetry SDK, which reads the other OTEL_* variables
// from the environment of the process: headers, certificates, compression, batches, sampling.
type traceExport struct {
	tracer    trace.Tracer
	processor sdktrace.SpanProcessor
	exporter  *reportingExporter
	ended     atomic.Int64 // sampled spans that were handed to the SDK
	log       *slog.Logger
}

// newTraceExport makes the SDK's parts. Nothing is sent before the first span. The SDK reports problems
// only through two variables of its own package, so these are set here.
func newTraceExport(endpoint, version string, log *slog.Logger) (*traceExport, error) {
	otel.SetLogger(logr.New(sdkLog{log}))
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) { sdkLog{log}.Error(err, "OpenTelemetry") }))
	client, err := otlptracehttp.New(context.Background(), otlptracehttp.WithEndpointURL(endpoint))
	if err != nil {
		return nil, err
	}
	res, err := resource.New(context.Background(), resource.WithTelemetrySDK(),
		resource.WithAttributes(attribute.String("service.name", "chorus"), attribute.String("service.version", version)), resource.WithFromEnv())
	if err != nil { // a part could not be read; the rest of it is there
		otel.Handle(err)
	}
	e := &traceExport{exporter: &reportingExporter{SpanExporter: client, endpoint: endpoint, log: log}, log: log}
	e.exporter.ctx, e.exporter.cancel = context.WithCancel(context.Background())
	e.processor = sdktrace.NewBatchSpanProcessor(e.exporter)
	provider := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(e.processor), sdktrace.WithIDGenerator(runIDs{}), sdktrace.WithResource(res))
	e.tracer = provider.Tracer("chorus", trace.WithInstrumentationVersion(version))
	return e, nil
}

// close sends what is waiting, at most until ctx ends, and logs how many spans did not arrive.
func (e *traceExport) close(ctx context.Context) {
	// Not the provider's Shutdown, which stops nothing when ctx has ended already. Its error says nothing
	// new: every failed export was logged, and the end of ctx shows as dropped spans.
	_ = e.processor.Shutdown(ctx)
	e.exporter.cancel() // the processor goes on in the background after ctx has ended
	sent := e.exporter.sent.Load()
	if dropped := e.ended.Load() - sent; dropped > 0 {
		e.log.Warn("spans were dropped", "component", "otel", "event", "spans_dropped", "dropped", dropped, "sent", sent)
	}
}

// reportingExporter counts what arrived and logs the first failure of several.
type reportingExporter struct {
	sdktrace.SpanExporter
	endpoint string
	log      *slog.Logger
	ctx      context.Context // over all exports; ends when close returns
	cancel   context.CancelFunc
	sent     atomic.Int64
	failing  bool // the last export failed; the SDK exports one batch at a time
}

// ExportSpans implements sdktrace.SpanExporter. It returns no error: the SDK would only log it again.
func (e *reportingExporter) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(e.ctx, cancel)()
	err := e.SpanExporter.ExportSpans(ctx, spans)
	rejected, partial := rejectedSpans(err)
	if err != nil && !partial {
		if !e.failing {
			e.failing = true
			e.log.Warn("traces do not reach their collector", "component", "otel", "event", "export_failed", "endpoint", e.endpoint, "error", text.Clip(err.Error(), maxErrorText))
		}
		return nil
	}
	e.sent.Add(max(0, int64(len(spans))-rejected))
	if e.failing {
		e.failing = false
		e.log.Info("traces reach their collector again", "component", "otel", "event", "export_recovered")
	}
	if rejected > 0 {
		e.log.Warn("the collector rejected spans", "component", "otel", "event", "spans_rejected", "spans", rejected, "error", text.Clip(err.Error(), maxErrorText))
	}
	return nil
}

// rejectedSpans reads how many spans a collector did not take although it accepted the request. The exporter has
// no exported type for that answer, only its sentence.
func rejectedSpans(err error) (n int64, partial bool) {
	if err == nil {
		return 0, false
	}
	_, answer, partial := strings.Cut(err.Error(), "OTLP partial success: ")
	if !partial {
		return 0, false
	}
	_, _ = fmt.Sscanf(answer[strings.LastIndex(answer, "(")+1:], "%d spans rejected", &n) // 0: a warning without a number
	return max(0, n), true
}

// runIDs derives the ids of spans from the run, so that a run which continues in another process after
// a crash stays one trace.
type runIDs struct{}

var _ sdktrace.IDGenerator = runIDs{}

// part names a span: its run, and what it is within it; "" is the run itself.
type part struct{ run, name string }

// partKey is the context key of the part that a span is started for.
type partKey struct{}

func (g runIDs) NewIDs(ctx context.Context) (trace.TraceID, trace.SpanID) {
	p, _ := ctx.Value(partKey{}).(part)
	return traceID(p.run), g.NewSpanID(ctx, trace.TraceID{})
}

func (runIDs) NewSpanID(ctx context.Context, _ trace.TraceID) trace.SpanID {
	p, _ := ctx.Value(partKey{}).(part)
	return spanID(p)
}

func traceID(run string) trace.TraceID {
	sum := sha256.Sum256([]byte("trace of run " + run))
	return trace.TraceID(sum[:16])
}

func spanID(p part) trace.SpanID {
	sum := sha256.Sum256([]byte("span of run " + p.run + " " + p.name))
	return trace.SpanID(sum[:8])
}

// sdkLog passes the SDK's complaints about variables on to our log. Their values are left out: a
// header that could not be parsed holds a key.
type sdkLog struct{ log *slog.Logger }

var _ logr.LogSink = sdkLog{}

func (sdkLog) Init(logr.RuntimeInfo) {}

func (sdkLog) Enabled(int) bool { return false }

func (sdkLog) Info(int, string, ...any) {}

func (l sdkLog) Error(err error, msg string, _ ...any) {
	l.log.Warn("a setting of OpenTelemetry was not understood", "component", "otel", "event", "otel_settings", "reason", msg, "error", err)
}

func (l sdkLog) WithValues(...any) logr.LogSink { return l }

func (l sdkLog) WithName(string) logr.LogSink { return l }
