package main

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"
)

// event is one line of `go test -json`.
type event struct {
	Action  string
	Package string
	Test    string
	Elapsed float64 // seconds
	Output  string
}

// results is what one run of go test reported for each package.
type results struct {
	packages map[string]*packageResult
}

type packageResult struct {
	failed  bool
	elapsed time.Duration
	tests   map[string]string // the last action of each test: run, pause, pass, fail, skip
	race    bool
	whole   bool // all tests of the package have run
}

// readResults reads a stream of events. A line that is not JSON is an error, because go test does not write such lines.
func readResults(r io.Reader) (results, error) {
	res := results{packages: map[string]*packageResult{}}
	dec := json.NewDecoder(bufio.NewReader(r))
	for {
		var e event
		switch err := dec.Decode(&e); {
		case errors.Is(err, io.EOF):
			return res, nil
		case err != nil:
			return results{}, err
		}
		if e.Package != "" { // build output belongs to an import path instead; the package itself also fails
			res.add(e)
		}
	}
}

func (r results) add(e event) {
	p := r.packages[e.Package]
	if p == nil {
		p = &packageResult{tests: map[string]string{}}
		r.packages[e.Package] = p
	}
	switch e.Action {
	case "output":
		p.race = p.race || strings.Contains(e.Output, "DATA RACE")
		// The testing package prints this line after the last test, but never after a panic, a timeout or os.Exit.
		p.whole = p.whole || e.Test == "" && e.Output == "FAIL\n"
	case "run", "pause", "cont", "pass", "fail", "skip":
		if e.Action == "cont" { // a parallel test that continues
			e.Action = "run"
		}
		if e.Test != "" {
			p.tests[e.Test] = e.Action
			return
		}
		p.failed = p.failed || e.Action == "fail"
		p.elapsed = time.Duration(e.Elapsed * float64(time.Second))
	}
}

func (r results) names() []string { return slices.Sorted(maps.Keys(r.packages)) }

// leaves returns the failed tests except those that failed because of a subtest.
func (p *packageResult) leaves() []string { return p.ending("fail") }

// ending returns the tests whose last action is this one, except those with a subtest of the same action.
func (p *packageResult) ending(action string) []string {
	var out []string
	for _, name := range slices.Sorted(maps.Keys(p.tests)) {
		parent := func(other string) bool { return p.tests[other] == action && strings.HasPrefix(other, name+"/") }
		if p.tests[name] == action && !slices.ContainsFunc(slices.Collect(maps.Keys(p.tests)), parent) {
			out = append(out, name)
		}
	}
	return out
}

// unfinished returns the tests that were running when the package stopped, or else those that were waiting to run.
func (p *packageResult) unfinished() []string {
	if running := p.ending("run"); len(running) > 0 {
		return running
	}
	return p.ending("pause")
}

// failed returns the failed tests of all packages.
func (r results) failed() []string {
	var out []string
	for _, pkg := range r.names() {
		for _, test := range r.packages[pkg].leaves() {
			out = append(out, pkg+" "+test)
		}
	}
	return out
}

// final returns the failures that a second run cannot excuse.
func (r results) final() []string {
	var out []string
	for _, pkg := range r.names() {
		p := r.packages[pkg]
		unfinished := p.unfinished()
		switch rerunnable := len(p.leaves()) > 0; {
		case !p.failed:
		case p.race:
			out = append(out, pkg+": data race")
		case len(p.tests) == 0:
			out = append(out, pkg+": no test ran (does it build?)")
		case len(unfinished) > 0:
			out = append(out, pkg+": stopped before its last test (panic, timeout or exit), in "+strings.Join(unfinished, ", "))
		case rerunnable && !p.whole:
			out = append(out, pkg+": stopped before its last test (panic, timeout or exit)")
		case !rerunnable:
			out = append(out, pkg+": failed outside of its tests")
		}
	}
	return out
}

// pattern returns the argument of -run that selects exactly these tests.
func pattern(tests []string) string {
	var alternatives []string
	for _, test := range tests {
		parts := strings.Split(test, "/")
		for i, part := range parts {
			parts[i] = "^" + regexp.QuoteMeta(part) + "$"
		}
		alternatives = append(alternatives, strings.Join(parts, "/"))
	}
	return strings.Join(alternatives, "|")
}

// print writes the slowest packages and the totals.
func (r results) print(w io.Writer, took time.Duration) {
	const most = 10
	names := r.names()
	slices.SortStableFunc(names, func(a, b string) int { return -cmp.Compare(r.packages[a].elapsed, r.packages[b].elapsed) })
	fmt.Fprintf(w, "\nSlowest packages:\n")
	for _, name := range names[:min(most, len(names))] {
		fmt.Fprintf(w, "%8.1fs  %s\n", r.packages[name].elapsed.Seconds(), name)
	}
	var tests, skipped int
	for _, p := range r.packages {
		for _, action := range p.tests {
			tests++
			if action == "skip" {
				skipped++
			}
		}
	}
	fmt.Fprintf(w, "\n%d tests in %d packages, %d skipped, %s\n", tests, len(names), skipped, took.Round(time.Second))
}

// verdict is what remains to report after the second run.
type verdict struct {
	flaky   []string // failed, then passed
	failed  []string // failed and not excused
	reasons []string // failures that belong to no test, and why nothing was run again
}

func (v verdict) ok() bool { return len(v.failed) == 0 && len(v.reasons) == 0 }

// judge adds the results of the second run of these tests of the package. Only a test that was seen to pass has passed.
func (v *verdict) judge(pkg string, tests []string, second results, passed bool) {
	p := cmp.Or(second.packages[pkg], &packageResult{})
	again := 0
	for _, test := range tests {
		if p.tests[test] == "pass" {
			v.flaky = append(v.flaky, pkg+" "+test)
			continue
		}
		again++
		v.failed = append(v.failed, pkg+" "+test)
	}
	switch {
	case p.race:
		v.reasons = append(v.reasons, pkg+": data race in the second run")
	case !passed && again == 0:
		v.reasons = append(v.reasons, pkg+": the second run failed outside of these tests")
	}
}

func (v verdict) print(w io.Writer, file string) {
	for _, reason := range v.reasons {
		fmt.Fprintln(w, "FAILED", reason)
	}
	for _, test := range v.failed {
		fmt.Fprintln(w, "FAILED", test)
	}
	if len(v.flaky) > 0 {
		fmt.Fprintf(w, "\nThese tests failed once and passed when they were run again (%s):\n", file)
	}
	for _, test := range v.flaky {
		fmt.Fprintln(w, "FLAKY", test)
	}
}

// lines joins the strings, each with a line break.
func lines(all []string) []byte {
	var out []byte
	for _, s := range all {
		out = append(append(out, s...), '\n')
	}
	return out
}
