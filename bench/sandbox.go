package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"chorus/internal/sandbox"
	"chorus/internal/sandbox/bwrap"
	"chorus/internal/sandbox/host"
)

// The bars of the sandbox.
const (
	barSandbox       = 1.0  // ms that a command takes more than on the host
	barJudged        = 1.3  // the same, with every program judged
	barPrograms      = 1.25 // of 200 programs that are not judged
	barDefaults      = 2.5  // wall per turn to the floor's, with everything on
	barSandboxRate   = 0.4  // of the floor's turns in a second
	barSandboxMemory = 4.0  // MB of private memory for each conversation, more than without
)

// sandboxSessions is how many conversations with a sandbox are held at once.
const sandboxSessions = 50

// programs is how many the long command starts.
const programs = 200

// sandboxRows measure what the sandbox costs: one command, one that starts many programs, whole turns and
// many conversations at once.
func (b *stand) sandboxRows(ctx context.Context, n int, q float64) ([]row, error) {
	if err := b.prepare(ctx); err != nil {
		return nil, err
	}
	program := filepath.Join(b.dir, "init") // as it is in Chorus
	if err := build(ctx, program, "./internal/sandbox/bwrap/inside/program"); err != nil {
		return nil, err
	}
	sandboxed := bwrap.New(bwrap.Options{Environ: os.Environ(), Init: program})
	defer sandboxed.Close()
	if err := sandboxed.Probe(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "bwrap is not measured:", err)
		return nil, nil
	}
	commands, err := b.commandRows(ctx, sandboxed, q)
	if err != nil {
		return nil, err
	}
	turns, err := b.defaultRows(ctx, n, q)
	if err != nil {
		return nil, err
	}
	many, err := b.manySandboxes(ctx, n, q)
	return append(append(commands, turns...), many...), err
}

// timedCommand is a command with the times that it took, in milliseconds.
type timedCommand struct {
	on      sandbox.Executor
	command sandbox.Command
	rounds  int
	took    []float64
}

// commandRows measure commands, all kinds by turns.
func (b *stand) commandRows(ctx context.Context, sandboxed sandbox.Executor, q float64) ([]row, error) {
	dir := filepath.Join(b.dir, "commands") // of their own: what lies below a workspace is looked at, too
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	if err := os.WriteFile(filepath.Join(dir, "Makefile"), []byte(makefile()), 0o644); err != nil {
		return nil, err
	}
	free := func(sandbox.Exec) (func(context.Context) error, error) { return nil, nil }
	bare := &timedCommand{on: host.New(os.Environ()), command: sandbox.Command{Shell: "true"}, rounds: 2 * rounds}
	one := &timedCommand{on: sandboxed, command: sandbox.Command{Shell: "true"}, rounds: 2 * rounds}
	judged := &timedCommand{on: sandboxed, command: sandbox.Command{Shell: "true", Judge: free}, rounds: 2 * rounds}
	many := &timedCommand{on: sandboxed, command: sandbox.Command{Shell: "make"}, rounds: rounds / 2}
	manyJudged := &timedCommand{on: sandboxed, command: sandbox.Command{Shell: "make", Judge: free}, rounds: rounds / 2}
	for i := range 2*rounds + 1 {
		for _, c := range []*timedCommand{bare, one, judged, many, manyJudged} {
			if i > c.rounds {
				continue
			}
			took, err := c.run(ctx, dir)
			if err != nil {
				return nil, err
			}
			if i > 0 { // the first puts a sandbox up
				c.took = append(c.took, took)
			}
		}
	}
	h, s, j := quantile(bare.took, q), quantile(one.took, q), quantile(judged.took, q)
	m, mj := quantile(many.took, q), quantile(manyJudged.took, q)
	return []row{
		{what: "one command (true), bwrap (beside: host)", unit: "ms", floor: h, chorus: s, value: s - h, bar: barSandbox, how: "+%.2f ms"},
		{what: "… with every program judged", unit: "ms", floor: h, chorus: j, value: j - h, bar: barJudged, how: "+%.2f ms"},
		{what: fmt.Sprintf("make with %d programs, each judged (beside: none)", programs), unit: "ms", floor: m, chorus: mj, value: mj / m, bar: barPrograms, how: "%.2f×"},
	}, nil
}

