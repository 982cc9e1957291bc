package bwrap

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"time"
)

// maxConnections is how many connections one command may have to the proxy at a time. Further ones wait.
const maxConnections = 128

// forwarder carries what commands send to the proxy's port in their own network namespace to the real proxy.
// The listener comes from process 1: it stays in that namespace even though connections are accepted outside.
type forwarder struct {
	listener net.Listener
	done     sync.WaitGroup

	mu    sync.Mutex
	proxy string          // of the running command
	ctx   context.Context // ends with the command
	group *sync.WaitGroup // its connections
}

func newForwarder(file *os.File) (*forwarder, error) {
	listener, err := net.FileListener(file)
	if err != nil {
		return nil, fmt.Errorf("listen for the proxy: %w", err)
	}
	f := &forwarder{listener: listener}
	f.done.Go(f.accept)
	return f, nil
}

// carryTo sets where the connections of the next command go. The result ends them.
func (f *forwarder) carryTo(proxy string) (end func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	ctx, cancel := context.WithCancel(context.Background())
	group := &sync.WaitGroup{}
	f.proxy, f.ctx, f.group = proxy, ctx, group
	return func() {
		f.mu.Lock()
		f.ctx = nil
		f.mu.Unlock()
		cancel()
		group.Wait()
	}
}

// accept takes connections until the listener is closed.
func (f *forwarder) accept() {
	slots := make(chan struct{}, maxConnections)
	for {
		conn, err := f.listener.Accept()
		if err != nil {
			return
		}
		f.mu.Lock()
		ctx, proxy, group := f.ctx, f.proxy, f.group
		if ctx == nil { // of a command that has ended
			f.mu.Unlock()
			_ = conn.Close()
			continue
		}
		group.Add(1)
		f.mu.Unlock()
		go func() {
			defer group.Done()
			select {
			case slots <- struct{}{}:
				defer func() { <-slots }()
				carry(ctx, conn, proxy)
			case <-ctx.Done():
				_ = conn.Close()
			}
		}()
	}
}

func (f *forwarder) close() {
	_ = f.listener.Close()
	f.done.Wait()
}

// carry copies both ways between the command and the proxy.
func carry(ctx context.Context, inner net.Conn, proxy string) {
	defer func() { _ = inner.Close() }()
	network := "tcp"
	if strings.HasPrefix(proxy, "/") {
		network = "unix"
	}
	outer, err := (&net.Dialer{Timeout: 10 * time.Second}).DialContext(ctx, network, proxy)
	if err != nil {
		_, _ = io.WriteString(inner, "HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
		return
	}
	defer func() { _ = outer.Close() }()
	stop := context.AfterFunc(ctx, func() { _ = errors.Join(inner.Close(), outer.Close()) })
	defer stop()
	var group sync.WaitGroup
	for _, way := range [][2]net.Conn{{inner, outer}, {outer, inner}} {
		group.Go(func() {
			_, _ = io.Copy(way[0], way[1])
			if half, ok := way[0].(interface{ CloseWrite() error }); ok {
				_ = half.CloseWrite()
			}
		})
	}
	group.Wait()
}
