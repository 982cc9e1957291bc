// Command bench measures Chorus against bench/floor, the least program that does the
// same loop, and checks the limits ("bars") of report.go.
//
// The model is a simulator without delay in a process of its own. Every run is a new
// process, the floor and Chorus alternately, so that whatever else the machine does
// affects both; figures are medians. Only whole conversations are measured: a run that
// did not make every turn and end well is an error, never a figure.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"time"
)

// The bench starts itself again as the simulator and as the parent of each run;
// modeVariable says as which. A parent that has sampleVariable watches its child's memory.
const (
	modeVariable   = "CHORUS_BENCH_MODE"
	sampleVariable = "CHORUS_BENCH_SAMPLE"
)

// The conversations: none to know what a start costs, a short one, a long one.
const (
	short = 20
	long  = 200
)

func main() {
	var err error
	switch os.Getenv(modeVariable) {
	case "simulate":
		err = simulate()
	case "echo":
		err = echo()
	case "launch":
		err = launch(os.Args[1:])
	default:
		err = bench(os.Args[1:])
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func bench(args []string) error {
	flags := flag.NewFlagSet("bench", flag.ExitOnError)
	n := flags.Int("n", 9, "how often each conversation is held")
	q := flags.Float64("q", 0.5, "which quantile of the runs counts; on a busy machine a low one says more")
	noFail := flags.Bool("no-fail", false, "exit 0 also when a bar is missed")
	results := flags.String("o", "bench/RESULTS.md", "where the figures go; empty: nowhere")
	chorus := flags.String("chorus", "", "a program to measure instead of building ./cmd/chorus")
	only := flags.String("only", "", "measure one part alone and write nothing: turns, rooms, rights, memory, skills, work, commits, nodes, sandbox, load, discord, rush, notify, costs or pages")
	_ = flags.Parse(args) // exits by itself
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt)
	defer cancel()

	dir, err := os.MkdirTemp("", "chorus-bench-*")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	b := &stand{dir: dir, chorus: *chorus}
	defer b.close()
	rep := report{runs: max(*n, 1), q: min(max(*q, 0), 1)}
	known := false
	for _, p := range b.parts(rep.runs, rep.q) {
		if *only != "" && *only != p.name {
			continue
		}
		known = true
		rows, err := p.rows(ctx)
		if err != nil {
			return err
		}
		rep.rows = append(rep.rows, rows...)
	}
	if !known {
		return fmt.Errorf("there is no part %q to measure; there are turns, rooms, rights, memory, skills, work, commits, nodes, sandbox, load, discord, rush, notify, costs and pages", *only)
	}
	fmt.Print(rep.table())
	if *results != "" && *only == "" {
		if err := rep.save(*results, machineFacts(), time.Now()); err != nil {
			return err
		}
	}
	if missed := rep.missed(); len(missed) > 0 && !*noFail {
		return fmt.Errorf("missed: %s", strings.Join(missed, "; "))
	}
	return nil
}

// part is some of the report, measured by itself.
type part struct {
	name string
	rows func(context.Context) ([]row, error)
}

// parts are all of the report, in its order.
func (b *stand) parts(n int, q float64) []part {
	return []part{
		{"turns", func(ctx context.Context) ([]row, error) { return b.turns(ctx, n, q) }},
		{"rooms", func(ctx context.Context) ([]row, error) { return roomRows(ctx, b.dir) }},
		{"rights", func(context.Context) ([]row, error) { return rightsRows(q) }},
		{"work", func(ctx context.Context) ([]row, error) { return workRows(ctx, b.dir, q) }},
		{"commits", func(ctx context.Context) ([]row, error) { return commitRows(ctx, b.dir) }},
		{"nodes", b.nodeRows},
		{"memory", func(ctx context.Context) ([]row, error) { return memoryRows(ctx, b.dir, q) }},
		{"skills", func(context.Context) ([]row, error) { return skillRows(b.dir, q) }},
		{"sandbox", func(ctx context.Context) ([]row, error) { return b.sandboxRows(ctx, n, q) }},
		{"load", func(ctx context.Context) ([]row, error) { return b.loadRows(ctx, n, q) }},
		{"discord", func(ctx context.Context) ([]row, error) { return b.discordRows(ctx, q) }},
		{"rush", func(ctx context.Context) ([]row, error) { return b.rushRows(ctx) }},
		{"notify", func(ctx context.Context) ([]row, error) { return notifyRows(ctx, b.dir) }},
		{"costs", func(ctx context.Context) ([]row, error) { return b.costRows(ctx, q) }},
		{"pages", func(ctx context.Context) ([]row, error) { return b.pageRows(ctx, q) }},
	}
}

// turns are the figures of whole conversations.
func (b *stand) turns(ctx context.Context, n int, q float64) ([]row, error) {
	if err := b.prepare(ctx); err != nil {
		return nil, err
	}
	m, err := b.measure(ctx, n)
	if err != nil {
		return nil, err
	}
	m.q = q
	return m.report().rows, nil
}

// stand is what the measurements share: the two programs, a repository, a data directory.
type stand struct {
	dir           string
	self          string
	floor, chorus string
	url           string
	sim           *exec.Cmd
	simEnd        io.Closer
}

func (b *stand) prepare(ctx context.Context) (err error) {
	if b.sim != nil {
		return nil // another part has done it
	}
	if b.self, err = os.Executable(); err != nil {
		return err
	}
	b.floor = filepath.Join(b.dir, "floor")
	if err := build(ctx, b.floor, "./bench/floor"); err != nil {
		return err
	}
	if err := b.program(ctx); err != nil {
		return err
	}
	if err := os.MkdirAll(b.repo(), 0o755); err != nil {
		return err
	}
	if err := run(exec.CommandContext(ctx, "git", "init", "-q", b.repo())); err != nil {
		return err
	}
	return b.startSimulator(ctx)
}

// program builds the chorus to measure, unless one was named.
func (b *stand) program(ctx context.Context) error {
	if b.chorus != "" {
		return nil
	}
	b.chorus = filepath.Join(b.dir, "chorus")
	if err := run(exec.CommandContext(ctx, "make", "-s", "build", "BIN="+b.chorus)); err != nil { // as it is shipped
		return err
	}
	return written(b.chorus)
}

// written leaves a program as a machine has it that was started after it was installed: on the disk, to be read from there. How a file was
// written decides how the kernel maps it: what the linker wrote costs each process that is measured 6 MB more, one large write 17 MB.
func written(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := f.Sync(); err != nil {
		return fmt.Errorf("write %s to the disk: %w", path, err)
	}
	return uncache(f)
}

func (b *stand) repo() string { return filepath.Join(b.dir, "repo") }

// build builds a program of ours without cgo and symbols, as Chorus is shipped.
func build(ctx context.Context, out, pkg string) error {
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-ldflags=-s -w", "-o", out, pkg)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if err := run(cmd); err != nil {
		return err
	}
	return written(out)
}

