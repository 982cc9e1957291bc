package telemetry

import (
	"context"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

const (
	// snapshotTime bounds what a scrape may ask of the database.
	snapshotTime = 2 * time.Second
	// snapshotAge is how long a snapshot is used again: many scrapers cost one read a second.
	snapshotAge = time.Second
)

// stateCollector reports the last Snapshot, and nothing while none could be read: an old
// number would look like a true one.
type stateCollector struct {
	metrics []stateMetric
	read    func(context.Context) (Snapshot, error) // nil: never
	failed  func(error)

	mu    sync.Mutex
	at    time.Time
	known bool
	last  Snapshot
}

var _ prometheus.Collector = (*stateCollector)(nil)

// stateMetric is one number of a Snapshot.
type stateMetric struct {
	desc  *prometheus.Desc
	kind  prometheus.ValueType
	value func(Snapshot) float64
}

func newStateCollector(read func(context.Context) (Snapshot, error), failed func(error)) *stateCollector {
	c := &stateCollector{read: read, failed: failed}
	add := func(name, help string, kind prometheus.ValueType, value func(Snapshot) float64) {
		c.metrics = append(c.metrics, stateMetric{prometheus.NewDesc(name, help, nil, nil), kind, value})
	}
	add("chorus_queue_depth", "Prompts in the journal that wait for their run.", prometheus.GaugeValue, func(s Snapshot) float64 { return float64(s.Queued) })
	add("chorus_runs_active", "Threads with a run in progress, in any process of this home.", prometheus.GaugeValue, func(s Snapshot) float64 { return float64(s.Running) })
	add("chorus_approvals_pending", "Pending approvals.", prometheus.GaugeValue, func(s Snapshot) float64 { return float64(s.Approvals) })
	add("chorus_actors", "Threads that this process has in memory.", prometheus.GaugeValue, func(s Snapshot) float64 { return float64(s.Actors) })
	add("chorus_abandoned_waits", "Waits that did not end when they were cancelled; each holds a goroutine.", prometheus.GaugeValue, func(s Snapshot) float64 { return float64(s.Abandoned) })
	add("chorus_lease_lost_total", "Threads that another process took over from this one during a run.", prometheus.CounterValue, func(s Snapshot) float64 { return float64(s.Lost) })
	return c
}

// refresh reads a new snapshot if the last one is too old. A scraper that gives up does not end
// the read: others wait for it.
func (c *stateCollector) refresh(ctx context.Context) {
	if c.read == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.at.IsZero() && time.Since(c.at) < snapshotAge {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), snapshotTime)
	defer cancel()
	snapshot, err := c.read(ctx)
	c.at, c.known, c.last = time.Now(), err == nil, snapshot
	if err != nil {
		c.failed(err)
	}
}

func (c *stateCollector) Describe(to chan<- *prometheus.Desc) {
	for _, m := range c.metrics {
		to <- m.desc
	}
}

func (c *stateCollector) Collect(to chan<- prometheus.Metric) {
	c.mu.Lock()
	last, known := c.last, c.known
	c.mu.Unlock()
	if !known {
		return
	}
	for _, m := range c.metrics {
		to <- prometheus.MustNewConstMetric(m.desc, m.kind, m.value(last))
	}
}