// makefile starts many programs, one after the other.
func makefile() string {
	var all, recipes strings.Builder
	for i := range programs {
		fmt.Fprintf(&all, " p%d", i)
		fmt.Fprintf(&recipes, "p%d:\n\t@/bin/true %d\n", i, i)
	}
	return "all:" + all.String() + "\n" + recipes.String()
}

func (c *timedCommand) run(ctx context.Context, dir string) (float64, error) {
	c.command.Dir, c.command.Timeout = dir, time.Minute
	start := time.Now()
	res, err := c.on.Run(ctx, c.command)
	took := time.Since(start)
	if err == nil && res.ExitCode != 0 {
		err = fmt.Errorf("exit code %d: %s", res.ExitCode, res.Stderr)
	}
	if err != nil {
		return 0, fmt.Errorf("run %q by %s: %w", c.command.Shell, c.on.Name(), err)
	}
	return ms(took.Nanoseconds()), nil
}

// defaultRows measure whole turns with everything on that is on by default.
func (b *stand) defaultRows(ctx context.Context, n int, q float64) ([]row, error) {
	var rows []row
	for _, turns := range []int{short, long} {
		took := map[string][]float64{}
		for i := range n + 1 {
			for _, name := range []string{"floor", "defaults"} {
				s, err := b.once(ctx, name, turns)
				if err != nil {
					return nil, err
				}
				if i > 0 {
					took[name] = append(took[name], s.turnWall())
				}
			}
		}
		f, c := quantile(took["floor"], q), quantile(took["defaults"], q)
		rows = append(rows, row{what: fmt.Sprintf("wall per turn in a sandbox, programs judged, %d turns", turns), unit: "ms", floor: f, chorus: c, value: c / f, bar: barDefaults, how: "%.2f×"})
	}
	return rows, nil
}

// manySandboxes measure the server with many conversations, each in a folder and a sandbox of its own, beside the floor
// and beside the same server without sandboxes.
func (b *stand) manySandboxes(ctx context.Context, n int, q float64) ([]row, error) {
	in := conversationLoad{sessions: sandboxSessions, config: sandboxConfig}
	for i := range sandboxSessions {
		dir := filepath.Join(b.dir, "folders", fmt.Sprint(i))
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return nil, err
		}
		in.dirs = append(in.dirs, dir)
	}
	without := in
	without.config = openConfig
	var floor, chorus, more []float64
	for i := range min(n, 3) {
		rate, _, err := b.floorLoad(ctx, sandboxSessions)
		if err != nil {
			return nil, err
		}
		floor = append(floor, rate)
		rate, with, err := b.serverLoad(ctx, fmt.Sprintf("sandboxes-%d", i), in)
		if err != nil {
			return nil, err
		}
		chorus = append(chorus, rate)
		_, bare, err := b.serverLoad(ctx, fmt.Sprintf("no-sandboxes-%d", i), without)
		if err != nil {
			return nil, err
		}
		more = append(more, (with.private-bare.private)/sandboxSessions)
	}
	f, c, m := quantile(floor, q), quantile(chorus, q), quantile(more, q)
	return []row{
		{what: fmt.Sprintf("turns a second, %d sessions of %d turns at once, each in a sandbox", sandboxSessions, short), unit: "/s", floor: f, chorus: c, value: c / f, bar: barSandboxRate, how: "%.2f×", least: true},
		{what: "… private memory of each, more than without a sandbox", unit: "MB", chorus: m, value: m, bar: barSandboxMemory, how: "%.1f MB"},
	}, nil
}