// run runs a command, and says what it printed if it fails.
func run(cmd *exec.Cmd) error {
	if text, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", strings.Join(cmd.Args, " "), err, text)
	}
	return nil
}

func (b *stand) startSimulator(ctx context.Context) error {
	b.sim = exec.CommandContext(ctx, b.self)
	b.sim.Env = append(os.Environ(), modeVariable+"=simulate")
	b.sim.Stderr = os.Stderr
	stdin, err := b.sim.StdinPipe()
	if err != nil {
		return err
	}
	stdout, err := b.sim.StdoutPipe()
	if err != nil {
		return err
	}
	if err := b.sim.Start(); err != nil {
		return err
	}
	b.simEnd = stdin
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		return fmt.Errorf("start the simulator: %w", err)
	}
	b.url = strings.TrimSpace(line)
	return nil
}

func (b *stand) close() {
	if b.sim == nil {
		return
	}
	_ = b.simEnd.Close()
	_ = b.sim.Wait() // it has nothing to say
}

// environ is the whole environment of both programs.
func (b *stand) environ() []string {
	return []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + b.dir, "TMPDIR=" + b.dir, "NO_COLOR=1",
		"CHORUS_HOME=" + filepath.Join(b.dir, "home"),
		"ANTHROPIC_BASE_URL=" + b.url, "ANTHROPIC_API_KEY=test-key",
	}
}

