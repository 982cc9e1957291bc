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

// splice copies bytes both ways until both sides have ended, one fails,
// nothing was read for idle, or ctx ends. It closes both.
func splice(ctx context.Context, a, b io.ReadWriteCloser, idle time.Duration) {
	end := func() { _ = a.Close(); _ = b.Close() }
	defer end()
	defer context.AfterFunc(ctx, end)()
	watch := time.AfterFunc(idle, end)
	defer watch.Stop()
	moved := func() { watch.Reset(idle) }

	var both sync.WaitGroup
	both.Go(func() { copyHalf(a, b, moved, end) })
	both.Go(func() { copyHalf(b, a, moved, end) })
	both.Wait()
}

func copyHalf(dst, src io.ReadWriteCloser, moved, end func()) {
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

// bufferedConn is a connection of which some bytes are already in a buffer.
type bufferedConn struct {
	net.Conn
	ahead io.Reader
}

func (b *bufferedConn) Read(p []byte) (int, error) { return b.ahead.Read(p) }

// CloseWrite closes one direction, if the connection can.
func (b *bufferedConn) CloseWrite() error { return closeWrite(b.Conn) }

// timedConn is a connection on which no read or write takes longer than idle.
type timedConn struct {
	net.Conn
	idle        time.Duration
	deadline    time.Time   // if not zero, all reads end by then
	interrupted atomic.Bool // reads end at once
}

func (t *timedConn) Read(p []byte) (int, error) {
	end := time.Now().Add(t.idle)
	if !t.deadline.IsZero() && t.deadline.Before(end) {
		end = t.deadline
	}
	if err := t.SetReadDeadline(end); err != nil {
		return 0, err
	}
	if t.interrupted.Load() { // checked after setting the deadline, in case interrupt came before it
		return 0, os.ErrDeadlineExceeded
	}
	return t.Conn.Read(p)
}

// Write also extends the read deadline: during a long upload nothing is read.
func (t *timedConn) Write(p []byte) (int, error) {
	if err := t.SetWriteDeadline(time.Now().Add(t.idle)); err != nil {
		return 0, err
	}
	n, err := t.Conn.Write(p)
	if n > 0 && t.deadline.IsZero() && !t.interrupted.Load() {
		_ = t.SetReadDeadline(time.Now().Add(t.idle))
	}
	return n, err
}

// interrupt ends the current read and all further ones, until resume.
func (t *timedConn) interrupt() {
	t.interrupted.Store(true)
	_ = t.SetReadDeadline(time.Unix(1, 0))
}

func (t *timedConn) resume() { t.interrupted.Store(false) }

// CloseWrite closes one direction, if the connection can.
func (t *timedConn) CloseWrite() error { return closeWrite(t.Conn) }

func closeWrite(c net.Conn) error {
	if half, ok := c.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return c.Close()
}
