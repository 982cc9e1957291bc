// Package telemetry tells machines how the house is doing: numbers for a scraper, spans
// for a collector, one line a run for the log.
//
// It promises to be a reader and nothing more: it hears what was written to the journal,
// on the bell, and never makes a writer wait. What it cannot keep up with is dropped and
// counted. Numbers are of this process alone; none is kept by user, channel or session, so
// that there are never more of them than the program has places.
package telemetry

import (
	"context"
	"log/slog"
	"net/http"
	"runtime"
	"runtime/debug"
	"sync"
	"time"

	"chorus/internal/bus"
	"chorus/internal/chat"
)

// Options is what a telemetry needs to know.
type Options struct {
	Bus     *bus.Bus // whose events are counted
	Version string   // of this program
	// Look counts what stands in the books now. It is asked at most once a second, and
	// only when somebody scrapes; nil: nobody knows.
	Look func(context.Context) (Standing, error)
	// Tool reports whether a tool is one of ours; others are counted together. nil: none is.
	Tool func(name string) bool
	Log  *slog.Logger // nil: nobody is told
}

// Standing is what stands in the books at one moment.
type Standing struct {
	Queued    int   // prompts that wait for their run
	Running   int   // threads with a run that is on
	Approvals int   // questions that nobody has answered
	Actors    int   // threads that are awake in this process
	Abandoned int   // waits that were left behind and have not ended
	Lost      int64 // threads that another process took from this one, since the start
}

// Telemetry counts what happens in this process. Make it with New, end it with Close.
type Telemetry struct {
	o     Options
	meter *meter
	reg   *registry
	ear   *bus.Listener
	stop  chan struct{}
	once  sync.Once
	done  sync.WaitGroup

	mu     sync.Mutex // over what was last looked up
	looked time.Time
	stands Standing
	fresh  bool // stands is true
}

// New begins to count.
func New(o Options) *Telemetry {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	t := &Telemetry{o: o, reg: &registry{}, stop: make(chan struct{})}
	t.meter = newMeter(t.reg, o.Tool)
	t.describe()
	if o.Bus != nil {
		t.ear = o.Bus.Hear()
		t.done.Go(t.listen)
	}
	return t
}

// Close counts what was rung before it and stops listening. It may be called twice, and
// the numbers can be read afterwards.
func (t *Telemetry) Close() {
	t.once.Do(func() { close(t.stop) })
	t.done.Wait()
}

func (t *Telemetry) listen() {
	defer t.ear.Close()
	hear(t.ear, t.stop, func(events []chat.Event) { t.meter.count(events) }, func() { t.meter.missed.add(1) })
}

// hear gives what is rung to take until stop is closed, and then what lies there still.
func hear(ear *bus.Listener, stop <-chan struct{}, take func([]chat.Event), gap func()) {
	empty := func() {
		notes, missed := ear.Take()
		if missed {
			gap()
		}
		for _, n := range notes {
			take(n.Events)
		}
	}
	for {
		select {
		case <-stop:
			empty()
			return
		case <-ear.Bell():
			empty()
		}
	}
}

// Committed notes how long a commit took. It never waits.
func (t *Telemetry) Committed(took time.Duration, err error) {
	t.meter.commits.observe(took.Seconds(), outcome(err == nil))
}

func outcome(ok bool) string {
	if ok {
		return "ok"
	}
	return "error"
}

// scrapeTime bounds what a scrape may ask of the database.
const scrapeTime = 2 * time.Second

// Handler answers a scraper, in Prometheus' text format 0.0.4.
func (t *Telemetry) Handler() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			w.Header().Set("Allow", "GET, HEAD")
			http.Error(w, "only GET", http.StatusMethodNotAllowed)
			return
		}
		t.look(r.Context())
		w.Header().Set("Content-Type", ContentType)
		w.Header().Set("Cache-Control", "no-store")
		_, _ = w.Write(t.reg.text()) // whoever left does not want it
	})
}

// look brings the standing up to date. A thousand scrapers cost one look a second.
func (t *Telemetry) look(ctx context.Context) {
	if t.o.Look == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.looked.IsZero() && time.Since(t.looked) < time.Second {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), scrapeTime)
	defer cancel()
	stands, err := t.o.Look(ctx)
	t.looked, t.fresh = time.Now(), err == nil
	if err != nil {
		t.meter.blind.add(1)
		t.o.Log.Warn("the books could not be read for a scrape", "component", "telemetry", "event", "scrape_failed", "error", err)
		return
	}
	t.stands = stands
}

// standing makes a gauge of a part of what was looked up; nothing is said while it is not known.
func (t *Telemetry) standing(part func(Standing) float64) func() (float64, bool) {
	return func() (float64, bool) {
		t.mu.Lock()
		defer t.mu.Unlock()
		return part(t.stands), t.fresh
	}
}

// describe adds what is computed when somebody scrapes.
func (t *Telemetry) describe() {
	r := t.reg
	r.gauge("chorus_queue_depth", "Prompts in the journal that wait for their run.", t.standing(func(s Standing) float64 { return float64(s.Queued) }))
	r.gauge("chorus_runs_active", "Threads with a run that is on, in whatever process of this home.", t.standing(func(s Standing) float64 { return float64(s.Running) }))
	r.gauge("chorus_approvals_pending", "Questions that wait for somebody's answer.", t.standing(func(s Standing) float64 { return float64(s.Approvals) }))
	r.gauge("chorus_actors", "Threads that are awake in this process.", t.standing(func(s Standing) float64 { return float64(s.Actors) }))
	r.gauge("chorus_abandoned_waits", "Waits that did not end when they were told to; each holds a goroutine.", t.standing(func(s Standing) float64 { return float64(s.Abandoned) }))
	r.counterFunc("chorus_lease_lost_total", "Threads that another process took from this one in the middle of a run.", t.standing(func(s Standing) float64 { return float64(s.Lost) }))
	revision := ""
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				revision = s.Value
			}
		}
	}
	build := r.vec("chorus_build_info", "The program; always 1.", "gauge", "version", "revision", "goversion")
	build.with(t.o.Version, revision, runtime.Version()).set(1)
	process(r)
}
