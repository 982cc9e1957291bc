package telemetry

import (
	"bufio"
	"bytes"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"pgregory.net/rapid"
)

// parsed is a scrape as a strict reader of the format understands it.
type parsed struct {
	kinds   map[string]string
	samples map[string]float64 // by name and labels as they stand there
	labels  map[string]map[string]string
}

// parse reads the text format 0.0.4 and accepts nothing that the format does not
// promise: HELP and TYPE once and before the samples, samples of a metric together, no sample
// twice, buckets that rise and end in +Inf, sums and counts that agree.
func parse(text []byte) (*parsed, error) {
	p := &parsed{kinds: map[string]string{}, samples: map[string]float64{}, labels: map[string]map[string]string{}}
	if !bytes.HasSuffix(text, []byte("\n")) {
		return nil, fmt.Errorf("the last line does not end")
	}
	helped, current := map[string]bool{}, ""
	lines := bufio.NewScanner(bytes.NewReader(text))
	for lines.Scan() {
		line := lines.Text()
		switch {
		case strings.HasPrefix(line, "# HELP "):
			name, help, ok := strings.Cut(line[7:], " ")
			if !ok || helped[name] || help == "" {
				return nil, fmt.Errorf("bad or second HELP: %s", line)
			}
			helped[name] = true
		case strings.HasPrefix(line, "# TYPE "):
			name, kind, _ := strings.Cut(line[7:], " ")
			if !helped[name] || p.kinds[name] != "" || !slices.Contains([]string{"counter", "gauge", "histogram"}, kind) {
				return nil, fmt.Errorf("bad or second TYPE: %s", line)
			}
			p.kinds[name], current = kind, name
		default:
			if err := p.sample(line, current); err != nil {
				return nil, fmt.Errorf("%s: %w", line, err)
			}
		}
	}
	return p, p.histograms()
}

