// Package doctor runs checks side by side and puts what they found into one report.
//
// It promises that the report has every section in the order the checks were given in,
// that a check which hangs or panics becomes a line of the report instead of the end of
// it, that every line which is not well says what to do, and that the report is whole
// when the slowest check's time is over. What is checked is app's affair.
package doctor

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"
)

// Mark says how something is.
type Mark string

// The marks. A note is neither good nor bad: something that is not there and need not
// be, or that could not be looked at because of something else that is broken.
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
	Fix    string `json:"fix,omitempty"` // what to do, a command where there is one
}

// Good, Noted, Warning and Bad make findings; the last three with what to do.
func Good(name, format string, args ...any) Finding {
	return Finding{Name: name, Mark: OK, Detail: fmt.Sprintf(format, args...)}
}

// Noted is neither good nor bad.
func Noted(name, fix, format string, args ...any) Finding {
	return Finding{Name: name, Mark: Note, Detail: fmt.Sprintf(format, args...), Fix: fix}
}

// Warning is something that works, but not as well as it should.
func Warning(name, fix, format string, args ...any) Finding {
	return Finding{Name: name, Mark: Warn, Detail: fmt.Sprintf(format, args...), Fix: fix}
}

// Bad is something that does not work.
func Bad(name, fix, format string, args ...any) Finding {
	return Finding{Name: name, Mark: Broken, Detail: fmt.Sprintf(format, args...), Fix: fix}
}

// Check looks at one thing. Several checks may share a section.
type Check struct {
	Section string
	Within  time.Duration // it is not waited for any longer; 0: 3 seconds
	Do      func(context.Context) []Finding
}

// defaultWithin is long for anything on this machine.
const defaultWithin = 3 * time.Second

// grace is what a check has left to say that its time was over.
const grace = 200 * time.Millisecond

// Section is what was found about one part.
type Section struct {
	Name     string    `json:"name"`
	Findings []Finding `json:"findings"`
}

// Report is all that was found.
type Report struct {
	OK       bool      `json:"ok"` // nothing is broken; there may be warnings
	Broken   int       `json:"broken"`
	Warnings int       `json:"warnings"`
	Sections []Section `json:"sections"`
}

// Run makes all checks at the same time. heard, which may be nil, is told which
// sections are still looked at, whenever one less is; never by two goroutines at once.
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

// names are the sections with a check that is not done, each once.
func names(checks []Check, done []bool) []string {
	var out []string
	for i, c := range checks {
		if !done[i] && !slices.Contains(out, c.Section) {
			out = append(out, c.Section)
		}
	}
	return out
}

// run waits for the check, but not for ever: what hangs in a dead file system
// hears of no deadline.
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
				result <- []Finding{Bad(c.Section, "tell us what is written here", "the check itself failed: %v", r)}
			}
		}()
		result <- c.Do(ctx)
	}()
	timer := time.NewTimer(within + grace)
	defer timer.Stop()
	select {
	case found := <-result:
		return found
	case <-timer.C:
		return []Finding{Bad(c.Section, "try again; if it stays so, look what holds it up", "no answer in %s", within)}
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

// Before puts a section in front of the others; an empty one is left out.
func (r *Report) Before(section string, found []Finding) {
	if len(found) == 0 {
		return
	}
	first := gather([]Check{{Section: section}}, [][]Finding{found})
	r.Sections = append(first.Sections, r.Sections...)
	r.Broken, r.Warnings = r.Broken+first.Broken, r.Warnings+first.Warnings
	r.OK = r.Broken == 0
}
