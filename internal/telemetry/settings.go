package telemetry

import (
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// settings is what the OTEL_* variables of the environment say, as far as it concerns traces.
type settings struct {
	endpoint string // "": nothing is sent
	headers  http.Header
	resource []attribute
	sample   func(traceID [16]byte) bool
	gzip     bool
	timeout  time.Duration // of one request
	delay    time.Duration // how long a span waits for others
	queue    int           // spans that may wait
	batch    int           // spans of one request
}

// The defaults, which are those of OpenTelemetry.
const (
	defaultEndpoint = "http://localhost:4318"
	defaultTimeout  = 10 * time.Second
	defaultDelay    = 5 * time.Second
	defaultQueue    = 2048
	defaultBatch    = 512
)

// Wanted reports whether the environment asks for traces at all. It costs a few looks.
func Wanted(env func(string) string) bool {
	switch {
	case strings.EqualFold(strings.TrimSpace(env("OTEL_SDK_DISABLED")), "true"):
		return false
	case env("OTEL_TRACES_EXPORTER") != "":
		return strings.TrimSpace(env("OTEL_TRACES_EXPORTER")) != "none"
	}
	return env("OTEL_EXPORTER_OTLP_ENDPOINT") != "" || env("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT") != ""
}

// read reads the environment. warn hears what is wrong with it, in a sentence; what cannot
// be understood is as if it were not set.
func read(env func(string) string, version string, warn func(string)) settings {
	if !Wanted(env) {
		return settings{}
	}
	get := func(name string) string { // the variable for traces goes before that for everything
		if v := strings.TrimSpace(env("OTEL_EXPORTER_OTLP_TRACES_" + name)); v != "" {
			return v
		}
		return strings.TrimSpace(env("OTEL_EXPORTER_OTLP_" + name))
	}
	s := settings{headers: http.Header{}, timeout: defaultTimeout, delay: defaultDelay, queue: defaultQueue, batch: defaultBatch}
	if exporter := strings.TrimSpace(env("OTEL_TRACES_EXPORTER")); exporter != "" && exporter != "otlp" {
		warn(fmt.Sprintf("OTEL_TRACES_EXPORTER is %q; there are otlp and none, and no traces are sent", exporter))
		return settings{}
	}
	switch protocol := get("PROTOCOL"); protocol {
	case "", "http/json":
	case "http/protobuf":
		warn("OTEL_EXPORTER_OTLP_PROTOCOL is http/protobuf; traces are sent as http/json, which collectors take at the same address")
	default:
		warn(fmt.Sprintf("OTEL_EXPORTER_OTLP_PROTOCOL is %q, which is not spoken here; set http/json and the address of the collector's HTTP port "+
			"(usually 4318). No traces are sent", protocol))
		return settings{}
	}
	endpoint, err := address(strings.TrimSpace(env("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")), strings.TrimSpace(env("OTEL_EXPORTER_OTLP_ENDPOINT")))
	if err != nil {
		warn("no traces are sent: " + err.Error())
		return settings{}
	}
	s.endpoint = endpoint
	switch c := get("COMPRESSION"); c {
	case "", "none":
	case "gzip":
		s.gzip = true
	default:
		warn(fmt.Sprintf("OTEL_EXPORTER_OTLP_COMPRESSION is %q; there are gzip and none, and none holds", c))
	}
	for _, p := range pairs(get("HEADERS"), "OTEL_EXPORTER_OTLP_HEADERS", warn) {
		s.headers.Set(p[0], p[1])
	}
	s.timeout = milliseconds(get("TIMEOUT"), s.timeout)
	s.delay = milliseconds(env("OTEL_BSP_SCHEDULE_DELAY"), s.delay)
	s.queue = whole(env("OTEL_BSP_MAX_QUEUE_SIZE"), s.queue)
	s.batch = min(whole(env("OTEL_BSP_MAX_EXPORT_BATCH_SIZE"), s.batch), s.queue)
	s.resource = resource(env, version, warn)
	s.sample = sampler(env("OTEL_TRACES_SAMPLER"), env("OTEL_TRACES_SAMPLER_ARG"), warn)
	return s
}

// address is where traces go.
func address(traces, all string) (string, error) {
	where := traces
	if where == "" {
		if all == "" {
			all = defaultEndpoint
		}
		where = strings.TrimRight(all, "/") + "/v1/traces"
	}
	u, err := url.Parse(where)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return "", fmt.Errorf("%q is no http or https address; say for example %s", where, defaultEndpoint)
	}
	return where, nil
}

