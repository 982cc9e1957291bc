package telemetry

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strconv"
	"time"
)

// span is something that had a beginning and an end, as OTLP writes it in JSON.
type span struct {
	TraceID    string      `json:"traceId"`
	SpanID     string      `json:"spanId"`
	Parent     string      `json:"parentSpanId,omitempty"`
	Name       string      `json:"name"`
	Kind       int         `json:"kind"`
	Start      string      `json:"startTimeUnixNano"`
	End        string      `json:"endTimeUnixNano"`
	Attributes []attribute `json:"attributes,omitempty"`
	Status     status      `json:"status"`
}

// The kinds of spans that there are here.
const (
	internalSpan = 1
	clientSpan   = 3
)

type status struct {
	Code    int    `json:"code,omitempty"` // 2: an error
	Message string `json:"message,omitempty"`
}

type attribute struct {
	Key   string `json:"key"`
	Value value  `json:"value"`
}

// value has one of its fields.
type value struct {
	Str   *string  `json:"stringValue,omitempty"`
	Int   *string  `json:"intValue,omitempty"` // 64 bits do not fit into JSON's numbers
	Float *float64 `json:"doubleValue,omitempty"`
	Array *values  `json:"arrayValue,omitempty"`
}

type values struct {
	Values []value `json:"values"`
}

func str(key, v string) attribute { return attribute{key, value{Str: &v}} }

func num(key string, v int) attribute {
	text := strconv.Itoa(v)
	return attribute{key, value{Int: &text}}
}

func float(key string, v float64) attribute { return attribute{key, value{Float: &v}} }

func list(key string, texts ...string) attribute {
	out := make([]value, len(texts))
	for i := range texts {
		out[i].Str = &texts[i]
	}
	return attribute{key, value{Array: &values{out}}}
}

// traceOf is a run's trace: always the same, in whatever process it goes on.
func traceOf(run string) [16]byte {
	sum := sha256.Sum256([]byte("trace of run " + run))
	return [16]byte(sum[:16])
}

// spanOf is the id of a part of a run.
func spanOf(run, part string) string {
	sum := sha256.Sum256([]byte("span of run " + run + " " + part))
	return hex.EncodeToString(sum[:8])
}

// rootOf is the span of the whole run.
func rootOf(run string) string { return spanOf(run, "") }

func nanos(at time.Time) string { return strconv.FormatInt(at.UnixNano(), 10) }

// newSpan makes a part of a run; "" is the run itself.
func newSpan(run, part, name string, kind int, from, to time.Time) span {
	if to.Before(from) {
		to = from
	}
	id := traceOf(run)
	s := span{TraceID: hex.EncodeToString(id[:]), SpanID: spanOf(run, part), Name: name, Kind: kind, Start: nanos(from), End: nanos(to)}
	if part != "" {
		s.Parent = rootOf(run)
	}
	return s
}

// fail marks a span as one that came to nothing, and of what kind the trouble was.
func (s *span) fail(kind string) {
	s.Attributes = append(s.Attributes, str("error.type", kind))
	s.Status = status{Code: 2, Message: kind}
}

// envelope is what one request carries.
func envelope(resource []attribute, version string, spans []span) ([]byte, error) {
	type scope struct {
		Name    string `json:"name"`
		Version string `json:"version,omitempty"`
	}
	type scopeSpans struct {
		Scope scope  `json:"scope"`
		Spans []span `json:"spans"`
	}
	type from struct {
		Attributes []attribute `json:"attributes"`
	}
	type resourceSpans struct {
		Resource   from         `json:"resource"`
		ScopeSpans []scopeSpans `json:"scopeSpans"`
	}
	return json.Marshal(map[string][]resourceSpans{"resourceSpans": {{
		Resource: from{resource}, ScopeSpans: []scopeSpans{{Scope: scope{"chorus", version}, Spans: spans}},
	}}})
}
