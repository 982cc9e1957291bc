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

	"golang.org/x/sys/unix"
)

// maxConnections of one command to the proxy at a time; more wait in line.
const maxConnections = 128

// forward takes what the command sends to the proxy's port in its own network and
// carries it to the real one. The launcher hands the listener over; stop ends
// everything and waits for it.
func (a *attempt) forward(proxy string) (stop func(), err error) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("make a socket for the sandbox: %w", err)
	}
	theirs := os.NewFile(uintptr(pair[1]), "launcher")
	ours := os.NewFile(uintptr(pair[0]), "listener")
	conn, err := net.FileConn(ours) // a copy, which the poller watches
	_ = ours.Close()
	if err != nil {
		_ = theirs.Close()
		return nil, fmt.Errorf("make a socket for the sandbox: %w", err)
	}
	a.proxyFD = a.give(theirs)
	ctx, cancel := context.WithCancel(context.Background())
	var group sync.WaitGroup
	group.Go(func() {
		if listener := receive(conn.(*net.UnixConn)); listener != nil {
			carryAll(ctx, listener, proxy)
		}
	})
	return func() {
		cancel()
		_ = conn.Close()
		group.Wait()
	}, nil
}

// receive waits for the launcher's listener; nil when none comes.
func receive(conn *net.UnixConn) net.Listener {
	buf, space := make([]byte, 1), make([]byte, unix.CmsgSpace(4))
	_, n, _, _, err := conn.ReadMsgUnix(buf, space)
	if err != nil {
		return nil
	}
	messages, err := unix.ParseSocketControlMessage(space[:n])
	if err != nil || len(messages) != 1 {
		return nil
	}
	fds, err := unix.ParseUnixRights(&messages[0])
	if err != nil || len(fds) != 1 {
		return nil
	}
	unix.CloseOnExec(fds[0])
	file := os.NewFile(uintptr(fds[0]), "listener")
	defer func() { _ = file.Close() }()
	listener, err := net.FileListener(file)
	if err != nil {
		return nil
	}
	return listener
}

// carryAll takes connections until ctx ends.
func carryAll(ctx context.Context, listener net.Listener, proxy string) {
	stop := context.AfterFunc(ctx, func() { _ = listener.Close() })
	defer stop()
	defer func() { _ = listener.Close() }()
	var group sync.WaitGroup
	defer group.Wait()
	slots := make(chan struct{}, maxConnections)
	for {
		inner, err := listener.Accept()
		if err != nil {
			return
		}
		select {
		case slots <- struct{}{}:
		case <-ctx.Done():
			_ = inner.Close()
			return
		}
		group.Go(func() {
			defer func() { <-slots }()
			carry(ctx, inner, proxy)
		})
	}
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
