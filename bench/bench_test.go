package main

import (
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestFloorHoldsAConversation: the floor must really do the loop.
func TestFloorHoldsAConversation(t *testing.T) {
	t.Parallel()
	srv := httptest.NewServer(newClock())
	defer srv.Close()
	floor := filepath.Join(t.TempDir(), "floor")
	if err := build(t.Context(), floor, "./floor"); err != nil {
		t.Fatal(err)
	}
	for _, turns := range []int{0, 5} {
		if err := expect(t.Context(), srv.URL, turns); err != nil {
			t.Fatal(err)
		}
		cmd := exec.CommandContext(t.Context(), floor, prompt)
		cmd.Env = append(os.Environ(), "ANTHROPIC_BASE_URL="+srv.URL, "ANTHROPIC_API_KEY=test-key")
		out, err := cmd.CombinedOutput()
		if err != nil || strings.TrimSpace(string(out)) != "done" {
			t.Fatalf("%d turns: %v, printed %q", turns, err, out)
		}
		s, err := sightings(t.Context(), srv.URL)
		if err != nil {
			t.Fatal(err)
		}
		if len(s.Times) != turns+1 || s.Connections != 1 {
			t.Errorf("%d turns: %d requests over %d connections, want %d over 1", turns, len(s.Times), s.Connections, turns+1)
		}
	}
}

func TestMedian(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		all  []float64
		want float64
	}{{nil, 0}, {[]float64{3}, 3}, {[]float64{9, 1, 2}, 2}, {[]float64{4, 1, 2, 9}, 3}} {
		if got := median(c.all); got != c.want {
			t.Errorf("median(%v) = %v, want %v", c.all, got, c.want)
		}
	}
	if got := quantile([]float64{5, 1, 2, 3, 4}, 0.25); got != 2 {
		t.Errorf("lower quartile %v, want 2", got)
	}
	if got := quantile([]float64{5, 1}, 1); got != 5 {
		t.Errorf("largest %v, want 5", got)
	}
}

// made is a conversation whose first request comes after first and whose turns take turn each.
func made(turns int, first, turn, cpu time.Duration, peak int64) sample {
	s := sample{turns: turns, launched: launched{Start: 1000, CPU: cpu, Peak: peak}}
	for i := range turns + 1 {
		s.Times = append(s.Times, 1000+first.Nanoseconds()+int64(i)*turn.Nanoseconds())
	}
	return s
}

func TestReportHoldsTheBars(t *testing.T) {
	t.Parallel()
	type figures struct {
		turn, cpuTurn, first time.Duration
		peak                 int64
		private              float64
		binary               int64
	}
	good := figures{turn: time.Millisecond, cpuTurn: time.Millisecond, first: 9 * time.Millisecond, peak: 20e6, private: 14, binary: 60e6}
	with := func(change func(*figures)) figures {
		f := good
		change(&f)
		return f
	}
	for _, c := range []struct {
		name   string
		got    figures
		missed []string
	}{
		{"all well", figures{1400 * time.Microsecond, 1900 * time.Microsecond, 27 * time.Millisecond, 55e6, 19.9, 69e6}, nil},
		{"slow turns", with(func(f *figures) { f.turn = 1600 * time.Microsecond }), []string{
			"wall per turn, 20 turns 1.60× (bar 1.50×)", "wall per turn, 200 turns 1.60× (bar 1.50×)"}},
		{"much CPU", with(func(f *figures) { f.cpuTurn = 3 * time.Millisecond }), []string{
			"CPU per turn, 20 turns 3.00× (bar 2.00×)", "CPU per turn, 200 turns 3.00× (bar 2.00×)"}},
		{"slow start", with(func(f *figures) { f.first = 29 * time.Millisecond }), []string{
			"start to first request +26.0 ms (bar +25.0 ms)"}},
		{"large", with(func(f *figures) { f.peak = 57e6 }), []string{
			"peak memory, 20 turns 57.0 MB (bar 56.0 MB)", "peak memory, 200 turns 57.0 MB (bar 56.0 MB)"}},
		{"a large heap", with(func(f *figures) { f.private = 21 }), []string{
			"private memory at its highest, 200 turns 21.0 MB (bar 20.0 MB)"}},
		{"a large file", with(func(f *figures) { f.binary = 71e6 }), []string{
			"size of the program 71.0 MB (bar 70.0 MB)"}},
	} {
		m := measured{runs: 1, q: 0.5, samples: map[key][]sample{}, inits: []float64{4}, private: map[string][]float64{"chorus": {c.got.private}}, binary: c.got.binary}
		for _, k := range conversations() {
			n := time.Duration(k.turns)
			s := made(k.turns, 3*time.Millisecond, time.Millisecond, 2*time.Millisecond+n*time.Millisecond, 9e6)
			if k.name == "chorus" {
				s = made(k.turns, c.got.first, c.got.turn, 30*time.Millisecond+n*c.got.cpuTurn, c.got.peak)
			}
			m.samples[k] = []sample{s}
		}
		got := m.report().missed()
		if strings.Join(got, "\n") != strings.Join(c.missed, "\n") {
			t.Errorf("%s: missed %q, want %q", c.name, got, c.missed)
		}
	}
}

func TestGrowthIsSeen(t *testing.T) {
	t.Parallel()
	s := made(long, 0, time.Millisecond, 0, 0)
	for i := 150; i <= long; i++ { // from here on each turn takes a millisecond more
		s.Times[i] += int64(i-149) * time.Millisecond.Nanoseconds()
	}
	if early, late := s.around(short), s.around(long); early != 1 || late != 2 {
		t.Errorf("turn 20 took %v ms and turn 200 %v ms, want 1 and 2", early, late)
	}
}

func TestSaveKeepsEarlierRuns(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "RESULTS.md")
	day := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for i := range 2 {
		rep := report{runs: 1, rows: []row{{what: "wall", unit: "ms", floor: 1, chorus: 2, value: float64(i + 1), bar: 3, how: "%.0f×"}}}
		if err := rep.save(path, "a machine", day.AddDate(0, 0, i)); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	want := historyHead + "\n- 2026-01-03 (a machine): wall 2×\n- 2026-01-02 (a machine): wall 1×\n"
	if !strings.HasSuffix(string(text), want) {
		t.Errorf("ends with\n%s\nwant\n%s", text[max(0, len(text)-300):], want)
	}
}

// Only the newest lines stay, and what people wrote behind them is kept.
func TestSaveKeepsTheNewestRuns(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "RESULTS.md")
	behind := "\n## Where the time goes\n\nWords.\n\nMore words.\n"
	if err := os.WriteFile(path, []byte(historyHead+"\n- the first run\n"+behind), 0o600); err != nil {
		t.Fatal(err)
	}
	day := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for i := range maxHistory {
		if err := (report{}).save(path, "a machine", day.AddDate(0, 0, i)); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	_, runs, _ := strings.Cut(string(text), historyHead)
	runs, kept := strings.CutSuffix(runs, behind)
	if !kept || strings.Count(runs, "\n- 2026-") != maxHistory || strings.Contains(runs, "the first run") {
		t.Errorf("%s", text[max(0, len(text)-900):])
	}
}
