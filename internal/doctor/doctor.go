// Package doctor runs checks in parallel and combines their findings into one report.
//
// It promises that:
//   - the report has every section, in the order in which the checks were given;
//   - a check that hangs or panics becomes a line of the report instead of ending it;
//   - every line that is not good says what to do;
//   - the report is complete when the slowest check's time is over.
//
// The app decides what is checked.
package doctor

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"
)

// Mark says in what state something is.
type Mark string

// The marks. A note is neither good nor bad: it is about something that is missing but
// optional, or that could not be checked because something else is broken.
const (
	OK     Mark = "ok"
	Note   Mark = "note"
	Warn   Mark = "warn"
	Broken Mark = "broken"
)

// Finding is one line of the report.
type Finding struct {
	Name   string `json:"name"`
	Mark   Mark   `json:"mark"`
	Detail string `json:"detail"`
	Fix    string `json:"fix,omitempty"` // what to do, as a command if there is one
}

// Good, Noted, Warning and Bad return findings. The last three say what to do.
func Good(name, format string, args ...any) Finding {
	return Finding{Name: name, Mark: OK, Detail: fmt.Sprintf(format, args...)}
}

// Noted is neither good nor bad.
func Noted(name, fix, format string, args ...any) Finding {
	return Finding{Name: name, Mark: Note, Detail: fmt.Sprintf(format, args...), Fix: fix}
}

// Warning is about something that works, but not as well as it should.
func Warning(name, fix, format string, args ...any) Finding {
	return Finding{Name: name, Mark: Warn, Detail: fmt.Sprintf(format, args...), Fix: fix}
}

// Bad is about something that does not work.
func Bad(name, fix, format string, args ...any) Finding {
	return Finding{Name: name, Mark: Broken, Detail: fmt.Sprintf(format, args...), Fix: fix}
}

// Check checks one thing. Several checks may share a section.
type Check struct {
	Section string
	Within  time.Duration // how long to wait for it; 0: 3 seconds
	Do      func(context.Context) []Finding
}

// defaultWithin is long for anything on this machine.
const defaultWithin = 3 * time.Second

// grace is what a check has left to report that its time was over.
const grace = 200 * time.Millisecond

// Section is what was found about one part.
type Section struct {
	Name     string    `json:"name"`
	Findings []Finding `json:"findings"`
}

// Report is everything that was found.
type Report struct {
	OK       bool      `json:"ok"` // nothing is broken; there may be warnings
	Broken   int       `json:"broken"`
	Warnings int       `json:"warnings"`
	Sections []Section `json:"sections"`
}

// Run runs all checks at the same time. heard receives the sections that are not finished whenever
// one finishes; it may be nil, and is never called by two goroutines at once.
func Run(ctx context.Context, checks []Check, heard func(waiting []string)) Report {
	if heard == nil {
		heard = func([]string) {}
	}
	var mu sync.Mutex
	var all sync.WaitGroup
	found := make([][]Finding, len(checks))
	done := make([]bool, len(checks))
	heard(names(checks, done))
	for i, c := range checks {
		all.Go(func() {
			result := c.run(ctx)
			mu.Lock()
			defer mu.Unlock()
			found[i], done[i] = result, true
			heard(names(checks, done))
		})
	}
	all.Wait()
	return gather(checks, found)
}

// names returns the sections with an unfinished check, each once.
func names(checks []Check, done []bool) []string {
	var out []string
	for i, c := range checks {
		if !done[i] && !slices.Contains(out, c.Section) {
			out = append(out, c.Section)
		}
	}
	return out
}

// run waits for the check, but not forever: a check that hangs in a dead file system ignores its deadline.
func (c Check) run(ctx context.Context) []Finding {
	within := c.Within
	if within <= 0 {
		within = defaultWithin
	}
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	result := make(chan []Finding, 1)
	go func() {
		defer func() {
			if r := recover(); r != nil {
				result <- []Finding{Bad(c.Section, "report what is written here", "the check itself failed: %v", r)}
			}
		}()
		result <- c.Do(ctx)
	}()
	select {
	case found := <-result:
		return found
	case <-time.After(within + grace):
		return []Finding{Bad(c.Section, "try again; if it remains, find out what blocks it", "no answer in %s", within)}
	}
}

func gather(checks []Check, found [][]Finding) Report {
	r := Report{Sections: []Section{}}
	for i, c := range checks {
		at := slices.IndexFunc(r.Sections, func(s Section) bool { return s.Name == c.Section })
		if at < 0 {
			at = len(r.Sections)
			r.Sections = append(r.Sections, Section{Name: c.Section, Findings: []Finding{}})
		}
		r.Sections[at].Findings = append(r.Sections[at].Findings, found[i]...)
		for _, f := range found[i] {
			switch f.Mark {
			case Broken:
				r.Broken++
			case Warn:
				r.Warnings++
			case OK, Note:
			}
		}
	}
	r.OK = r.Broken == 0
	return r
}

// Before inserts a section before the others, unless it is empty.
func (r *Report) Before(section string, found []Finding) {
	if len(found) == 0 {
		return
	}
	first := gather([]Check{{Section: section}}, [][]Finding{found})
	r.Sections = append(first.Sections, r.Sections...)
	r.Broken, r.Warnings = r.Broken+first.Broken, r.Warnings+first.Warnings
	r.OK = r.Broken == 0
}