// pairs reads "a=b,c=d" with percent signs for what cannot stand there.
func pairs(text, variable string, warn func(string)) [][2]string {
	var out [][2]string
	for part := range strings.SplitSeq(text, ",") {
		if part = strings.TrimSpace(part); part == "" {
			continue
		}
		name, value, ok := strings.Cut(part, "=")
		value, err := url.PathUnescape(strings.TrimSpace(value))
		if name = strings.TrimSpace(name); !ok || name == "" || err != nil || strings.ContainsAny(name+value, "\r\n") {
			warn(variable + " holds something that is not name=value, and it is left out") // which may be a secret
			continue
		}
		out = append(out, [2]string{name, value})
	}
	return out
}

// resource is who sends the spans.
func resource(env func(string) string, version string, warn func(string)) []attribute {
	name := strings.TrimSpace(env("OTEL_SERVICE_NAME"))
	out := []attribute{str("service.version", version), str("telemetry.sdk.name", "chorus"), str("telemetry.sdk.language", "go")}
	for _, p := range pairs(env("OTEL_RESOURCE_ATTRIBUTES"), "OTEL_RESOURCE_ATTRIBUTES", warn) {
		if p[0] == "service.name" {
			if name == "" {
				name = p[1]
			}
			continue
		}
		out = append(out, str(p[0], p[1]))
	}
	if name == "" {
		name = "chorus"
	}
	return append([]attribute{str("service.name", name)}, out...)
}

// sampler decides which traces are sent. A run has nobody above it, so that the samplers
// that ask a parent are those for the root.
func sampler(name, arg string, warn func(string)) func([16]byte) bool {
	name = strings.TrimPrefix(strings.TrimSpace(name), "parentbased_")
	switch name {
	case "", "always_on":
		return func([16]byte) bool { return true }
	case "always_off":
		return func([16]byte) bool { return false }
	case "traceidratio":
		ratio := 1.0
		if arg = strings.TrimSpace(arg); arg != "" {
			if r, err := strconv.ParseFloat(arg, 64); err == nil && r >= 0 && r <= 1 {
				ratio = r
			} else {
				warn(fmt.Sprintf("OTEL_TRACES_SAMPLER_ARG is %q, which is no number from 0 to 1; every trace is sent", arg))
			}
		}
		return func(id [16]byte) bool { return fraction(id) < ratio }
	}
	warn(fmt.Sprintf("OTEL_TRACES_SAMPLER is %q; there are always_on, always_off and traceidratio, with or without parentbased_, and every trace is sent", name))
	return func([16]byte) bool { return true }
}

// fraction is where a trace id stands between 0 and 1: by its last seven bytes, as in
// OpenTelemetry's consistent sampling.
func fraction(id [16]byte) float64 {
	var n uint64
	for _, b := range id[9:] {
		n = n<<8 | uint64(b)
	}
	return float64(n) / (1 << 56)
}

func milliseconds(text string, otherwise time.Duration) time.Duration {
	return time.Duration(whole(text, int(otherwise.Milliseconds()))) * time.Millisecond
}

// whole reads a number above zero.
func whole(text string, otherwise int) int {
	if n, err := strconv.Atoi(strings.TrimSpace(text)); err == nil && n > 0 && n <= 1<<30 {
		return n
	}
	return otherwise
}
