package peernotify

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"sync"
	"syscall"
	"time"
)

// Datagrams notifies the processes on one home through a folder of sockets. Each
// subscriber has one, and a notification is a datagram with the topic.
type Datagrams struct {
	dir string

	mu   sync.Mutex
	own  string // the name of this process's socket; "" if it did not subscribe
	done bool
}

// In returns the peers whose sockets are in a folder, which need not exist. It touches no files.
func In(dir string) *Datagrams { return &Datagrams{dir: dir} }

// maxPeers limits the cost of one notification. With more processes
// than that, some rely on their regular check.
const maxPeers = 256

// Notify tells every other subscribed process. If there is none, it costs one read of a folder.
func (p *Datagrams) Notify(topic Topic) {
	if _, err := ParseTopic(string(topic)); err != nil || p.closed() {
		return
	}
	dir, err := os.Open(p.dir)
	if err != nil {
		return // nobody has ever subscribed here
	}
	defer dir.Close()
	names, _ := dir.Readdirnames(maxPeers)
	own := p.mine()
	socket := -1
	for _, name := range names {
		if name == own {
			continue // inside this process the bus does this
		}
		if socket < 0 {
			if socket, err = newSocket(); err != nil {
				return
			}
			defer syscall.Close(socket)
		}
		err := syscall.Sendto(socket, []byte(topic), syscall.MSG_DONTWAIT, &syscall.SockaddrUnix{Name: address(dir, name)})
		if errors.Is(err, syscall.ECONNREFUSED) {
			remove(filepath.Join(p.dir, name))
		}
	}
}

func (p *Datagrams) mine() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.own
}

func (p *Datagrams) set(own string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.own = own
}

// Close stops sending notifications. Whoever has the subscription closes it.
func (p *Datagrams) Close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.done = true
}

func (p *Datagrams) closed() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.done
}

// Subscribe opens this process's socket. Closing the subscription removes it.
func (p *Datagrams) Subscribe() (*Subscription, error) {
	if err := os.MkdirAll(p.dir, 0o700); err != nil {
		return nil, fmt.Errorf("listen to other processes: %w", err)
	}
	dir, err := os.Open(p.dir)
	if err != nil {
		return nil, fmt.Errorf("listen to other processes: %w", err)
	}
	defer dir.Close()
	name := rand.Text()[:12] // not the process id: containers that share a home may have the same ones
	p.set(name)
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: address(dir, name), Net: "unixgram"})
	if err != nil {
		p.set("")
		return nil, fmt.Errorf("listen to other processes: %w", err)
	}
	path, ended := filepath.Join(p.dir, name), make(chan struct{})
	s := NewSubscription(func() {
		_ = conn.Close()
		<-ended
		p.set("")
		_ = os.Remove(path)
	})
	go func() {
		defer close(ended)
		receive(conn, s)
	}()
	return s, nil
}

// longest is the length of the longest topic plus one byte, so that a longer datagram is noticed.
const longest = len(grew) + 1025

// receive reads until the socket is closed. It never blocks, so that the socket's queue stays empty.
func receive(conn *net.UnixConn, s *Subscription) {
	buf := make([]byte, longest)
	for {
		n, err := conn.Read(buf)
		if err != nil {
			return // closed or broken: the regular check finds what was written
		}
		if topic, err := ParseTopic(string(buf[:n])); err == nil {
			s.Put(topic)
		}
	}
}

// newSocket opens a socket for sending that child processes do not inherit.
func newSocket() (int, error) {
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	fd, err := syscall.Socket(syscall.AF_UNIX, syscall.SOCK_DGRAM, 0)
	if err == nil {
		syscall.CloseOnExec(fd)
	}
	return fd, err
}

// young is the age below which a socket that refuses connections is left alone: its
// file exists for a moment before its process can be reached.
const young = time.Second

// remove deletes the socket of a process that was killed.
func remove(path string) {
	info, err := os.Lstat(path)
	if err == nil && info.Mode().Type() == fs.ModeSocket && time.Since(info.ModTime()) > young {
		_ = os.Remove(path) // the next notification tries again
	}
}

// longestPath is the length of a socket address that every system accepts.
const longestPath = 103

// address returns the address of a socket in the folder. The path of a home may be longer
// than an address can be; Linux can also reach the open folder under a short name.
// Elsewhere, processes on such a home do not notify each other.
func address(dir *os.File, name string) string {
	path := filepath.Join(dir.Name(), name)
	if len(path) > longestPath && runtime.GOOS == "linux" {
		return "/proc/self/fd/" + strconv.Itoa(int(dir.Fd())) + "/" + name
	}
	return path
}
