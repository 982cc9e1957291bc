package runner

import (
	"slices"

	"chorus/internal/bus"
)

// SourceDeps is what event sources read from.
type SourceDeps struct {
	Journal JournalStore
	Work    WorkStore
	Bus     *bus.Bus
}

// sourceKind is a kind of source: its event types, and how to open it.
type sourceKind struct {
	types func() []string
	open  func(SourceDeps) (Source, func())
}

// sourceKinds lists the event sources. New ones only need to be added here.
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

// EventTypes returns the event types of all sources that can trigger a hook.
func EventTypes() (out []string) {
	for _, k := range sourceKinds() {
		out = append(out, k.types()...)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// OpenSources opens every source. The returned function closes them.
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
