package chaos

import (
	"net"
	"sync"
	"testing"
)

// link is a way to another server that can be cut as a broken network cuts it: connections stay open, and nothing comes through.
type link struct {
	to     string
	listen net.Listener
	wg     sync.WaitGroup

	mu    sync.Mutex
	open  chan struct{} // closed while data passes
	conns map[net.Conn]bool
	ended bool
}

// newLink listens at an address of this machine.
func newLink(t testing.TB, at, to string) *link {
	t.Helper()
	listen, err := net.Listen("tcp", net.JoinHostPort(at, "0"))
	if err != nil {
		t.Fatal(err)
	}
	l := &link{to: to, listen: listen, open: make(chan struct{}), conns: map[net.Conn]bool{}}
	close(l.open)
	l.wg.Go(l.accept)
	t.Cleanup(l.close)
	return l
}

func (l *link) addr() string { return l.listen.Addr().String() }

// cut lets nothing pass any more.
func (l *link) cut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case <-l.open:
		l.open = make(chan struct{})
	default:
	}
}

// heal lets everything pass, also what has waited, as a network does that comes back.
func (l *link) heal() {
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case <-l.open:
	default:
		close(l.open)
	}
}

// passes waits until data may pass.
func (l *link) passes() {
	l.mu.Lock()
	open := l.open
	l.mu.Unlock()
	<-open
}

func (l *link) accept() {
	for {
		from, err := l.listen.Accept()
		if err != nil {
			return
		}
		l.wg.Go(func() { l.carry(from) })
	}
}

func (l *link) carry(from net.Conn) {
	if !l.keep(from) {
		return
	}
	defer l.drop(from)
	l.passes()
	to, err := net.Dial("tcp", l.to)
	if err != nil || !l.keep(to) {
		return
	}
	defer l.drop(to)
	back := make(chan struct{})
	go func() {
		defer close(back)
		l.copy(from, to)
	}()
	l.copy(to, from)
	<-back
}

// copy carries data one way; when it ends, both ways end.
func (l *link) copy(to, from net.Conn) {
	defer func() { _, _ = to.Close(), from.Close() }()
	buf := make([]byte, 32<<10)
	for {
		n, err := from.Read(buf)
		l.passes()
		if n > 0 {
			if _, err := to.Write(buf[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

func (l *link) keep(c net.Conn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended {
		_ = c.Close()
		return false
	}
	l.conns[c] = true
	return true
}

func (l *link) drop(c net.Conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.conns, c)
	_ = c.Close()
}

func (l *link) close() {
	l.heal()
	_ = l.listen.Close()
	l.mu.Lock()
	l.ended = true
	for c := range l.conns {
		_ = c.Close()
	}
	l.mu.Unlock()
	l.wg.Wait()
}
