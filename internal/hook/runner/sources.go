package runner

import (
	"slices"

	"chorus/internal/bus"
)

// SourceDeps is what sources of events read from.
type SourceDeps struct {
	Journal JournalStore
	Work    WorkStore
	Bus     *bus.Bus
}

// sourceKind is a source that there can be: the types of its events, and how it is opened.
type sourceKind struct {
	types func() []string
	open  func(SourceDeps) (Source, func())
}

// sourceKinds are the sources of events. Another one is added here, and nowhere else.
func sourceKinds() []sourceKind {
	return []sourceKind{
		{JournalTypes, func(d SourceDeps) (Source, func()) {
			j := NewJournal(d.Journal, d.Bus)
			return j, j.Close
		}},
		{WorkTypes, func(d SourceDeps) (Source, func()) {
			w := NewWork(d.Work, d.Bus)
			return w, w.Close
		}},
	}
}

// EventTypes are the types of events that can trigger a hook, of all sources.
func EventTypes() (out []string) {
	for _, k := range sourceKinds() {
		out = append(out, k.types()...)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// OpenSources opens every source; the function closes them.
func OpenSources(d SourceDeps) (out []Source, closeAll func()) {
	var closes []func()
	for _, k := range sourceKinds() {
		s, end := k.open(d)
		out, closes = append(out, s), append(closes, end)
	}
	return out, func() {
		for _, end := range closes {
			end()
		}
	}
}
