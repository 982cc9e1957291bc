package pages

import (
	"fmt"
	"html"
	"net/http"
	"strconv"
	"strings"
	"time"

	template "github.com/DataDog/datadog-agent/pkg/template/html"

	"chorus/internal/operation"
	"chorus/internal/operations"
	"chorus/internal/transport/http/timescale"
)

// run shows what one run did, as a picture and as a table.
func (p *Pages) run(w http.ResponseWriter, r *http.Request, by operation.Caller) error {
	s, err := operations.GetSession.Call(r.Context(), p.Executor, by, operations.SessionRef{ID: r.PathValue("id")})
	if err != nil {
		return err
	}
	at, err := strconv.ParseInt(r.PathValue("seq"), 10, 64)
	if err != nil || at < 1 {
		return operation.Errorf(operation.NotFound, "there is no such run")
	}
	t, err := operations.GetTimeline.Call(r.Context(), p.Executor, by, operations.RunAt{ID: s.ID, At: at})
	if err != nil {
		return err
	}
	return p.render(w, http.StatusOK, "run.html", map[string]any{"Layout": p.layout(r, by, "Run"), "Session": s, "T": t, "Sums": spanSums(t.Spans), "Cut": len(timescale.New(t.Spans, 0, 1).Breaks) > 0,
		"Picture": drawTimeline(t.Spans, timelineWide), "SmallPicture": drawTimeline(t.Spans, timelineNarrow)})
}

// spanNames are the kinds of spans in the order of the legend, with their names.
var spanNames = []struct{ Kind, Name string }{
	{operations.SpanModel, "Model"}, {operations.SpanTool, "Tools"}, {operations.SpanAgent, "Other agents"},
	{operations.SpanPerson, "Waiting for people"}, {operations.SpanPause, "Waiting to try again"}, {operations.SpanQueue, "Waiting to begin"},
}

// spanName is the name of a kind of span.
func spanName(kind string) string {
	for _, n := range spanNames {
		if n.Kind == kind {
			return n.Name
		}
	}
	return kind
}

// spanSum is how long all spans of a kind took.
type spanSum struct {
	Kind, Name string
	MS         int64
	Count      int
}

func spanSums(spans []operations.Span) []spanSum {
	var out []spanSum
	for _, n := range spanNames {
		sum := spanSum{Kind: n.Kind, Name: n.Name}
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
	width, label  int // label is the room for the names, 0: they stand above the bars
	row, bar, top int
	ticks         int
}

var (
	timelineWide   = timelineSize{width: 940, label: 250, row: 26, bar: 14, top: 26, ticks: 8}
	timelineNarrow = timelineSize{width: 350, row: 38, bar: 12, top: 24, ticks: 4}
)

// maxDrawn is how many spans a picture shows; the table has them all.
const maxDrawn = 120

// drawTimeline draws spans below each other along the time. Long waits are drawn shorter, with a mark: an hour in which nobody answered
// would leave no room for what was done. "": there is nothing to draw.
func drawTimeline(spans []operations.Span, size timelineSize) template.HTML {
	if len(spans) == 0 {
		return ""
	}
	shown := spans[:min(len(spans), maxDrawn)]
	scale := timescale.New(shown, float64(size.label), float64(size.width-8))
	height := size.top + len(shown)*size.row + 4
	var out strings.Builder
	fmt.Fprintf(&out, `<svg class="spans" viewBox="0 0 %d %d" role="img" aria-label="The run along the time; the table below says the same">`, size.width, height)
	for _, t := range scale.Ticks(size.ticks) {
		fmt.Fprintf(&out, `<line class="axis" x1="%.1f" x2="%.1f" y1="%d" y2="%d"/><text class="tick" x="%.1f" y="%d" text-anchor="%s">%s</text>`,
			t.X, t.X, size.top-6, height, t.X, size.top-11, t.Anchor, html.EscapeString(t.Text))
	}
	for _, b := range scale.Breaks {
		fmt.Fprintf(&out, `<path class="break" d="M%.1f %d V%d"/>`, b, size.top-4, height)
	}
	for i, s := range shown {
		top := size.top + i*size.row
		begin := scale.X(s.Began)
		wide := max(scale.X(s.Began.Add(time.Duration(s.TookMS)*time.Millisecond))-begin, 2)
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
			class, spanName(s.Kind), html.EscapeString(short(s.Label, 200)), spanTook(s), x, y, html.EscapeString(short(s.Label, name)), begin, top+3, wide, size.bar)
	}
	out.WriteString("</svg>")
	return template.HTML(out.String())
}

// spanTook is how long a span took, in words.
func spanTook(s operations.Span) string {
	text := took(s.TookMS)
	if text == "" {
		text = "no time"
	}
	if s.Open {
		text += " so far"
	}
	return text
}

// sinceFirst is when a span began, counted from the first one.
func sinceFirst(spans []operations.Span, s operations.Span) string {
	if d := s.Began.Sub(spans[0].Began); d > 0 {
		return timescale.Short(d)
	}
	return "0"
}
