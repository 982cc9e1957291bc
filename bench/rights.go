package main

import (
	"fmt"
	"time"

	"chorus/internal/permit"
	"chorus/internal/permit/permittest"
)

// The bars of a permission decision.
const (
	barCommand = 50.0 // µs for a command of 200 characters
	barScript  = 5.0  // ms for a script of 10 KB
)

// rounds is how often each thing is timed here: a round is short, and a quantile needs
// several.
const rounds = 30

// rightsRows measure permission decisions, each by its worst case.
func rightsRows(q float64) ([]row, error) {
	command, _, err := slowest(map[string]string{"everyday": permittest.Everyday}, 100, q)
	if err != nil {
		return nil, err
	}
	script, kind, err := slowest(permittest.Scripts(), 1, q)
	if err != nil {
		return nil, err
	}
	return []row{
		{what: "permission decision, 200-character command", unit: "µs", chorus: 1000 * command, value: 1000 * command, bar: barCommand, how: "%.1f µs"},
		{what: fmt.Sprintf("permission decision, 10 KB script, worst kind (%s)", kind), unit: "ms", chorus: script, value: script, bar: barScript, how: "%.2f ms"},
	}, nil
}

// slowest judges every command under every preset, and gives the longest time in
// milliseconds and of which kind it was. They alternate, so that a slow moment of the
// machine affects all of them alike.
func slowest(commands map[string]string, times int, q float64) (ms float64, kind string, err error) {
	opt := permit.JudgeOptions{Home: "/home/u/.chorus", Workspace: "/home/u/project", UserHome: "/home/u"}
	type judged struct {
		kind string
		do   func()
		took []float64
	}
	var all []*judged
	for _, preset := range permit.Presets() {
		profile, err := permit.Preset(preset)
		if err != nil {
			return 0, "", err
		}
		for name, command := range commands {
			requests := []permit.Request{{Tool: "bash", Command: command}}
			all = append(all, &judged{kind: name, do: func() { profile.Judge(requests, opt) }})
		}
	}
	for range rounds {
		for _, j := range all {
			j.took = append(j.took, timed(0.5, j.do, times, 1))
		}
	}
	for _, j := range all {
		if took := quantile(j.took, q); took > ms {
			ms, kind = took, j.kind
		}
	}
	return ms, kind, nil
}

// timed is the quantile of some rounds, in milliseconds for one time.
func timed(q float64, do func(), times, rounds int) float64 {
	do() // not counted: it fills pools
	var all []float64
	for range rounds {
		start := time.Now()
		for range times {
			do()
		}
		all = append(all, float64(time.Since(start).Nanoseconds())/1e6/float64(times))
	}
	return quantile(all, q)
}