const prompt = "Do the steps, one after the other."

func (b *stand) argv(name string) []string {
	if name == "floor" {
		return []string{b.floor, prompt}
	}
	argv := []string{b.chorus, "run", "-y", "-m", "anthropic/claude-sonnet-4-5", "--max-iterations", "1000"}
	if name != "defaults" {
		argv = append(argv, "--sandbox", "host") // the floor has none
	}
	return append(argv, prompt)
}

// once holds one conversation and checks that it was a whole one; more is added to the
// environment of its parent.
func (b *stand) once(ctx context.Context, name string, turns int, more ...string) (sample, error) {
	if err := expect(ctx, b.url, turns); err != nil {
		return sample{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, b.self, b.argv(name)...)
	cmd.Dir = b.repo()
	cmd.Env = append(append(b.environ(), modeVariable+"=launch"), more...)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return sample{}, fmt.Errorf("run %s: %w", name, err)
	}
	s := sample{turns: turns}
	if err := json.Unmarshal(out, &s.launched); err != nil {
		return sample{}, fmt.Errorf("run %s: %w", name, err)
	}
	if s.seen, err = sightings(ctx, b.url); err != nil {
		return sample{}, err
	}
	if s.Exit != 0 || len(s.Times) != turns+1 || !strings.Contains(s.Output, "done") {
		return sample{}, fmt.Errorf("%s made %d of %d requests and ended with exit code %d:\n%s", name, len(s.Times), turns+1, s.Exit, s.Output)
	}
	return s, nil
}

// conversations are all kinds of them, the floor and Chorus alternately.
func conversations() []key {
	var all []key
	for _, turns := range []int{0, short, long} {
		all = append(all, key{"floor", turns}, key{"chorus", turns})
	}
	return all
}

// measure holds every conversation n times, after one of each that does not count:
// it makes the home and warms the disk's cache.
func (b *stand) measure(ctx context.Context, n int) (measured, error) {
	m := measured{runs: n, samples: map[key][]sample{}, private: map[string][]float64{}}
	info, err := os.Stat(b.chorus)
	if err != nil {
		return m, err
	}
	m.binary = info.Size()
	for i := range n + 1 {
		for _, k := range conversations() {
			s, err := b.once(ctx, k.name, k.turns)
			if err != nil {
				return m, err
			}
			if i > 0 {
				m.samples[k] = append(m.samples[k], s)
			}
		}
		fmt.Fprintf(os.Stderr, "\rround %d of %d", i, n)
	}
	fmt.Fprintln(os.Stderr)
	for range n {
		ms, err := initTime(ctx, b.chorus, b.environ())
		if err != nil {
			return m, err
		}
		m.inits = append(m.inits, ms)
		for _, name := range []string{"floor", "chorus"} { // by themselves: looking often takes time
			s, err := b.once(ctx, name, long, sampleVariable+"=1")
			if err != nil {
				return m, err
			}
			m.private[name] = append(m.private[name], float64(s.Private)/1e6)
		}
	}
	return m, nil
}

// initTime is what the packages of a program need before its main, in milliseconds.
func initTime(ctx context.Context, bin string, env []string) (float64, error) {
	cmd := exec.CommandContext(ctx, bin, "version")
	cmd.Env = append(env, "GODEBUG=inittrace=1")
	out, err := cmd.CombinedOutput()
	if err != nil {
		return 0, fmt.Errorf("%s version: %w\n%s", filepath.Base(bin), err, out)
	}
	sum, found := 0.0, false
	for line := range strings.Lines(string(out)) {
		var pkg string
		var at, took float64
		if _, err := fmt.Sscanf(line, "init %s @%f ms, %f ms clock,", &pkg, &at, &took); err == nil {
			sum, found = sum+took, true
		}
	}
	if !found {
		return 0, errors.New("the program shows no trace of its initialisation")
	}
	return sum, nil
}
