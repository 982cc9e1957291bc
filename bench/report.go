package main

import (
	_ "embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"
)

// The bars. The ratios are to the floor's figure of the same kind.
const (
	barWall    = 1.5  // wall per turn
	barCPU     = 2.0  // CPU per turn
	barGrow    = 1.3  // turn 200 to turn 20
	barPrivate = 20.0 // MB of private memory at the most, which is what a machine runs out of
	barPeak    = 56.0 // MB resident at the most, pages of the program's file included
	barFirst   = 25.0 // ms from start to first request, more than the floor
	barInit    = 10.0 // ms of package initialisation
	barBinary  = 70.0 // MB of the program's file
)

// sample is one conversation, measured.
type sample struct {
	turns int
	launched
	seen
}

// turnWall is the time of one turn, from the first request to the last; starting and
// ending are not in it.
func (s sample) turnWall() float64 {
	return ms(s.Times[len(s.Times)-1]-s.Times[0]) / float64(s.turns)
}

// first is the time from the start to the first request.
func (s sample) first() float64 { return ms(s.Times[0] - s.Start) }

// around is the usual turn among the twenty that end with turn n (from 1).
func (s sample) around(n int) float64 {
	var gaps []float64
	for i := max(1, n-19); i <= n; i++ {
		gaps = append(gaps, ms(s.Times[i]-s.Times[i-1]))
	}
	return median(gaps)
}

func ms(nanoseconds int64) float64 { return float64(nanoseconds) / 1e6 }

// key is a kind of conversation.
type key struct {
	name  string
	turns int
}

// measured is everything that was measured about whole conversations.
type measured struct {
	runs    int
	q       float64 // the quantile that counts
	samples map[key][]sample
	inits   []float64            // ms
	private map[string][]float64 // MB, by the program's name
	binary  int64                // bytes
}

// figure is the quantile over all conversations of a kind.
func (m measured) figure(k key, of func(sample) float64) float64 {
	var all []float64
	for _, s := range m.samples[k] {
		all = append(all, of(s))
	}
	return quantile(all, m.q)
}

// cpuTurn is the CPU of one turn: what a conversation costs more than one without turns.
func (m measured) cpuTurn(k key) float64 {
	cpu := func(s sample) float64 { return ms(s.CPU.Nanoseconds()) }
	return (m.figure(k, cpu) - m.figure(key{k.name, 0}, cpu)) / float64(k.turns)
}

// both is a figure of the floor and of Chorus.
func (m measured) both(turns int, of func(sample) float64) [2]float64 {
	return [2]float64{m.figure(key{"floor", turns}, of), m.figure(key{"chorus", turns}, of)}
}

func median(all []float64) float64 { return quantile(all, 0.5) }

// quantile lies between the two nearest values where none is exact.
func quantile(all []float64, q float64) float64 {
	if len(all) == 0 {
		return 0
	}
	all = slices.Sorted(slices.Values(all))
	at := q * float64(len(all)-1)
	low := int(at)
	high := min(low+1, len(all)-1)
	return all[low] + (all[high]-all[low])*(at-float64(low))
}

// row is one line of the report. A row without a bar is for information.
type row struct {
	what          string
	unit          string
	floor, chorus float64
	value         float64 // what is held against the bar
	bar           float64
	how           string // how value and bar read: "%.2f×"
	least         bool   // the bar is the least, not the most
}

func (r row) ok() bool {
	if r.least {
		return r.value >= r.bar
	}
	return r.bar == 0 || r.value <= r.bar
}

type report struct {
	runs int
	q    float64
	rows []row
}

func (m measured) report() report {
	return report{runs: m.runs, q: m.q, rows: append(m.turnRows(), m.processRows()...)}
}

// turnRows are the figures of turns.
func (m measured) turnRows() []row {
	var rows []row
	ratio := func(what string, bar float64, of func(key) float64) {
		for _, turns := range []int{short, long} {
			f, c := of(key{"floor", turns}), of(key{"chorus", turns})
			rows = append(rows, row{what: fmt.Sprintf("%s, %d turns", what, turns), unit: "ms", floor: f, chorus: c, value: c / f, bar: bar, how: "%.2f×"})
		}
	}
	ratio("wall per turn", barWall, func(k key) float64 { return m.figure(k, sample.turnWall) })
	ratio("CPU per turn", barCPU, m.cpuTurn)
	early := m.both(long, func(s sample) float64 { return s.around(short) })
	late := m.both(long, func(s sample) float64 { return s.around(long) })
	tools := m.both(long, func(s sample) float64 { return ms(s.Tools.Nanoseconds()) / long })
	return append(rows,
		row{what: "… of it in the commands themselves", unit: "ms", floor: tools[0], chorus: tools[1]},
		row{what: "turn 20", unit: "ms", floor: early[0], chorus: early[1]},
		row{what: "turn 200 to turn 20", unit: "ms", floor: late[0], chorus: late[1], value: late[1] / early[1], bar: barGrow, how: "%.2f×"})
}

