package tcpdial_test

import (
	"context"
	"errors"
	"net"
	"os"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"chorus/internal/tcpdial"
)

// A connection knows how long it may wait for the other machine.
func TestUnansweredIsLimited(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	conn, err := tcpdial.Dialer{}.Dial("tcp", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	raw, err := conn.(*net.TCPConn).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	var limit int
	if err := raw.Control(func(fd uintptr) { limit, _ = unix.GetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT) }); err != nil {
		t.Fatal(err)
	}
	if time.Duration(limit)*time.Millisecond != tcpdial.Unanswered {
		t.Errorf("%d ms", limit)
	}
}

// A queue that is full answers no first packet: attempts end with their context, and one that is made when there is room again works.
func TestFirstPacketsAreLost(t *testing.T) {
	t.Parallel()
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	if err := errors.Join(unix.Bind(fd, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}), unix.Listen(fd, 0)); err != nil {
		t.Fatal(err)
	}
	at, err := unix.Getsockname(fd)
	if err != nil {
		t.Fatal(err)
	}
	address := (&net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: at.(*unix.SockaddrInet4).Port}).String()
	for { // until nobody gets in any more
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second) // one that gets in needs less, also on a busy machine
		conn, err := tcpdial.Dialer{}.DialContext(ctx, "tcp", address)
		cancel()
		if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, os.ErrDeadlineExceeded) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
	}
	dialled := make(chan error, 1)
	go func() {
		conn, err := tcpdial.Dialer{}.Dial("tcp", address)
		if err == nil {
			_ = conn.Close()
		}
		dialled <- err
	}()
	select {
	case err := <-dialled:
		t.Fatalf("without room: %v", err)
	case <-time.After(100 * time.Millisecond):
	}
	go func() { // there is room for the next attempts
		for {
			accepted, _, err := unix.Accept(fd)
			if err != nil {
				return
			}
			_ = unix.Close(accepted)
		}
	}()
	defer unix.Shutdown(fd, unix.SHUT_RDWR)
	if err := <-dialled; err != nil {
		t.Fatal(err)
	}
}
