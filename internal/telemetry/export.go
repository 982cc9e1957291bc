package telemetry

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// exporter sends spans to a collector, many at a time, from one goroutine of its own. It
// never makes anybody wait: where its queue is full, spans are dropped and counted.
type exporter struct {
	settings
	version string
	log     *slog.Logger
	client  *http.Client
	spans   chan span
	stop    chan struct{} // closed: send what is there, then end
	ctx     context.Context
	cancel  context.CancelFunc
	once    sync.Once
	done    sync.WaitGroup
	dropped atomic.Int64
	sent    atomic.Int64
	down    bool // the last request failed, and that was said
}

func newExporter(s settings, version string, log *slog.Logger) *exporter {
	e := &exporter{settings: s, version: version, log: log, spans: make(chan span, s.queue), stop: make(chan struct{})}
	e.ctx, e.cancel = context.WithCancel(context.Background())
	e.client = &http.Client{
		Transport: &http.Transport{Proxy: http.ProxyFromEnvironment, MaxIdleConns: 1, IdleConnTimeout: time.Minute, ForceAttemptHTTP2: true},
		// Headers may hold a key; they go where the configuration says and nowhere else.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	e.done.Go(e.loop)
	return e
}

// put hands a span over, or drops it.
func (e *exporter) put(s span) {
	select {
	case e.spans <- s:
	default:
		e.dropped.Add(1)
	}
}

// close sends what is waiting, at most until ctx ends. It may be called twice.
func (e *exporter) close(ctx context.Context) {
	e.once.Do(func() { close(e.stop) })
	release := context.AfterFunc(ctx, e.cancel)
	defer release()
	e.done.Wait()
	e.cancel()
	e.client.CloseIdleConnections()
	if n := e.dropped.Load(); n > 0 {
		e.log.Warn("spans were dropped", "component", "otel", "event", "spans_dropped", "dropped", n, "sent", e.sent.Load())
	}
}

func (e *exporter) loop() {
	var batch []span
	timer := time.NewTimer(time.Hour)
	timer.Stop()
	for {
		select {
		case s := <-e.spans:
			if batch = append(batch, s); len(batch) == 1 {
				timer.Reset(e.delay)
			}
			if len(batch) < e.batch {
				continue
			}
		case <-timer.C:
		case <-e.stop:
			e.last(batch)
			return
		}
		timer.Stop()
		e.deliver(batch)
		batch = nil
	}
}

// last sends what is left.
func (e *exporter) last(batch []span) {
	for {
		select {
		case s := <-e.spans:
			if batch = append(batch, s); len(batch) < e.batch {
				continue
			}
		default:
			e.deliver(batch)
			return
		}
		e.deliver(batch)
		batch = nil
	}
}

// How a batch is tried again.
const (
	firstPause = time.Second
	longPause  = 30 * time.Second
	tries      = 5
)

// deliver sends a batch, again where that may help, and drops it where not.
func (e *exporter) deliver(batch []span) {
	if len(batch) == 0 {
		return
	}
	body, err := e.body(batch)
	pause := firstPause
	for try := 1; err == nil; try++ {
		var again time.Duration
		var refused int64
		ending := e.ending() // then there is one try and no pause
		if refused, again, err = e.send(body); err == nil {
			refused = min(refused, int64(len(batch)))
			e.sent.Add(int64(len(batch)) - refused)
			e.dropped.Add(refused)
			e.well(refused)
			return
		}
		if again < 0 || try == tries || ending || e.ctx.Err() != nil {
			break
		}
		e.ill(err)
		if again == 0 {
			again = pause
			pause = min(2*pause, longPause)
		}
		e.pause(min(again, longPause))
		err = nil
	}
	e.dropped.Add(int64(len(batch)))
	e.ill(err)
}

func (e *exporter) ending() bool {
	select {
	case <-e.stop:
		return true
	default:
		return false
	}
}

// pause waits before another try; the end cuts it short.
func (e *exporter) pause(d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-e.stop:
	}
}

func (e *exporter) body(batch []span) ([]byte, error) {
	body, err := envelope(e.resource, e.version, batch)
	if err != nil || !e.gzip {
		return body, err
	}
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	_, err = z.Write(body)
	err = errors.Join(err, z.Close()) // closing writes the end
	return out.Bytes(), err
}

// maxAnswer is how much of a collector's answer is read.
const maxAnswer = 64 << 10

// send makes one request. again says when to make it anew: 0 after a pause of ours,
// below 0 never. refused is how many spans the collector did not want.
func (e *exporter) send(body []byte) (refused int64, again time.Duration, err error) {
	ctx, cancel := context.WithTimeout(e.ctx, e.timeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, e.endpoint, bytes.NewReader(body))
	if err != nil {
		return 0, -1, err
	}
	for name, values := range e.headers {
		req.Header[name] = values
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", "chorus/"+e.version)
	if e.gzip {
		req.Header.Set("Content-Encoding", "gzip")
	}
	res, err := e.client.Do(req)
	if err != nil {
		return 0, 0, err
	}
	defer res.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer))
	switch res.StatusCode {
	case http.StatusOK, http.StatusAccepted, http.StatusNoContent:
		return rejected(answer), 0, nil // it has them, whatever became of its answer
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return 0, retryAfter(res.Header.Get("Retry-After"), time.Now()), errors.Join(fmt.Errorf("the collector answered %s", res.Status), err)
	}
	return 0, -1, fmt.Errorf("the collector answered %s", res.Status)
}

// rejected is how many spans an answer says were not taken. An answer that cannot be read
// says nothing.
func rejected(answer []byte) int64 {
	var a struct {
		Partial struct {
			Rejected json.RawMessage `json:"rejectedSpans"`
		} `json:"partialSuccess"`
	}
	if json.Unmarshal(answer, &a) != nil {
		return 0
	}
	n, err := strconv.ParseInt(strings.Trim(string(a.Partial.Rejected), `"`), 10, 64)
	if err != nil || n < 0 {
		return 0
	}
	return n
}

// retryAfter reads seconds or a date; 0: it says nothing that can be used.
func retryAfter(text string, now time.Time) time.Duration {
	if seconds, err := strconv.Atoi(strings.TrimSpace(text)); err == nil && seconds >= 0 {
		return time.Duration(min(seconds, 3600)) * time.Second
	}
	if at, err := http.ParseTime(text); err == nil && at.After(now) {
		return at.Sub(now)
	}
	return 0
}

// ill says once that the collector cannot be used; well that it can again.
func (e *exporter) ill(err error) {
	if !e.down {
		e.down = true
		e.log.Warn("traces do not reach their collector", "component", "otel", "event", "export_failed", "endpoint", e.endpoint, "error", err)
	}
}

func (e *exporter) well(refused int64) {
	if e.down {
		e.down = false
		e.log.Info("traces reach their collector again", "component", "otel", "event", "export_recovered", "dropped", e.dropped.Load())
	}
	if refused > 0 {
		e.log.Warn("the collector did not want some spans", "component", "otel", "event", "spans_rejected", "spans", refused)
	}
}