// processRows are the figures of whole processes.
func (m measured) processRows() []row {
	var rows []row
	if private := quantile(m.private["chorus"], m.q); private > 0 { // not known everywhere
		rows = append(rows, row{what: "private memory at its highest, 200 turns", unit: "MB", floor: quantile(m.private["floor"], m.q), chorus: private, value: private, bar: barPrivate, how: "%.1f MB"})
	}
	for _, turns := range []int{short, long} {
		peak := m.both(turns, func(s sample) float64 { return float64(s.Peak) / 1e6 })
		rows = append(rows, row{what: fmt.Sprintf("peak memory, %d turns", turns), unit: "MB", floor: peak[0], chorus: peak[1], value: peak[1], bar: barPeak, how: "%.1f MB"})
	}
	first := m.both(short, sample.first)
	inits := quantile(m.inits, m.q)
	rows = append(rows,
		row{what: "start to first request", unit: "ms", floor: first[0], chorus: first[1], value: first[1] - first[0], bar: barFirst, how: "+%.1f ms"},
		row{what: "package initialisation", unit: "ms", chorus: inits, value: inits, bar: barInit, how: "%.1f ms"},
		row{what: "size of the program", unit: "MB", chorus: float64(m.binary) / 1e6, value: float64(m.binary) / 1e6, bar: barBinary, how: "%.1f MB"})
	for _, turns := range []int{0, long} {
		wall := m.both(turns, func(s sample) float64 { return ms(s.Wall.Nanoseconds()) })
		cpu := m.both(turns, func(s sample) float64 { return ms(s.CPU.Nanoseconds()) })
		rows = append(rows,
			row{what: fmt.Sprintf("whole run, %d turns: wall", turns), unit: "ms", floor: wall[0], chorus: wall[1]},
			row{what: fmt.Sprintf("whole run, %d turns: CPU", turns), unit: "ms", floor: cpu[0], chorus: cpu[1]})
	}
	conns := m.both(long, func(s sample) float64 { return float64(s.Connections) })
	return append(rows, row{what: "connections, 200 turns", floor: conns[0], chorus: conns[1]})
}

// missed are the rows whose bar was not reached.
func (rep report) missed() []string {
	var out []string
	for _, r := range rep.rows {
		if !r.ok() {
			out = append(out, fmt.Sprintf("%s "+r.how+" (bar "+r.how+")", r.what, r.value, r.bar))
		}
	}
	return out
}

// table is the report as a markdown table, which also reads well on a terminal.
func (rep report) table() string {
	cells := [][]string{{"figure", "floor", "chorus", "held against the bar", "bar", "verdict"}}
	for _, r := range rep.rows {
		floor, held, bar, verdict := number(r.floor, r.unit), "", "", ""
		if r.floor == 0 {
			floor = ""
		}
		if r.bar > 0 {
			held, bar, verdict = fmt.Sprintf(r.how, r.value), fmt.Sprintf(r.how, r.bar), "ok"
			if !r.ok() {
				verdict = "MISSED"
			}
		}
		cells = append(cells, []string{r.what, floor, number(r.chorus, r.unit), held, bar, verdict})
	}
	width := make([]int, len(cells[0]))
	for _, line := range cells {
		for i, c := range line {
			width[i] = max(width[i], len([]rune(c)))
		}
	}
	var b strings.Builder
	for n, line := range cells {
		for i, c := range line {
			fmt.Fprintf(&b, "| %s%s ", c, strings.Repeat(" ", width[i]-len([]rune(c))))
		}
		b.WriteString("|\n")
		if n == 0 {
			for _, w := range width {
				b.WriteString("|" + strings.Repeat("-", w+2))
			}
			b.WriteString("|\n")
		}
	}
	return b.String()
}

func number(v float64, unit string) string {
	switch unit {
	case "":
		return fmt.Sprintf("%.0f", v)
	case "MB":
		return fmt.Sprintf("%.1f MB", v)
	case "%":
		return fmt.Sprintf("%.1f%%", v)
	}
	if v < 10 {
		return fmt.Sprintf("%.3f %s", v, unit)
	}
	return fmt.Sprintf("%.1f %s", v, unit)
}

const (
	historyHead = "## Runs so far\n"
	maxHistory  = 10 // lines; git has the earlier ones
)

// history is this report as one line.
func (rep report) history(day, facts string) string {
	var parts []string
	for _, r := range rep.rows {
		if r.bar > 0 {
			parts = append(parts, r.what+" "+fmt.Sprintf(r.how, r.value))
		}
	}
	return fmt.Sprintf("- %s (%s): %s\n", day, facts, strings.Join(parts, ", "))
}

// save writes the report; the lines of the last runs before stay, below this one's, and what is written behind them.
func (rep report) save(path, facts string, at time.Time) error {
	old, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	_, earlier, _ := strings.Cut(string(old), historyHead)
	day := at.UTC().Format(time.DateOnly)
	var b strings.Builder
	fmt.Fprintf(&b, "# Results\n\nWritten by `make bench` on %s. Machine: %s. Quantile %.2f of %d runs each, floor and Chorus by turns, both without a sandbox unless it says so.\n\n", day, facts, rep.q, rep.runs)
	b.WriteString(rep.table())
	runs, behind, more := strings.Cut(strings.TrimLeft(earlier, "\n"), "\n\n")
	lines := strings.Split(strings.TrimSuffix(rep.history(day, facts)+runs, "\n"), "\n")
	b.WriteString("\n" + method + "\n" + historyHead + "\n" + strings.Join(lines[:min(len(lines), maxHistory)], "\n") + "\n")
	if more {
		b.WriteString("\n" + behind) // what people wrote below
	}
	return os.WriteFile(path, []byte(b.String()), 0o644)
}

// method says how the figures are measured.
//
//go:embed method.md
var method string

// machineFacts say what one must know of the machine to read the figures, and no more.
func machineFacts() string {
	facts := fmt.Sprintf("%d cores, %s/%s, %s", runtime.NumCPU(), runtime.GOOS, runtime.GOARCH, runtime.Version())
	info, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return facts
	}
	for line := range strings.Lines(string(info)) {
		if name, ok := strings.CutPrefix(line, "model name"); ok {
			return facts + ", " + strings.Trim(name, "\t: \n")
		}
	}
	return facts
}
