package peernotify

import (
	"crypto/rand"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sync"

	"chorus/internal/chat"
)

// Subscription hears what other processes ring for. A nil one hears nothing.
type Subscription struct {
	bells *Peers
	conn  *net.UnixConn
	path  string
	bell  chan struct{} // room for one ring
	ended chan struct{}

	mu      sync.Mutex
	threads map[chat.ThreadID]struct{}
	many    bool
}

// Subscribe hangs up this process's bell; Close takes it down. There is one at a time.
func (b *Peers) Subscribe() (*Subscription, error) {
	if err := os.MkdirAll(b.dir, 0o700); err != nil {
		return nil, fmt.Errorf("listen to other processes: %w", err)
	}
	dir, err := os.Open(b.dir)
	if err != nil {
		return nil, fmt.Errorf("listen to other processes: %w", err)
	}
	defer dir.Close()
	name := rand.Text()[:12] // no process id: containers that share a home have the same ones
	b.set(name)
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: address(dir, name), Net: "unixgram"})
	if err != nil {
		b.set("")
		return nil, fmt.Errorf("listen to other processes: %w", err)
	}
	e := &Subscription{bells: b, conn: conn, path: filepath.Join(b.dir, name), bell: make(chan struct{}, 1), ended: make(chan struct{})}
	go e.read()
	return e, nil
}

// longest is the longest name of a thread, and one byte more, by which longer words are known.
const longest = 1025

// read takes what comes at once, so that nobody finds the bell blocked, until it is closed.
func (e *Subscription) read() {
	defer close(e.ended)
	buf := make([]byte, longest)
	for {
		n, err := e.conn.Read(buf)
		if err != nil {
			return // closed; or broken, and then the looks go on without us
		}
		if thread, err := chat.ParseThreadID(string(buf[:n])); err == nil {
			e.put(thread)
		}
	}
}

// maxThreads is how many names are kept for somebody who is slow.
const maxThreads = 256

func (e *Subscription) put(thread chat.ThreadID) {
	e.mu.Lock()
	switch {
	case e.many:
	case len(e.threads) >= maxThreads:
		e.threads, e.many = nil, true
	case e.threads == nil:
		e.threads = map[chat.ThreadID]struct{}{thread: {}}
	default:
		e.threads[thread] = struct{}{}
	}
	e.mu.Unlock()
	select {
	case e.bell <- struct{}{}:
	default:
	}
}

// Woken has a value when there is something to take.
func (e *Subscription) Woken() <-chan struct{} {
	if e == nil {
		return nil
	}
	return e.bell
}

// Take gives the threads that were rung for since, each once. many: there were too many
// to remember; look at all of them.
func (e *Subscription) Take() (threads []chat.ThreadID, many bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for t := range e.threads {
		threads = append(threads, t)
	}
	many = e.many
	e.threads, e.many = nil, false
	return threads, many
}

// Close ends it and waits for that. It may be called twice.
func (e *Subscription) Close() {
	if e == nil {
		return
	}
	_ = e.conn.Close()
	<-e.ended
	e.bells.set("")
	_ = os.Remove(e.path)
}
