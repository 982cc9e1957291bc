// Package charts draws costs and runs as SVG: bars per day, and the spans of a run along its time.
package charts

import (
	"cmp"
	"fmt"
	"html"
	"strings"
	"time"

	"chorus/internal/operations"
	"chorus/internal/transport/http/display"
)

// spanNames are the kinds of spans in the order of the legend, with their names.
var spanNames = []struct{ Kind, Name string }{
	{operations.SpanModel, "Model"}, {operations.SpanTool, "Tools"}, {operations.SpanAgent, "Other agents"},
	{operations.SpanPerson, "Waiting for people"}, {operations.SpanPause, "Waiting to retry"}, {operations.SpanQueue, "Waiting to start"},
}

// SpanName is the name of a kind of span.
func SpanName(kind string) string {
	for _, n := range spanNames {
		if n.Kind == kind {
			return n.Name
		}
	}
	return kind
}

// SpanSum is the total duration of all spans of a kind.
type SpanSum struct {
	Kind, Name string
	MS         int64
	Count      int
}

// SpanSums returns the sums of all kinds that occur.
func SpanSums(spans []operations.Span) []SpanSum {
	var out []SpanSum
	for _, n := range spanNames {
		sum := SpanSum{Kind: n.Kind, Name: n.Name}
		for _, s := range spans {
			if s.Kind == n.Kind {
				sum.MS, sum.Count = sum.MS+s.TookMS, sum.Count+1
			}
		}
		if sum.Count > 0 {
			out = append(out, sum)
		}
	}
	return out
}

// timelineSize is how a timeline is laid out, in units of its view box.
type timelineSize struct {
	width, label  int // label is the space for the names; 0: they are above the bars
	row, bar, top int
	ticks         int
}

var (
	wide   = timelineSize{width: 940, label: 250, row: 26, bar: 14, top: 26, ticks: 8}
	narrow = timelineSize{width: 350, row: 38, bar: 12, top: 24, ticks: 4}
)

// maxDrawn limits the spans in a timeline; the table shows all of them.
const maxDrawn = 120

// Timeline draws spans below each other along the time. Long waits are shortened and marked: an hour of waiting for an
// answer would leave no space for the work. "": there is nothing to draw.
func Timeline(spans []operations.Span) string { return drawTimeline(spans, wide) }

// NarrowTimeline is Timeline for a phone.
func NarrowTimeline(spans []operations.Span) string { return drawTimeline(spans, narrow) }

func drawTimeline(spans []operations.Span, size timelineSize) string {
	if len(spans) == 0 {
		return ""
	}
	shown := spans[:min(len(spans), maxDrawn)]
	scale := newTimescale(shown, float64(size.label), float64(size.width-8))
	height := size.top + len(shown)*size.row + 4
	var out strings.Builder
	fmt.Fprintf(&out, `<svg class="spans" viewBox="0 0 %d %d" role="img" aria-label="Timeline of the run; the table below has the same data">`, size.width, height)
	for _, t := range scale.ticks(size.ticks) {
		fmt.Fprintf(&out, `<line class="axis" x1="%.1f" x2="%.1f" y1="%d" y2="%d"/><text class="tick" x="%.1f" y="%d" text-anchor="%s">%s</text>`,
			t.x, t.x, size.top-6, height, t.x, size.top-11, t.anchor, html.EscapeString(t.text))
	}
	for _, b := range scale.breaks {
		fmt.Fprintf(&out, `<path class="break" d="M%.1f %d V%d"/>`, b, size.top-4, height)
	}
	for i, s := range shown {
		top := size.top + i*size.row
		begin := scale.place(s.Began)
		length := max(scale.place(s.Began.Add(time.Duration(s.TookMS)*time.Millisecond))-begin, 2)
		class := s.Kind
		if s.Open {
			class += " open"
		}
		if strings.HasPrefix(s.State, "failed") || s.State == "lost" {
			class += " failed"
		}
		name, x, y := 34, 0, top+size.bar+1
		if size.label == 0 {
			name, x, y = 46, 0, top+11
			top += 16
		}
		fmt.Fprintf(&out, `<g class="%s"><title>%s: %s, %s</title><text class="name" x="%d" y="%d">%s</text><rect x="%.1f" y="%d" width="%.1f" height="%d" rx="3"/></g>`,
			class, SpanName(s.Kind), html.EscapeString(display.Short(s.Label, 200)), SpanTook(s), x, y, html.EscapeString(display.Short(s.Label, name)), begin, top+3, length, size.bar)
	}
	out.WriteString("</svg>")
	return out.String()
}

// SpanTook is how long a span took, in words.
func SpanTook(s operations.Span) string {
	text := cmp.Or(display.Took(s.TookMS), "no time")
	if s.Open {
		text += " so far"
	}
	return text
}

// SinceFirst is the start of a span, relative to the first one.
func SinceFirst(spans []operations.Span, s operations.Span) string {
	if d := s.Began.Sub(spans[0].Began); d > 0 {
		return sinceStart(d)
	}
	return "0"
}

// CutsWaits reports whether a timeline shortens some waits.
func CutsWaits(spans []operations.Span) bool { return len(newTimescale(spans, 0, 1).breaks) > 0 }
