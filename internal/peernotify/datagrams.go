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

// Datagrams is the folder with the sockets of the processes on one home: each that subscribes has one, and a
// notification is a datagram with the topic.
type Datagrams struct {
	dir string

	mu   sync.Mutex
	own  string // the name of this process's socket; "": it did not subscribe
	done bool
}

// In is the peers whose sockets are in a folder, which need not exist. Nothing is touched.
func In(dir string) *Datagrams { return &Datagrams{dir: dir} }

// maxPeers bounds what one notification costs; with more processes than that, some rely on their regular look.
const maxPeers = 256

// Notify tells every other subscribed process. Where there is none it costs one reading of a folder.
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
			continue // inside this process the bus does it
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

// Close has no further notification sent. The subscription is closed by whoever has it.
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

// Subscribe opens this process's socket; closing the subscription removes it.
func (p *Datagrams) Subscribe() (*Subscription, error) {
	if err := os.MkdirAll(p.dir, 0o700); err != nil {
		return nil, fmt.Errorf("listen to other processes: %w", err)
	}
	dir, err := os.Open(p.dir)
	if err != nil {
		return nil, fmt.Errorf("listen to other processes: %w", err)
	}
	defer dir.Close()
	name := rand.Text()[:12] // no process id: containers that share a home have the same ones
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

// longest is the longest topic and one byte more, so that a datagram that is too long is noticed.
const longest = len(grew) + 1025

// receive reads until the socket is closed. It never blocks on whoever takes, so that the socket's queue stays empty.
func receive(conn *net.UnixConn, s *Subscription) {
	buf := make([]byte, longest)
	for {
		n, err := conn.Read(buf)
		if err != nil {
			return // closed, or broken: then the regular look finds what was written
		}
		if topic, err := ParseTopic(string(buf[:n])); err == nil {
			s.Put(topic)
		}
	}
}

// newSocket opens a socket to send with, which no program that is started meanwhile inherits.
func newSocket() (int, error) {
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	fd, err := syscall.Socket(syscall.AF_UNIX, syscall.SOCK_DGRAM, 0)
	if err == nil {
		syscall.CloseOnExec(fd)
	}
	return fd, err
}

// young is the age below which a socket that refuses is left alone: its file exists a moment before its process
// can be reached.
const young = time.Second

// remove deletes the socket of a process that was killed.
func remove(path string) {
	info, err := os.Lstat(path)
	if err == nil && info.Mode().Type() == fs.ModeSocket && time.Since(info.ModTime()) > young {
		_ = os.Remove(path) // the next notification tries again
	}
}

// longestPath is the length of a socket's address that every system accepts.
const longestPath = 103

// address is the address of a socket in the folder. A home may have a longer path than an address can hold; Linux
// reaches the open folder under a short name too. Elsewhere processes on such a home do not notify each other.
func address(dir *os.File, name string) string {
	path := filepath.Join(dir.Name(), name)
	if len(path) > longestPath && runtime.GOOS == "linux" {
		return "/proc/self/fd/" + strconv.Itoa(int(dir.Fd())) + "/" + name
	}
	return path
}