func validName(s string) bool {
	for i, c := range s {
		if c != '_' && c != ':' && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	return s != ""
}

func (p *parsed) sample(line, current string) error {
	end := strings.IndexAny(line, "{ ")
	if end < 0 || !validName(line[:end]) {
		return fmt.Errorf("no name")
	}
	name, rest := line[:end], line[end:]
	base := name
	if p.kinds[current] == "histogram" {
		for _, suffix := range []string{"_bucket", "_sum", "_count"} {
			base = strings.TrimSuffix(base, suffix)
		}
	}
	if base != current {
		return fmt.Errorf("stands below %q", current)
	}
	labels := map[string]string{}
	if rest[0] == '{' {
		var err error
		if rest, err = readLabels(rest[1:], labels); err != nil {
			return err
		}
	}
	value, ok := strings.CutPrefix(rest, " ")
	number, err := strconv.ParseFloat(value, 64)
	if !ok || err != nil {
		return fmt.Errorf("no number: %q", value)
	}
	key := strings.TrimSuffix(line, " "+value)
	if _, twice := p.samples[key]; twice {
		return fmt.Errorf("twice")
	}
	if p.kinds[current] == "counter" && !(number >= 0) {
		return fmt.Errorf("a counter below zero")
	}
	labels["__name__"] = name
	p.samples[key], p.labels[key] = number, labels
	return nil
}

func readLabels(rest string, into map[string]string) (string, error) {
	for {
		name, after, ok := strings.Cut(rest, `="`)
		if _, again := into[name]; !ok || !validName(name) || again {
			return "", fmt.Errorf("bad label %q", name)
		}
		var value strings.Builder
		for {
			if after == "" {
				return "", fmt.Errorf("a label that does not end")
			}
			c := after[0]
			after = after[1:]
			if c == '"' {
				break
			}
			if c == '\\' {
				i := strings.IndexByte(`\n"`, after[0])
				if i < 0 {
					return "", fmt.Errorf("an unknown escape")
				}
				c, after = "\\\n\""[i], after[1:]
			}
			value.WriteByte(c)
		}
		into[name] = value.String()
		switch {
		case strings.HasPrefix(after, ","):
			rest = after[1:]
		case strings.HasPrefix(after, "}"):
			return after[1:], nil
		default:
			return "", fmt.Errorf("neither , nor }")
		}
	}
}

// histograms checks every histogram by itself.
func (p *parsed) histograms() error {
	type seen struct {
		bounds, counts []float64
		count          float64
		sum            bool
	}
	all := map[string]*seen{}
	at := func(name string, labels map[string]string) *seen {
		var key []string
		for k, v := range labels {
			if k != "le" && k != "__name__" {
				key = append(key, k+"="+v)
			}
		}
		slices.Sort(key)
		id := name + strings.Join(key, ",")
		if all[id] == nil {
			all[id] = &seen{}
		}
		return all[id]
	}
	for key, value := range p.samples {
		labels := p.labels[key]
		name := labels["__name__"]
		for base, kind := range p.kinds {
			if kind != "histogram" {
				continue
			}
			switch name {
			case base + "_bucket":
				bound, err := strconv.ParseFloat(labels["le"], 64)
				if err != nil {
					return err
				}
				s := at(base, labels)
				i, _ := slices.BinarySearch(s.bounds, bound)
				s.bounds, s.counts = slices.Insert(s.bounds, i, bound), slices.Insert(s.counts, i, value)
			case base + "_sum":
				at(base, labels).sum = true
			case base + "_count":
				at(base, labels).count = value
			}
		}
	}
	for id, s := range all {
		if !s.sum || len(s.bounds) == 0 || !math.IsInf(s.bounds[len(s.bounds)-1], 1) || s.counts[len(s.counts)-1] != s.count || !slices.IsSorted(s.counts) {
			return fmt.Errorf("histogram %s does not agree with itself: %+v", id, *s)
		}
	}
	return nil
}

func scrape(t interface {
	Helper()
	Fatal(...any)
}, tel *Telemetry) (*parsed, string) {
	t.Helper()
	w := httptest.NewRecorder()
	tel.Handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	if w.Code != 200 || w.Header().Get("Content-Type") != "text/plain; version=0.0.4; charset=utf-8" {
		t.Fatal(w.Code, w.Header())
	}
	p, err := parse(w.Body.Bytes())
	if err != nil {
		t.Fatal(err, "\n", w.Body.String())
	}
	return p, w.Body.String()
}

// The reader is strict: it would notice.
func TestParserIsStrict(t *testing.T) {
	t.Parallel()
	head := "# HELP a x\n# TYPE a histogram\n"
	for name, text := range map[string]string{
		"no end":                "# HELP a x\n# TYPE a counter\na 1",
		"no help":               "# TYPE a counter\na 1\n",
		"no type":               "a 1\n",
		"another's sample":      "# HELP a x\n# TYPE a counter\nb 1\n",
		"twice":                 "# HELP a x\n# TYPE a counter\na 1\na 2\n",
		"no number":             "# HELP a x\n# TYPE a counter\na one\n",
		"below zero":            "# HELP a x\n# TYPE a counter\na -1\n",
		"open label":            "# HELP a x\n# TYPE a gauge\na{b=\"c} 1\n",
		"unknown escape":        "# HELP a x\n# TYPE a gauge\na{b=\"\\q\"} 1\n",
		"label twice":           "# HELP a x\n# TYPE a gauge\na{b=\"1\",b=\"2\"} 1\n",
		"no infinite bucket":    head + "a_bucket{le=\"1\"} 1\na_sum 1\na_count 1\n",
		"count is not the last": head + "a_bucket{le=\"+Inf\"} 1\na_sum 1\na_count 2\n",
		"buckets that fall":     head + "a_bucket{le=\"1\"} 3\na_bucket{le=\"+Inf\"} 1\na_sum 1\na_count 1\n",
		"no sum":                head + "a_bucket{le=\"+Inf\"} 1\na_count 1\n",
	} {
		if _, err := parse([]byte(text)); err == nil {
			t.Errorf("%s was accepted", name)
		}
	}
}

// Whatever the labels and numbers are, a strict reader reads back what was counted.
func TestTextReadsBack(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		r := &registry{}
		f := r.vec("a_total", "help with \\ and\nlines", "counter", "x", "y")
		h := r.histogram("b_seconds", "b", []float64{0.1, 1, 10}, "x")
		want := map[[2]string]float64{}
		for range rapid.IntRange(0, 20).Draw(rt, "counts") {
			x, y := rapid.String().Draw(rt, "x"), rapid.StringOf(rapid.SampledFrom([]rune{'"', '\\', '\n', 'a', '{', ','})).Draw(rt, "y")
			n := float64(rapid.IntRange(0, 1<<30).Draw(rt, "n"))
			f.with(x, y).add(n)
			want[[2]string{x, y}] += n
		}
		observed := rapid.SliceOf(rapid.Float64Range(0, 100)).Draw(rt, "observed")
		for _, v := range observed {
			h.observe(v, "x")
		}
		p, err := parse(r.text())
		if err != nil {
			rt.Fatal(err, string(r.text()))
		}
		got := map[[2]string]float64{}
		for key, value := range p.samples {
			labels := p.labels[key]
			if labels["__name__"] == "a_total" {
				got[[2]string{labels["x"], labels["y"]}] = value
			}
			if bound, err := strconv.ParseFloat(labels["le"], 64); err == nil {
				below := 0
				for _, v := range observed {
					if v <= bound {
						below++
					}
				}
				if float64(below) != value {
					rt.Fatalf("%s: %v, want %d", key, value, below)
				}
			}
		}
		if len(got) != len(want) {
			rt.Fatalf("%v, want %v", got, want)
		}
		for k, v := range want {
			if got[k] != v {
				rt.Fatalf("%q: %v, want %v", k, got[k], v)
			}
		}
	})
}

// Many count while many scrape: every scrape is consistent, and nothing is lost.
func TestCountingFromEverywhere(t *testing.T) {
	t.Parallel()
	tel := New(Options{})
	defer tel.Close()
	const workers, each = 8, 500
	var work sync.WaitGroup
	for w := range workers {
		work.Go(func() {
			for i := range each {
				tel.meter.tools.observe(float64(i)/100, "bash", "ok")
				tel.meter.inbound.with("web", strconv.Itoa(w%3)).add(1)
				tel.Committed(1000, nil)
				if i%100 == 0 {
					scrape(t, tel)
				}
			}
		})
	}
	work.Wait()
	p, text := scrape(t, tel)
	if got := p.samples[`chorus_tool_duration_seconds_count{tool="bash",outcome="ok"}`]; got != workers*each {
		t.Errorf("%v calls\n%s", got, text)
	}
	if got := p.samples[`chorus_db_commit_duration_seconds_count{outcome="ok"}`]; got != workers*each {
		t.Errorf("%v commits", got)
	}
}

// A label that gets out of hand costs a bounded amount of memory.
func TestSeriesAreBounded(t *testing.T) {
	t.Parallel()
	r := &registry{}
	f := r.vec("a_total", "a", "counter", "x", "y")
	for i := range 10 * maxSeries {
		f.with(strconv.Itoa(i), "y").add(1)
	}
	p, err := parse(r.text())
	if err != nil || len(p.samples) != maxSeries+1 {
		t.Fatalf("%d samples, %v", len(p.samples), err)
	}
	if got := p.samples[`a_total{x="other",y="other"}`]; got != 9*maxSeries {
		t.Errorf("%v under other", got)
	}
}
