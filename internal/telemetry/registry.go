package telemetry

import (
	"math"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
)

// registry is what can be scraped, in the order in which it was described. Describing
// is for the start; numbers may change from any goroutine.
type registry struct {
	families []*family
}

// family is one metric with all of its label values.
type family struct {
	name, help, kind string
	labels           []string
	bounds           []float64 // upper bounds of a histogram's buckets, rising, without infinity
	now              func() (float64, bool)

	mu     sync.RWMutex
	series map[string]*series
}

// maxSeries is how many combinations of label values a metric may have. What is beyond is
// counted under "other": a mistake in a label must not eat the memory.
const maxSeries = 256

// series is one number, or one histogram.
type series struct {
	values  []string
	bits    atomic.Uint64   // the number; of a histogram, its sum
	buckets []atomic.Uint64 // not cumulative; the last is for everything above the bounds
}

// add raises a number.
func (s *series) add(by float64) {
	for {
		old := s.bits.Load()
		if s.bits.CompareAndSwap(old, math.Float64bits(math.Float64frombits(old)+by)) {
			return
		}
	}
}

func (s *series) set(to float64) { s.bits.Store(math.Float64bits(to)) }
func (s *series) get() float64   { return math.Float64frombits(s.bits.Load()) }

// vec is a metric with labels; kind is "counter" or "gauge".
func (r *registry) vec(name, help, kind string, labels ...string) *family {
	f := &family{name: name, help: help, kind: kind, labels: labels, series: map[string]*series{}}
	r.families = append(r.families, f)
	return f
}

// counter is a number that only rises.
func (r *registry) counter(name, help string) *series { return r.vec(name, help, "counter").with() }

// gauge is a number that is computed when somebody scrapes; false: it is not known.
func (r *registry) gauge(name, help string, now func() (float64, bool)) {
	r.vec(name, help, "gauge").now = now
}

// counterFunc is gauge for a number that only rises.
func (r *registry) counterFunc(name, help string, now func() (float64, bool)) {
	r.vec(name, help, "counter").now = now
}

// histogram counts observations by size.
func (r *registry) histogram(name, help string, bounds []float64, labels ...string) *family {
	f := r.vec(name, help, "histogram", labels...)
	f.bounds = bounds
	return f
}

// with is the series of these label values, one for each label.
func (f *family) with(values ...string) *series {
	key := strings.Join(values, "\xff")
	f.mu.RLock()
	s := f.series[key]
	f.mu.RUnlock()
	if s != nil {
		return s
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if s = f.series[key]; s != nil {
		return s
	}
	if len(f.series) >= maxSeries {
		values = slices.Repeat([]string{"other"}, len(f.labels))
		key = strings.Join(values, "\xff")
		if s = f.series[key]; s != nil {
			return s
		}
	}
	s = &series{values: slices.Clone(values)}
	if f.bounds != nil {
		s.buckets = make([]atomic.Uint64, len(f.bounds)+1)
	}
	f.series[key] = s
	return s
}

// observe puts a value into a histogram.
func (f *family) observe(value float64, values ...string) {
	s := f.with(values...)
	at, _ := slices.BinarySearch(f.bounds, value) // the first bound that is not below it
	s.buckets[at].Add(1)
	s.add(value)
}

// sorted are the series by their label values, so that two scrapes can be compared.
func (f *family) sorted() []*series {
	f.mu.RLock()
	defer f.mu.RUnlock()
	out := make([]*series, 0, len(f.series))
	for _, s := range f.series {
		out = append(out, s)
	}
	slices.SortFunc(out, func(a, b *series) int { return slices.Compare(a.values, b.values) })
	return out
}
