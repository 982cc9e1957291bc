package natsnotify

import (
	"strings"

	"github.com/nats-io/nats.go"
)

// listener hears the messages of one subject.
type listener struct {
	subject string // below prefix
	prefix  string
	hear    func(subject string, data []byte)
	sub     *nats.Subscription // under the lock of Peers; nil: there is no connection yet
}

// subscribe begins to listen. One that fails has no connection, and hears nothing: whoever listens notices that.
func (l *listener) subscribe(conn *nats.Conn) {
	l.sub, _ = conn.Subscribe(l.prefix+l.subject, func(m *nats.Msg) { l.hear(strings.TrimPrefix(m.Subject, l.prefix), m.Data) })
}

// Publish sends a message of another kind than notifications, on the same connection, to whoever listens to its subject.
func (p *Peers) Publish(subject string, data []byte) error {
	conn := p.connection()
	if conn == nil {
		return nats.ErrDisconnected
	}
	return conn.Publish(p.subject+"."+subject, data)
}

// Listen has hear called for each message of a subject, one after the other, until stop; with nil when some may have been lost. hear must
// not wait. A subject may end in ".*", for any last word.
func (p *Peers) Listen(subject string, hear func(subject string, data []byte)) (stop func()) {
	l := &listener{subject: subject, prefix: p.subject + ".", hear: hear}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.listeners == nil {
		p.listeners = map[*listener]struct{}{}
	}
	p.listeners[l] = struct{}{}
	if p.conn != nil {
		l.subscribe(p.conn)
	}
	return func() {
		p.mu.Lock()
		sub := l.sub
		delete(p.listeners, l)
		p.mu.Unlock()
		if sub != nil {
			_ = sub.Unsubscribe() // a connection that is closed has none
		}
	}
}
