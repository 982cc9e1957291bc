package charts

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	"chorus/internal/operations"
)

// timescale maps the time of a run to positions on a line. Stretches in which a run only waits are shortened.
type timescale struct {
	stretches []stretch
	breaks    []float64 // where a wait is shortened
}

// stretch is a part of the time with one scale.
type stretch struct {
	from, to time.Time
	x0, x1   float64
	cut      bool
}

// waits reports a span in which the run itself does nothing.
func waits(s operations.Span) bool {
	return s.Kind == operations.SpanPerson || s.Kind == operations.SpanQueue || s.Kind == operations.SpanPause
}

// newTimescale maps spans to the space between two positions.
func newTimescale(spans []operations.Span, left, right float64) timescale {
	if len(spans) == 0 {
		return timescale{}
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
	var out timescale
	for i := 1; i < len(edges); i++ {
		st := stretch{from: edges[i-1], to: edges[i]}
		if st.cut = !works(st.from, st.to); !st.cut {
			busy += st.to.Sub(st.from)
		}
		out.stretches = append(out.stretches, st)
	}
	most := max(busy/4, 200*time.Millisecond) // of a wait that is drawn at full length
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

// place is the position of a moment.
func (t timescale) place(at time.Time) float64 {
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

// tick is a labelled moment on the axis.
type tick struct {
	x      float64
	text   string
	anchor string // of the text: start or middle
}

// tickSteps are round distances between ticks.
var tickSteps = []time.Duration{time.Millisecond, 5 * time.Millisecond, 10 * time.Millisecond, 50 * time.Millisecond, 100 * time.Millisecond, 500 * time.Millisecond, time.Second,
	2 * time.Second, 5 * time.Second, 10 * time.Second, 30 * time.Second, time.Minute, 2 * time.Minute, 5 * time.Minute, 10 * time.Minute, 30 * time.Minute, time.Hour, 6 * time.Hour, 24 * time.Hour}

// ticks returns about the given number of ticks, none of them within a shortened wait.
func (t timescale) ticks(about int) []tick {
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
			x := t.place(first.from.Add(at))
			if x-out[len(out)-1].x >= apart*.7 && x < last.x1-apart*.3 {
				out = append(out, tick{x, sinceStart(at), "middle"})
			}
		}
	}
	return out
}

// sinceStart formats the time since the start briefly.
func sinceStart(d time.Duration) string {
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
