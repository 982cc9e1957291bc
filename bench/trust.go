package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"chorus/internal/permit"
	"chorus/internal/permit/permittest"
	"chorus/internal/sandbox"
	"chorus/internal/sandbox/bwrap"
	"chorus/internal/sandbox/host"
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

// sandboxRows measure what it costs to start a command, without a sandbox and in one.
func (b *stand) sandboxRows(ctx context.Context, q float64) ([]row, error) {
	if err := b.program(ctx); err != nil {
		return nil, err
	}
	bare, err := b.started(ctx, host.New(os.Environ()), sandbox.Command{Shell: "true"}, q, rounds)
	if err != nil {
		return nil, err
	}
	rows := []row{{what: "one command (true), host", unit: "ms", chorus: bare}}
	sandboxed := bwrap.New(bwrap.Options{Environ: os.Environ()})
	defer sandboxed.Close()
	if err := sandboxed.Probe(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "bwrap is not measured:", err)
		return rows, nil
	}
	free := func(sandbox.Exec) (func(context.Context) error, error) { return nil, nil }
	const programs = "i=0; while [ $i -lt 200 ]; do /bin/true; i=$((i+1)); done"
	commands := map[string]sandbox.Command{"one": {Shell: "true"}, "one, gate": {Shell: "true", Judge: free},
		"many": {Shell: programs}, "many, gate": {Shell: programs, Judge: free}}
	took := map[string]float64{}
	for name, command := range commands {
		n := rounds
		if command.Shell == programs {
			n = min(n, 20)
		}
		if took[name], err = b.started(ctx, sandboxed, command, q, n); err != nil {
			return nil, err
		}
	}
	return append(rows,
		row{what: "one command (true), bwrap (beside: host)", unit: "ms", floor: bare, chorus: took["one"]},
		row{what: "… of it the sandbox", unit: "ms", chorus: took["one"] - bare},
		row{what: "… with every program judged", unit: "ms", chorus: took["one, gate"] - bare},
		row{what: "a command that starts 200 programs, each judged (beside: none)", unit: "ms", floor: took["many"], chorus: took["many, gate"]}), nil
}

// started is the time of one command.
func (b *stand) started(ctx context.Context, on sandbox.Executor, command sandbox.Command, q float64, rounds int) (float64, error) {
	command.Dir, command.Timeout = b.dir, time.Minute
	var failed error
	took := timed(q, func() {
		res, err := on.Run(ctx, command)
		if err == nil && res.ExitCode != 0 {
			err = fmt.Errorf("exit code %d: %s", res.ExitCode, res.Stderr)
		}
		if err != nil && failed == nil {
			failed = fmt.Errorf("run %q by %s: %w", command.Shell, on.Name(), err)
		}
	}, 1, rounds)
	return took, failed
}
