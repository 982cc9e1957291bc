package natsnotify

import (
	"strings"

	"github.com/nats-io/nats.go"
)

// listener receives the messages of one subject.
type listener struct {
	subject string // below prefix
	prefix  string
	hear    func(subject string, data []byte)
	sub     *nats.Subscription // protected by the lock of Peers; nil if there is no connection yet
}

// subscribe begins to listen. It fails only without a connection, and
// then nothing arrives, which listeners notice.
func (l *listener) subscribe(conn *nats.Conn) {
	l.sub, _ = conn.Subscribe(l.prefix+l.subject, func(m *nats.Msg) { l.hear(strings.TrimPrefix(m.Subject, l.prefix), m.Data) })
}

// Publish sends a message other than a notification on the same connection to the listeners of its subject.
func (p *Peers) Publish(subject string, data []byte) error {
	conn := p.connection()
	if conn == nil {
		return nats.ErrDisconnected
	}
	return conn.Publish(p.subject+"."+subject, data)
}

// Listen calls hear for each message of a subject, one after the other, until stop
// is called; it calls hear with nil when some may have been lost. hear must not
// block. A subject may end in ".*" for any last word.
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
			_ = sub.Unsubscribe() // a closed connection has no subscriptions
		}
	}
}
