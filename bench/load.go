package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"
)

// The load: many conversations at once, and many readers.
const (
	loadSessions  = 200
	watchSessions = 100
	watchReaders  = 10 // of each session
)

// The bars of the load.
const (
	barRate = 0.55  // of the floor's turns in a second
	barLoad = 150.0 // MB resident at the most
)

// loadTime is how long a load may take before it counts as stuck.
const loadTime = 3 * time.Minute

// loadRows measure the server with many conversations, compared with the floor that holds
// as many in one process.
func (b *stand) loadRows(ctx context.Context, n int, q float64) ([]row, error) {
	if err := b.prepare(ctx); err != nil {
		return nil, err
	}
	var floor, chorus, floorPeak, chorusPeak, readPeak, cpu []float64
	for i := range min(n, 3) { // each is four thousand turns: fewer say as much
		rate, peak, err := b.floorLoad(ctx, loadSessions)
		if err != nil {
			return nil, err
		}
		floor, floorPeak = append(floor, rate), append(floorPeak, peak)
		rate, cost, err := b.serverLoad(ctx, fmt.Sprintf("load-%d", i), conversationLoad{sessions: loadSessions, config: openConfig})
		if err != nil {
			return nil, err
		}
		chorus, chorusPeak, readPeak = append(chorus, rate), append(chorusPeak, cost.talked), append(readPeak, cost.peak)
		cpu = append(cpu, ms(cost.cpu.Nanoseconds())/loadSessions/short)
	}
	f, c := quantile(floor, q), quantile(chorus, q)
	rows := []row{
		{what: fmt.Sprintf("turns a second, %d sessions of %d turns at once", loadSessions, short), unit: "/s", floor: f, chorus: c, value: c / f, bar: barRate, how: "%.2f×", least: true},
		{what: "… peak memory", unit: "MB", floor: quantile(floorPeak, q), chorus: quantile(chorusPeak, q), value: quantile(chorusPeak, q), bar: barLoad, how: "%.1f MB"},
		{what: "… peak memory once all of them are read at once, to check them", unit: "MB", chorus: quantile(readPeak, q)},
		{what: "… CPU per turn, starting and ending included", unit: "ms", chorus: quantile(cpu, q)},
	}
	watched, err := b.watchRows(ctx)
	return append(rows, watched...), err
}

// rate is turns in a second, from the first request to the last.
func rate(s seen, turns int) float64 {
	return float64(turns) / time.Duration(s.Times[len(s.Times)-1]-s.Times[0]).Seconds()
}

// conversationLoad is how many conversations a server holds at once, and how.
type conversationLoad struct {
	sessions int
	config   string
	dirs     []string // where each works; nil: all in the repository
}

// floorLoad lets the floor hold all conversations.
func (b *stand) floorLoad(ctx context.Context, sessions int) (turns, peak float64, err error) {
	if err := expect(ctx, b.url, short); err != nil {
		return 0, 0, err
	}
	ctx, cancel := context.WithTimeout(ctx, loadTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, b.self, b.floor, "-sessions", fmt.Sprint(sessions), prompt)
	cmd.Dir, cmd.Stderr = b.repo(), os.Stderr
	cmd.Env = append(b.environ(), modeVariable+"=launch")
	out, err := cmd.Output()
	if err != nil {
		return 0, 0, fmt.Errorf("run floor: %w", err)
	}
	var l launched
	if err := json.Unmarshal(out, &l); err != nil {
		return 0, 0, err
	}
	s, err := sightings(ctx, b.url)
	if err != nil {
		return 0, 0, err
	}
	if done := strings.Count(l.Output, "done\n"); l.Exit != 0 || done != sessions || len(s.Times) != sessions*(short+1) {
		return 0, 0, fmt.Errorf("the floor ended %d of %d conversations with %d requests, exit code %d:\n%s", done, sessions, len(s.Times), l.Exit, l.Output)
	}
	return rate(s, sessions*short), float64(l.Peak) / 1e6, nil
}

// serverLoad lets the server hold all conversations, and checks afterwards that every one
// of them is whole.
func (b *stand) serverLoad(ctx context.Context, home string, load conversationLoad) (turns float64, cost spent, err error) {
	ctx, cancel := context.WithTimeout(ctx, loadTime)
	defer cancel()
	s, err := b.serve(ctx, home, load.config)
	if err != nil {
		return 0, spent{}, err
	}
	turns, talked, err := b.converse(ctx, s, load)
	cost, stopped := s.stop()
	cost.talked = talked
	return turns, cost, errors.Join(err, stopped)
}

