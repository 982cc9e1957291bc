// Package live sends a session's events to whoever watches, as server-sent events.
//
// It promises:
//   - the id of an event is its number in the journal, and stands only on the last
//     object of a number, so that whoever comes back with it misses nothing and sees
//     nothing twice;
//   - a reader costs the same few kilobytes however slow it is: one that does not keep
//     up is taken off the live feed and reads on from the journal, at its own number;
//   - a reader that is gone is noticed by a write that fails or a heartbeat that does;
//   - when the house closes, each reader is told so and when to come back.
package live

import (
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

// Source gives what there is after a number and then what comes, until ctx ends.
type Source func(ctx context.Context, after int64) iter.Seq2[feed.Item, error]

// Options tune a hub; the zero value is what people get.
type Options struct {
	Heartbeat time.Duration // 0: 15 s
	// Patience is how long a write of a few kilobytes may take; 0: 30 s.
	Patience time.Duration
	// Room is how many bytes may wait for a reader; 0: 128 KB, some hundred events.
	Room int
	// Still says why the reader of a request may not read any more; it is asked about
	// twice a minute. nil: whoever was let in stays.
	Still func(ctx context.Context) error
	Log   *slog.Logger
}

// Hub knows every open stream. Its methods may be called from any goroutine.
type Hub struct {
	o       Options
	mu      sync.Mutex
	readers int
	closing chan struct{} // closed by Drain
	gone    chan struct{} // closed when the last reader left after that
}

// ErrClosing is what a new reader is told when the house closes.
var ErrClosing = errors.New("the server is stopping; come back in a moment")

// New makes a hub.
func New(o Options) *Hub {
	if o.Heartbeat == 0 {
		o.Heartbeat = 15 * time.Second
	}
	if o.Patience == 0 {
		o.Patience = 30 * time.Second
	}
	if o.Room == 0 {
		o.Room = 128 << 10
	}
	if o.Log == nil {
		o.Log = slog.Default()
	}
	return &Hub{o: o, closing: make(chan struct{}), gone: make(chan struct{})}
}

// Readers is how many streams are open.
func (h *Hub) Readers() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.readers
}

// Drain tells every reader goodbye, lets no new one in, and waits until all have
// left or ctx ends. It may be called twice.
func (h *Hub) Drain(ctx context.Context) error {
	h.mu.Lock()
	if !h.isClosing() {
		close(h.closing)
		if h.readers == 0 {
			close(h.gone)
		}
	}
	h.mu.Unlock()
	select {
	case <-h.gone:
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
		close(h.gone)
	}
}

// How soon a client shall come back: at once would be a stampede after a restart,
// and nobody notices less than a second.
const (
	retryUsual   = 2000
	retryClosing = 500
)

// Serve answers a request with the events of a source after a number. It returns an
// error only before anything was written.
func (h *Hub) Serve(w http.ResponseWriter, r *http.Request, after int64, source Source) error {
	if err := h.enter(); err != nil {
		return err
	}
	defer h.leave()
	header := w.Header()
	header.Set("Content-Type", "text/event-stream; charset=utf-8")
	header.Set("Cache-Control", "no-store")
	header.Set("X-Accel-Buffering", "no") // or a proxy collects what should be seen at once
	s := &stream{hub: h, w: w, control: http.NewResponseController(w), position: position{after: after}, asked: time.Now()}
	// A stream outlives every deadline of an ordinary request.
	_ = s.control.SetReadDeadline(time.Time{}) // not every writer can, and then there is none
	w.WriteHeader(http.StatusOK)
	if r.Method == http.MethodHead {
		return nil
	}
	s.run(r.Context(), source)
	return nil
}

// stream is one reader. It belongs to the goroutine that serves the request.
type stream struct {
	hub      *Hub
	w        http.ResponseWriter
	control  *http.ResponseController
	position position
	buf      []byte
	asked    time.Time // when it was last asked whether the reader may still read
}

// stillEvery is how long a token that was taken back may still be read with.
const stillEvery = 30 * time.Second

func (s *stream) still(ctx context.Context) error {
	if s.hub.o.Still == nil || time.Since(s.asked) < stillEvery {
		return nil
	}
	s.asked = time.Now()
	return s.hub.o.Still(ctx)
}

// run follows the source until the reader or the house has gone. Each round is one
// look at the source; the next one begins where the reader stands.
func (s *stream) run(ctx context.Context, source Source) {
	if s.write([]byte("retry: "+strconv.Itoa(retryUsual)+"\n: hello\n\n")) != nil {
		return
	}
	for {
		q := newQueue(s.hub.o.Room, s.position)
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

// send writes what comes until the source ends or breaks off for a reader that is
// behind, the house closes, or a write fails.
func (s *stream) send(ctx context.Context, q *queue) (behind bool, err error) {
	beat := time.NewTimer(s.hub.o.Heartbeat)
	defer beat.Stop()
	for {
		if err := s.still(ctx); err != nil {
			return false, err
		}
		select {
		case <-ctx.Done():
			return false, ctx.Err()
		case <-s.hub.closing:
			return false, nil
		case <-beat.C:
			err = s.write([]byte(": still here\n\n"))
		case <-q.bell:
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

// goodbye sends what still lies there, and the last comment.
func (s *stream) goodbye(q *queue) {
	frames, _ := q.take()
	if s.writeAll(frames) == nil {
		_ = s.write([]byte("retry: " + strconv.Itoa(retryClosing) + "\n: bye\n\n")) // the last word
	}
}

// chunk is how much is written under one deadline: whoever takes less than a kilobyte
// a second is taken for gone.
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
		_ = s.control.SetWriteDeadline(time.Now().Add(s.hub.o.Patience)) // see SetReadDeadline
		if _, err := s.w.Write(data[:n]); err != nil {
			return err
		}
		data = data[n:]
	}
	return s.control.Flush()
}
