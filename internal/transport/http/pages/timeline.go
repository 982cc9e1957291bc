package pages

import (
	"fmt"
	"html"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	template "github.com/DataDog/datadog-agent/pkg/template/html"

	"chorus/internal/operation"
	"chorus/internal/operations"
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
	return p.render(w, http.StatusOK, "run.html", map[string]any{"Layout": p.layout(r, by, "Run"), "Session": s, "T": t, "Sums": spanSums(t.Spans), "Cut": len(newTimeScale(t.Spans, 0, 1).breaks) > 0,
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
	scale := newTimeScale(shown, float64(size.label), float64(size.width-8))
	height := size.top + len(shown)*size.row + 4
	var out strings.Builder
	fmt.Fprintf(&out, `<svg class="spans" viewBox="0 0 %d %d" role="img" aria-label="The run along the time; the table below says the same">`, size.width, height)
	for _, t := range scale.ticks(size.ticks) {
		fmt.Fprintf(&out, `<line class="axis" x1="%.1f" x2="%.1f" y1="%d" y2="%d"/><text class="tick" x="%.1f" y="%d" text-anchor="%s">%s</text>`,
			t.x, t.x, size.top-6, height, t.x, size.top-11, t.anchor, html.EscapeString(t.text))
	}
	for _, b := range scale.breaks {
		fmt.Fprintf(&out, `<path class="break" d="M%.1f %d V%d"/>`, b, size.top-4, height)
	}
	for i, s := range shown {
		top := size.top + i*size.row
		begin := scale.x(s.Began)
		wide := max(scale.x(s.Began.Add(time.Duration(s.TookMS)*time.Millisecond))-begin, 2)
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
		return spanShort(d)
	}
	return "0"
}

// timeScale gives each moment a place. Stretches in which a run only waits are cut down.
type timeScale struct {
	stretches []stretch
	breaks    []float64 // where a wait is cut down
}

// stretch is a part of the time that is drawn in one measure.
type stretch struct {
	from, to time.Time
	x0, x1   float64
	cut      bool
}

// waits reports a span in which the run itself does nothing.
func waits(s operations.Span) bool {
	return s.Kind == operations.SpanPerson || s.Kind == operations.SpanQueue || s.Kind == operations.SpanPause
}

func newTimeScale(spans []operations.Span, left, right float64) timeScale {
	if len(spans) == 0 {
		return timeScale{}
	}
	var edges []time.Time
	for _, s := range spans {
		edges = append(edges, s.Began, s.Began.Add(time.Duration(s.TookMS)*time.Millisecond))
	}
	slices.SortFunc(edges, time.Time.Compare)
	edges = slices.CompactFunc(edges, time.Time.Equal)
	works := func(from, to time.Time) bool {
		return slices.ContainsFunc(spans, func(s operations.Span) bool {
			return !waits(s) && s.Began.Before(to) && s.Began.Add(time.Duration(s.TookMS)*time.Millisecond).After(from)
		})
	}
	var busy time.Duration
	var out timeScale
	for i := 1; i < len(edges); i++ {
		st := stretch{from: edges[i-1], to: edges[i]}
		if st.cut = !works(st.from, st.to); !st.cut {
			busy += st.to.Sub(st.from)
		}
		out.stretches = append(out.stretches, st)
	}
	most := max(busy/4, 200*time.Millisecond) // of a wait that is drawn as long as it was
	drawn := func(st stretch) time.Duration {
		if d := st.to.Sub(st.from); !st.cut || d < most {
			return d
		}
		return most
	}
	var all time.Duration
	for _, st := range out.stretches {
		all += drawn(st)
	}
	x := left
	for i := range out.stretches {
		st := &out.stretches[i]
		wide := (right - left) * float64(drawn(*st)) / float64(max(all, 1))
		st.x0, st.x1 = x, x+wide
		x += wide
		if st.cut = st.cut && st.to.Sub(st.from) > most; st.cut {
			out.breaks = append(out.breaks, st.x0+wide/2)
		}
	}
	if len(out.stretches) == 0 {
		out.stretches = []stretch{{from: edges[0], to: edges[0].Add(time.Millisecond), x0: left, x1: right}}
	}
	return out
}

// x is the place of a moment.
func (t timeScale) x(at time.Time) float64 {
	for _, st := range t.stretches {
		if !at.After(st.to) {
			if at.Before(st.from) {
				return st.x0
			}
			return st.x0 + (st.x1-st.x0)*float64(at.Sub(st.from))/float64(max(st.to.Sub(st.from), 1))
		}
	}
	return t.stretches[len(t.stretches)-1].x1
}

// tick is a moment that is named on the axis.
type tick struct {
	x      float64
	text   string
	anchor string
}

// tickSteps are the distances of ticks that people can count in.
var tickSteps = []time.Duration{time.Millisecond, 5 * time.Millisecond, 10 * time.Millisecond, 50 * time.Millisecond, 100 * time.Millisecond, 500 * time.Millisecond, time.Second,
	2 * time.Second, 5 * time.Second, 10 * time.Second, 30 * time.Second, time.Minute, 2 * time.Minute, 5 * time.Minute, 10 * time.Minute, 30 * time.Minute, time.Hour, 6 * time.Hour, 24 * time.Hour}

// ticks names about so many moments since the beginning, none within a wait that is cut down.
func (t timeScale) ticks(about int) []tick {
	first, last := t.stretches[0], t.stretches[len(t.stretches)-1]
	var shown time.Duration
	for _, st := range t.stretches {
		if !st.cut {
			shown += st.to.Sub(st.from)
		}
	}
	step := tickSteps[len(tickSteps)-1]
	for _, s := range tickSteps {
		if shown/s <= time.Duration(about) {
			step = s
			break
		}
	}
	apart := (last.x1 - first.x0) / float64(about+1)
	out := []tick{{x: first.x0, text: "0", anchor: "start"}}
	for _, st := range t.stretches {
		if st.cut {
			continue
		}
		since := st.from.Sub(first.from)
		for at := (since/step + 1) * step; at <= st.to.Sub(first.from); at += step {
			x := t.x(first.from.Add(at))
			if x-out[len(out)-1].x >= apart*.7 && x < last.x1-apart*.3 {
				out = append(out, tick{x, spanShort(at), "middle"})
			}
		}
	}
	return out
}

// spanShort is a time since the beginning, in few letters.
func spanShort(d time.Duration) string {
	switch {
	case d < time.Second:
		return fmt.Sprintf("%d ms", d.Milliseconds())
	case d < time.Minute:
		return strconv.FormatFloat(d.Seconds(), 'g', 4, 64) + " s"
	case d < time.Hour:
		return fmt.Sprintf("%d:%02d min", int(d.Minutes()), int(d.Seconds())%60)
	}
	return fmt.Sprintf("%d:%02d h", int(d.Hours()), int(d.Minutes())%60)
}
