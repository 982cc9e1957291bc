// Package peernotify rings at the other processes that work on the same home: each that
// listens has a socket in one folder, and a ring is a datagram with the name of a thread.
//
// It promises never to wait, never to fail aloud and never to be needed: whoever rings has
// written already, and whoever listens also looks by itself from time to time, so a ring
// that is lost costs that time and nothing else. What comes in is believed as far as that:
// it names a thread worth a look.
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

// Peers is the folder of the bells of one home.
type Peers struct {
	dir string

	mu  sync.Mutex
	own string // the name of this process's bell; "": it does not listen
}

// In is the bells in a folder, which need not exist. Nothing is touched.
func In(dir string) *Peers { return &Peers{dir: dir} }

// maxPeers bounds what one ring costs; a home with more processes has slower ones among them.
const maxPeers = 256

// Notify tells every other process that listens that something was written to the thread.
// Where nobody does it costs a look into a folder. A nil receiver rings nowhere.
func (b *Peers) Notify(thread chat.ThreadID) {
	if b == nil {
		return
	}
	dir, err := os.Open(b.dir)
	if err != nil {
		return // nobody has ever listened here
	}
	defer dir.Close()
	names, _ := dir.Readdirnames(maxPeers)
	own := b.mine()
	socket := -1
	for _, name := range names {
		if name == own {
			continue // this process has bells of its own for that
		}
		if socket < 0 {
			if socket, err = newSocket(); err != nil {
				return
			}
			defer syscall.Close(socket)
		}
		err := syscall.Sendto(socket, []byte(thread), syscall.MSG_DONTWAIT, &syscall.SockaddrUnix{Name: address(dir, name)})
		if errors.Is(err, syscall.ECONNREFUSED) {
			remove(filepath.Join(b.dir, name))
		}
	}
}

func (b *Peers) mine() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.own
}

func (b *Peers) set(own string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.own = own
}

// newSocket is one to send with, which no program that is started meanwhile inherits.
func newSocket() (int, error) {
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	fd, err := syscall.Socket(syscall.AF_UNIX, syscall.SOCK_DGRAM, 0)
	if err == nil {
		syscall.CloseOnExec(fd)
	}
	return fd, err
}

// young is how long a bell that does not answer is left alone: its file is there a moment
// before its process can be reached.
const young = time.Second

// remove takes away the bell of a process that was killed.
func remove(path string) {
	info, err := os.Lstat(path)
	if err == nil && info.Mode().Type() == fs.ModeSocket && time.Since(info.ModTime()) > young {
		_ = os.Remove(path) // the next one who rings tries again
	}
}

// longestPath is what fits into an address on every system.
const longestPath = 103

// address is where a bell of the folder is reached. Homes may lie deeper than an address is
// long; Linux finds the open folder under a short name too. Elsewhere such a home has no bells.
func address(dir *os.File, name string) string {
	path := filepath.Join(dir.Name(), name)
	if len(path) > longestPath && runtime.GOOS == "linux" {
		return "/proc/self/fd/" + strconv.Itoa(int(dir.Fd())) + "/" + name
	}
	return path
}
