package egress

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// splice carries bytes both ways until both sides have ended, one fails, nothing moved for
// idle, or ctx ends. It closes both.
func splice(ctx context.Context, a, b io.ReadWriteCloser, idle time.Duration) {
	end := func() { _ = a.Close(); _ = b.Close() }
	defer end()
	defer context.AfterFunc(ctx, end)()
	watch := time.AfterFunc(idle, end)
	defer watch.Stop()
	moved := func() { watch.Reset(idle) }

	var both sync.WaitGroup
	both.Go(func() { carry(a, b, moved, end) })
	both.Go(func() { carry(b, a, moved, end) })
	both.Wait()
}

func carry(dst, src io.ReadWriteCloser, moved, end func()) {
	buf := make([]byte, 32<<10)
	for {
		n, err := src.Read(buf)
		if n > 0 {
			moved()
			if _, err := dst.Write(buf[:n]); err != nil {
				end()
				return
			}
			moved()
		}
		if err == nil {
			continue
		}
		half, ok := dst.(interface{ CloseWrite() error })
		if !errors.Is(err, io.EOF) || !ok || half.CloseWrite() != nil {
			end()
		}
		return
	}
}

// buffered is a connection some of whose bytes were read ahead.
type buffered struct {
	net.Conn
	ahead io.Reader
}

func (b *buffered) Read(p []byte) (int, error) { return b.ahead.Read(p) }

// CloseWrite passes a half close on, where the connection knows it.
func (b *buffered) CloseWrite() error { return closeWrite(b.Conn) }

// timed is a connection that no single read or write holds for longer than idle.
type timed struct {
	net.Conn
	idle  time.Duration
	until time.Time   // when not zero, reads end by then, however they trickle
	stop  atomic.Bool // reads are to end at once
}

func (t *timed) Read(p []byte) (int, error) {
	end := time.Now().Add(t.idle)
	if !t.until.IsZero() && t.until.Before(end) {
		end = t.until
	}
	if err := t.SetReadDeadline(end); err != nil {
		return 0, err
	}
	if t.stop.Load() { // after the deadline was set: interrupt may have come before it
		return 0, os.ErrDeadlineExceeded
	}
	return t.Conn.Read(p)
}

// Write gives the reader new time as well: a long upload is no silence.
func (t *timed) Write(p []byte) (int, error) {
	if err := t.SetWriteDeadline(time.Now().Add(t.idle)); err != nil {
		return 0, err
	}
	n, err := t.Conn.Write(p)
	if n > 0 && t.until.IsZero() && !t.stop.Load() {
		_ = t.SetReadDeadline(time.Now().Add(t.idle))
	}
	return n, err
}

// interrupt ends the read that is under way and those to come, until resume.
func (t *timed) interrupt() {
	t.stop.Store(true)
	_ = t.SetReadDeadline(time.Unix(1, 0))
}

func (t *timed) resume() { t.stop.Store(false) }

// CloseWrite passes a half close on, where the connection knows it.
func (t *timed) CloseWrite() error { return closeWrite(t.Conn) }

func closeWrite(c net.Conn) error {
	if half, ok := c.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return c.Close()
}
