// Package peernotify tells the other processes that work on the same home that something was written: each that
// subscribes has a socket in one folder, and a notification is a datagram with the name of a thread.
//
// It promises never to wait, never to return an error to the sender and never to be needed: whoever notifies has
// written already, and whoever subscribes also looks by itself from time to time, so a notification that is lost
// costs that time and nothing else. A notification is trusted only so far: it names a thread worth a look.
package peernotify

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"sync"
	"syscall"
	"time"

	"chorus/internal/chat"
)

// Peers is the folder with the sockets of the processes on one home.
type Peers struct {
	dir string

	mu  sync.Mutex
	own string // the name of this process's socket; "": it did not subscribe
}

// In is the peers whose sockets are in a folder, which need not exist. Nothing is touched.
func In(dir string) *Peers { return &Peers{dir: dir} }

// maxPeers bounds what one notification costs; with more processes than that, some rely on their regular look.
const maxPeers = 256

// Notify tells every other subscribed process that something was written to the thread. Where there is none it
// costs one reading of a folder. A nil receiver notifies nobody.
func (p *Peers) Notify(thread chat.ThreadID) {
	if p == nil {
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
		err := syscall.Sendto(socket, []byte(thread), syscall.MSG_DONTWAIT, &syscall.SockaddrUnix{Name: address(dir, name)})
		if errors.Is(err, syscall.ECONNREFUSED) {
			remove(filepath.Join(p.dir, name))
		}
	}
}

func (p *Peers) mine() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.own
}

func (p *Peers) set(own string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.own = own
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