// converse returns the turns in a second, and the server's peak memory until the last one.
func (b *stand) converse(ctx context.Context, s *served, load conversationLoad) (turns, peak float64, err error) {
	sessions, err := s.sessions(ctx, load.sessions, func(i int) string {
		if load.dirs == nil {
			return b.repo()
		}
		return load.dirs[i]
	})
	if err != nil {
		return 0, 0, err
	}
	if err := expect(ctx, b.url, short); err != nil {
		return 0, 0, err
	}
	if err := each(len(sessions), func(i int) error { return s.say(ctx, sessions[i]) }); err != nil {
		return 0, 0, err
	}
	requests := load.sessions * (short + 1)
	if _, err := control(ctx, http.MethodGet, fmt.Sprintf("%s/bench?await=%d", b.url, requests)); err != nil {
		return 0, 0, err
	}
	peak = float64(residentPeak(s.cmd.Process.Pid)) / 1e6
	err = each(len(sessions), func(i int) error {
		h, err := s.follow(ctx, sessions[i], func() {})
		if err == nil && !h.whole() {
			err = fmt.Errorf("session %s ended with %q after %d of %d results", sessions[i], h.end, h.results, short)
		}
		return err
	})
	if err != nil {
		return 0, 0, err
	}
	saw, err := sightings(ctx, b.url)
	if err == nil && len(saw.Times) != requests {
		err = fmt.Errorf("%d requests for %d turns: some were made twice", len(saw.Times), requests)
	}
	if err != nil {
		return 0, 0, err
	}
	return rate(saw, load.sessions*short), peak, nil
}

// whole reports whether a reader saw all of a run.
func (h received) whole() bool { return h.end == "completed" && h.results == short }

// watchRows measure what many readers cost: each session is read by several from its
// first event to its last.
func (b *stand) watchRows(ctx context.Context) ([]row, error) {
	ctx, cancel := context.WithTimeout(ctx, loadTime)
	defer cancel()
	s, err := b.serve(ctx, "watched", openConfig)
	if err != nil {
		return nil, err
	}
	all, took, err := b.watch(ctx, s)
	cost, stopped := s.stop()
	if err := errors.Join(err, stopped); err != nil {
		return nil, err
	}
	events := 0
	for _, h := range all {
		events += h.events
	}
	name := fmt.Sprintf("%d readers on %d running sessions", watchSessions*watchReaders, watchSessions)
	return []row{
		{what: "events a second, " + name, unit: "/s", chorus: float64(events) / took.Seconds()},
		{what: "… turns a second meanwhile", unit: "/s", chorus: watchSessions * short / took.Seconds()},
		{what: "… peak memory", unit: "MB", chorus: cost.peak},
	}, nil
}

// watch opens all streams, starts all runs, and waits until every reader has seen the end.
func (b *stand) watch(ctx context.Context, s *served) ([]received, time.Duration, error) {
	sessions, err := s.sessions(ctx, watchSessions, func(int) string { return b.repo() })
	if err != nil {
		return nil, 0, err
	}
	if err := expect(ctx, b.url, short); err != nil {
		return nil, 0, err
	}
	got := make([]received, watchSessions*watchReaders)
	var open sync.WaitGroup
	open.Add(len(got))
	ended := make(chan error, 1)
	go func() {
		ended <- each(len(got), func(i int) (err error) {
			got[i], err = s.follow(ctx, sessions[i%watchSessions], open.Done)
			return err
		})
	}()
	open.Wait()
	start := time.Now()
	err = each(len(sessions), func(i int) error { return s.say(ctx, sessions[i]) })
	if err = errors.Join(err, <-ended); err != nil {
		return nil, 0, err
	}
	took := time.Since(start)
	for i, h := range got {
		if first := got[i%watchSessions]; !h.whole() || h.kept != first.kept || h.last != first.last {
			return nil, 0, fmt.Errorf("a reader of session %d saw %+v and another %+v", i%watchSessions, h, first)
		}
	}
	return got, took, nil
}

// sessions makes some.
func (s *served) sessions(ctx context.Context, n int, dir func(i int) string) ([]string, error) {
	ids := make([]string, n)
	return ids, each(n, func(i int) (err error) {
		ids[i], err = s.session(ctx, dir(i))
		return err
	})
}

// each does something n times at once and waits for all.
func each(n int, do func(i int) error) error {
	errs := make([]error, n)
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() { errs[i] = do(i) })
	}
	all.Wait()
	for _, err := range errs { // one is enough: the others are mostly the same
		if err != nil {
			return err
		}
	}
	return nil
}
