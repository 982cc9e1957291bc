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

// Subscription receives what other processes notify of. A nil one receives nothing.
type Subscription struct {
	peers *Peers
	conn  *net.UnixConn
	path  string
	wake  chan struct{} // holds one value: something is there to take
	ended chan struct{}

	mu      sync.Mutex
	threads map[chat.ThreadID]struct{}
	many    bool
}

// Subscribe opens this process's socket; Close removes it. A process has at most one.
func (p *Peers) Subscribe() (*Subscription, error) {
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
	s := &Subscription{peers: p, conn: conn, path: filepath.Join(p.dir, name), wake: make(chan struct{}, 1), ended: make(chan struct{})}
	go s.read()
	return s, nil
}

// longest is the longest name of a thread and one byte more, so that a datagram that is too long is noticed.
const longest = 1025

// read receives until the socket is closed. It never blocks on whoever takes, so that the socket's queue stays empty.
func (s *Subscription) read() {
	defer close(s.ended)
	buf := make([]byte, longest)
	for {
		n, err := s.conn.Read(buf)
		if err != nil {
			return // closed, or broken: then the regular look finds what was written
		}
		if thread, err := chat.ParseThreadID(string(buf[:n])); err == nil {
			s.put(thread)
		}
	}
}

// maxThreads bounds the names that wait to be taken.
const maxThreads = 256

func (s *Subscription) put(thread chat.ThreadID) {
	s.mu.Lock()
	switch {
	case s.many:
	case len(s.threads) >= maxThreads:
		s.threads, s.many = nil, true
	case s.threads == nil:
		s.threads = map[chat.ThreadID]struct{}{thread: {}}
	default:
		s.threads[thread] = struct{}{}
	}
	s.mu.Unlock()
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// Woken has a value when there is something to take.
func (s *Subscription) Woken() <-chan struct{} {
	if s == nil {
		return nil
	}
	return s.wake
}

// Take returns the threads that something was written to since the last call, each once. many: there were too
// many to remember; look at all of them.
func (s *Subscription) Take() (threads []chat.ThreadID, many bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for t := range s.threads {
		threads = append(threads, t)
	}
	many = s.many
	s.threads, s.many = nil, false
	return threads, many
}

// Close ends the subscription and waits for that. It may be called twice.
func (s *Subscription) Close() {
	if s == nil {
		return
	}
	_ = s.conn.Close()
	<-s.ended
	s.peers.set("")
	_ = os.Remove(s.path)
}
