// Package live streams a session's events to clients as server-sent events.
//
// It promises:
//   - the id of an event is its number in the journal and stands only on the last object of
//     that number, so a client that reconnects with it misses nothing and gets nothing twice;
//   - memory per client is bounded however slow it is: one that does not keep up is taken off
//     the live feed and continues from the journal, at its own position;
//   - a client that disconnected is noticed by the next write or heartbeat;
//   - at shutdown every client is told so, and when to reconnect.
package live

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"log/slog"
	"net/http"
	"strconv"
	"sync"
	"time"

	"chorus/internal/feed"
)

// Source yields the items after a journal number and then new ones, until ctx ends.
type Source func(ctx context.Context, after int64) iter.Seq2[feed.Item, error]

// Options configure a Hub; the zero value is what production uses.
type Options struct {
	Heartbeat time.Duration // 0: 15 s
	// WriteTimeout is how long one write may take; 0: 30 s.
	WriteTimeout time.Duration
	// QueueBytes is how many bytes may be queued for a reader; 0: 128 KB, a few hundred events.
	QueueBytes int
	// Recheck returns an error when the reader of a request is no longer allowed to read. It is
	// called twice a minute. nil: access is checked at the start only.
	Recheck func(ctx context.Context) error
	Log     *slog.Logger
}

// Hub counts the open streams and ends them at shutdown. It is safe for concurrent use.
type Hub struct {
	o       Options
	mu      sync.Mutex
	readers int
	closing chan struct{} // closed by Drain
	drained chan struct{} // closed when the last reader left after Drain
}

// ErrClosing is returned to new readers after Drain.
var ErrClosing = errors.New("the server is stopping; try again in a moment")

// New makes a Hub.
func New(o Options) *Hub {
	o.Heartbeat = cmp.Or(o.Heartbeat, 15*time.Second)
	o.WriteTimeout = cmp.Or(o.WriteTimeout, 30*time.Second)
	o.QueueBytes = cmp.Or(o.QueueBytes, 128<<10)
	o.Log = cmp.Or(o.Log, slog.Default())
	return &Hub{o: o, closing: make(chan struct{}), drained: make(chan struct{})}
}

// Readers is how many streams are open.
func (h *Hub) Readers() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.readers
}

// Drain ends every stream, refuses new ones, and waits until all have ended or ctx is
// done. It may be called twice.
func (h *Hub) Drain(ctx context.Context) error {
	h.mu.Lock()
	if !h.isClosing() {
		close(h.closing)
		if h.readers == 0 {
			close(h.drained)
		}
	}
	h.mu.Unlock()
	select {
	case <-h.drained:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (h *Hub) isClosing() bool {
	select {
	case <-h.closing:
		return true
	default:
		return false
	}
}

func (h *Hub) enter() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.isClosing() {
		return ErrClosing
	}
	h.readers++
	return nil
}

func (h *Hub) leave() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.readers--
	if h.readers == 0 && h.isClosing() {
		close(h.drained)
	}
}

// How many milliseconds a client waits before it reconnects: no wait at all would make all
// of them come at once after a restart.
const (
	retryUsual   = 2000
	retryClosing = 500
)

// Serve answers a request with the events of a source after a journal number. It returns an
// error only before anything was written.
func (h *Hub) Serve(w http.ResponseWriter, r *http.Request, after int64, source Source) error {
	if err := h.enter(); err != nil {
		return err
	}
	defer h.leave()
	header := w.Header()
	header.Set("Content-Type", "text/event-stream; charset=utf-8")
	header.Set("Cache-Control", "no-store")
	header.Set("X-Accel-Buffering", "no") // keeps proxies from buffering
	s := &stream{hub: h, w: w, control: http.NewResponseController(w), position: position{after: after}, checkedAt: time.Now()}
	// A stream outlives the deadlines of ordinary requests.
	_ = s.control.SetReadDeadline(time.Time{}) // writers that cannot set one have none
	w.WriteHeader(http.StatusOK)
	if r.Method == http.MethodHead {
		return nil
	}
	s.run(r.Context(), source)
	return nil
}

// stream is one reader. It belongs to the goroutine that serves the request.
type stream struct {
	hub       *Hub
	w         http.ResponseWriter
	control   *http.ResponseController
	position  position
	buf       []byte
	checkedAt time.Time // when Recheck was last called
}

// recheckEvery is how long a stream may outlive a revoked token.
const recheckEvery = 30 * time.Second

func (s *stream) recheck(ctx context.Context) error {
	if s.hub.o.Recheck == nil || time.Since(s.checkedAt) < recheckEvery {
		return nil
	}
	s.checkedAt = time.Now()
	return s.hub.o.Recheck(ctx)
}

// run streams the source until the reader disconnects or the server shuts down. Each round
// watches the source once; a reader that fell behind continues at its position in the next.
func (s *stream) run(ctx context.Context, source Source) {
	if s.write([]byte("retry: "+strconv.Itoa(retryUsual)+"\n: hello\n\n")) != nil {
		return
	}
	for {
		q := newQueue(s.hub.o.QueueBytes, s.position)
		watching, stop := context.WithCancel(ctx)
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			q.fill(source(watching, s.position.after))
		}()
		behind, err := s.send(ctx, q)
		stop()
		<-ended
		switch {
		case err != nil || ctx.Err() != nil:
			return
		case !behind || s.hub.isClosing():
			s.goodbye(q)
			return
		}
		s.position = q.at
	}
}

// send writes frames until the source ends, the queue is full because the reader is behind,
// the server shuts down, or a write fails.
func (s *stream) send(ctx context.Context, q *queue) (behind bool, err error) {
	beat := time.NewTimer(s.hub.o.Heartbeat)
	defer beat.Stop()
	for {
		if err := s.recheck(ctx); err != nil {
			return false, err
		}
		select {
		case <-ctx.Done():
			return false, ctx.Err()
		case <-s.hub.closing:
			return false, nil
		case <-beat.C:
			err = s.write([]byte(": still here\n\n"))
		case <-q.wake:
			frames, state := q.take()
			err = s.writeAll(frames)
			if err == nil && state != open {
				return state == full, nil
			}
		}
		if err != nil {
			return false, err
		}
		beat.Reset(s.hub.o.Heartbeat)
	}
}

// goodbye sends what is still queued and a last comment.
func (s *stream) goodbye(q *queue) {
	frames, _ := q.take()
	if s.writeAll(frames) == nil {
		_ = s.write([]byte("retry: " + strconv.Itoa(retryClosing) + "\n: bye\n\n")) // the stream ends anyway
	}
}

// chunk is how much is written under one deadline: a reader that takes less than a kilobyte
// a second is treated as disconnected.
const chunk = 32 << 10

func (s *stream) writeAll(frames [][]byte) error {
	s.buf = s.buf[:0]
	for _, frame := range frames {
		if len(s.buf) > 0 && len(s.buf)+len(frame) > chunk {
			if err := s.write(s.buf); err != nil {
				return err
			}
			s.buf = s.buf[:0]
		}
		if len(frame) > chunk {
			if err := s.write(frame); err != nil {
				return err
			}
			continue
		}
		s.buf = append(s.buf, frame...)
	}
	if len(s.buf) == 0 {
		return nil
	}
	return s.write(s.buf)
}

func (s *stream) write(data []byte) error {
	for len(data) > 0 {
		n := min(chunk, len(data))
		_ = s.control.SetWriteDeadline(time.Now().Add(s.hub.o.WriteTimeout)) // see SetReadDeadline
		if _, err := s.w.Write(data[:n]); err != nil {
			return err
		}
		data = data[n:]
	}
	return s.control.Flush()
}
