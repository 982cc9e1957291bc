// Package telemetry reports what this process does: metrics for Prometheus, spans for an
// OpenTelemetry collector, one log line per run.
//
// It only reads: it subscribes to the events that were committed to the journal and never makes a
// writer wait. What it cannot keep up with is dropped and counted. Counters are those of this process;
// none has a label for a user, a channel or a session, so the number of series is bounded by
// the program. The types of the libraries behind it stay inside.
package telemetry

import (
	"cmp"
	"context"
	"log/slog"
	"net/http"
	"runtime"
	"runtime/debug"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"chorus/internal/bus"
	"chorus/internal/chat"
)

// Options configures a Telemetry.
type Options struct {
	Bus     *bus.Bus // whose events are counted; nil: none
	Version string   // of this program
	// Snapshot counts what is in the database and the engine now. It is called when somebody scrapes, at most
	// once a second; nil: those metrics are left out.
	Snapshot func(context.Context) (Snapshot, error)
	// BuiltInTool reports whether a tool comes with the program; others share one label. nil: none does.
	BuiltInTool func(name string) bool
	Log         *slog.Logger // nil: nothing is logged
}

// Snapshot is the state of the home and of this process at one moment.
type Snapshot struct {
	Queued    int   // prompts that wait for their run
	Running   int   // threads with a run in progress
	Approvals int   // pending approvals
	Actors    int   // threads that this process has in memory
	Abandoned int   // waits that were given up and have not ended
	Lost      int64 // threads that another process took over from this one, since the start
}

// Telemetry counts what happens in this process. Make it with New, end it with Close.
type Telemetry struct {
	opts     Options
	registry *prometheus.Registry
	metrics  *metrics
	state    *stateCollector
	events   *bus.Subscription
	stop     chan struct{}
	once     sync.Once
	done     sync.WaitGroup
}

// New starts counting.
func New(o Options) *Telemetry {
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	reg := prometheus.NewRegistry()
	t := &Telemetry{opts: o, registry: reg, metrics: newMetrics(reg, o.BuiltInTool), stop: make(chan struct{})}
	t.state = newStateCollector(o.Snapshot, t.snapshotFailed)
	started := time.Now()
	reg.MustRegister(t.state, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "chorus_uptime_seconds", Help: "How long this process has been counting."},
			func() float64 { return time.Since(started).Seconds() }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "chorus_build_info", Help: "The program; always 1.", ConstLabels: buildLabels(o.Version)},
			func() float64 { return 1 }))
	if o.Bus != nil {
		t.events = o.Bus.SubscribeAll()
		t.done.Go(t.listen)
	}
	return t
}

func buildLabels(version string) prometheus.Labels {
	revision := ""
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				revision = s.Value
			}
		}
	}
	return prometheus.Labels{"version": version, "revision": revision, "goversion": runtime.Version()}
}

// Close counts what was published before it and stops listening. It may be called twice, and the
// metrics can be read afterwards.
func (t *Telemetry) Close() {
	t.once.Do(func() { close(t.stop) })
	t.done.Wait()
}

func (t *Telemetry) listen() {
	defer t.events.Close()
	receive(t.events, t.stop, t.metrics.count, t.metrics.gaps.Inc)
}

// receive hands the events of each commit to take until stop is closed, and then what is
// queued at that moment. gap is called when events were lost.
func receive(events *bus.Subscription, stop <-chan struct{}, take func([]chat.Event), gap func()) {
	drain := func() {
		notes, missed := events.Take()
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
			drain()
			return
		case <-events.Wake():
			drain()
		}
	}
}

// Committed notes how long a commit took. It never waits.
func (t *Telemetry) Committed(took time.Duration, err error) {
	outcome := "ok"
	if err != nil {
		outcome = "error"
	}
	t.metrics.commits.WithLabelValues(outcome).Observe(took.Seconds())
}

// Handler answers a scraper in the format it asks for: Prometheus' text by default, OpenMetrics
// or protobuf on request.
func (t *Telemetry) Handler() http.Handler {
	scrape := promhttp.HandlerFor(t.registry, promhttp.HandlerOpts{EnableOpenMetrics: true, ErrorHandling: promhttp.ContinueOnError})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			w.Header().Set("Allow", "GET, HEAD")
			http.Error(w, "only GET", http.StatusMethodNotAllowed)
			return
		}
		t.state.refresh(r.Context())
		w.Header().Set("Cache-Control", "no-store")
		scrape.ServeHTTP(w, r)
	})
}

func (t *Telemetry) snapshotFailed(err error) {
	t.metrics.scrapeErrors.Inc()
	t.opts.Log.Warn("the database could not be read for a scrape", "component", "telemetry", "event", "scrape_failed", "error", err)
}
