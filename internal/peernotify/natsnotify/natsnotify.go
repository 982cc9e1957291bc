// Package natsnotify notifies the other nodes through a NATS server. It uses core NATS, which stores nothing.
//
// A node that loses the server receives nothing and checks everything once it is back.
// Combine it with another way of notifying by using peernotify.Fallback.
package natsnotify

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"chorus/internal/peernotify"
	"chorus/internal/tcpdial"
)

const (
	// stepTimeout limits connecting, writing and waiting for the server's answer.
	stepTimeout = 5 * time.Second
	// pingEvery is how often a silent connection is checked. Two unanswered checks end it.
	pingEvery = 2 * time.Second
	// maxPayload is far below the limit of servers (1 MB).
	maxPayload = 64 << 10
)

// Peers are the other nodes at one NATS server.
type Peers struct {
	subject string
	own     string // marks what this process sent itself
	log     *slog.Logger
	sender  *peernotify.Sender
	stop    context.CancelFunc
	ended   chan struct{} // closed when the connection is closed

	mu        sync.Mutex
	listeners map[*listener]struct{}
	conn      *nats.Conn // nil if not tried yet
	sub       *peernotify.Subscription
	up        bool // connected, and the subscriber was told
	lost      bool // not connected, and that was logged
}

var _ peernotify.Reachable = (*Peers)(nil)

// New returns the nodes that notify each other under a subject, at a server or a cluster
// (addresses separated by commas). It does not wait for a connection. Close ends it.
func New(addresses, subject string, log *slog.Logger) (*Peers, error) {
	if err := Check(addresses); err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(context.Background())
	p := &Peers{subject: subject, own: rand.Text()[:12], log: log, stop: stop, ended: make(chan struct{})}
	p.sender = peernotify.NewSender(0, p.send) // a message costs almost nothing, and receivers collect by themselves
	go func() {
		defer close(p.ended)
		p.connect(ctx, addresses)
	}()
	return p, nil
}

// Check says what is wrong with server addresses, without repeating them, because they may contain a password.
func Check(addresses string) error {
	for one := range strings.SplitSeq(addresses, ",") {
		u, err := url.Parse(strings.TrimSpace(one))
		if err != nil || u.Host == "" || u.Scheme != "nats" && u.Scheme != "tls" && u.Scheme != "ws" && u.Scheme != "wss" {
			return errors.New("natsUrl must be nats://host:4222, or tls://…, with user:password@ or a token@ before the host where the server wants one; several are separated by commas")
		}
	}
	return nil
}

// connect connects, and stays connected until ctx ends.
func (p *Peers) connect(ctx context.Context, addresses string) {
	var pause peernotify.Backoff
	var attempts sync.Mutex
	subscribed := make(chan struct{})
	conn, err := nats.Connect(addresses, nats.Name("chorus"), nats.NoEcho(), nats.SetCustomDialer(tcpdial.Dialer{}), nats.Timeout(stepTimeout), nats.FlusherTimeout(stepTimeout),
		nats.PingInterval(pingEvery), nats.MaxPingsOutstanding(2), nats.ReconnectBufSize(-1), nats.RetryOnFailedConnect(true), nats.MaxReconnects(-1),
		nats.IgnoreAuthErrorAbort(), // the server's administrator may fix that too
		nats.CustomReconnectDelay(func(int) time.Duration {
			attempts.Lock()
			defer attempts.Unlock()
			return pause.Next()
		}),
		nats.DisconnectErrHandler(func(_ *nats.Conn, err error) { p.away(ctx, err) }),
		nats.ReconnectErrHandler(func(_ *nats.Conn, err error) { p.away(ctx, err) }),
		nats.ConnectHandler(func(c *nats.Conn) {
			select {
			case <-subscribed:
				p.here(c)
			case <-ctx.Done():
			}
		}),
		nats.ReconnectHandler(func(c *nats.Conn) {
			attempts.Lock()
			pause = peernotify.Backoff{}
			attempts.Unlock()
			p.here(c)
		}),
		// A subscription that could not keep up has lost messages.
		nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) { p.lookAtAll() }))
	if err != nil {
		p.away(ctx, err) // for example an unreadable certificate: trying again does not help
		return
	}
	defer conn.Close()
	if _, err := conn.Subscribe(p.subject, func(m *nats.Msg) {
		if s := p.current(); s != nil {
			s.PutPayload(p.own, m.Data)
		}
	}); err != nil {
		p.away(ctx, err)
		return
	}
	p.mu.Lock()
	p.conn = conn
	for l := range p.listeners {
		l.subscribe(conn)
	}
	p.mu.Unlock()
	close(subscribed)
	<-ctx.Done()
}

// here makes the subscriber check everything as soon as the server has the subscription.
func (p *Peers) here(conn *nats.Conn) {
	_ = conn.FlushTimeout(stepTimeout) // if the connection is lost again, this is called again
	p.lookAtAll()
	p.mu.Lock()
	lost := p.lost
	p.lost, p.up = false, true
	p.mu.Unlock()
	if lost {
		p.log.Info("NATS carries notifications again", "component", "notify", "event", "notifications_back")
	}
}

// away logs once that there is no connection. The server's errors
// contain no address; a dialler's have host and port.
func (p *Peers) away(ctx context.Context, err error) {
	p.mu.Lock()
	said := p.lost
	p.lost, p.up = true, false
	p.mu.Unlock()
	if !said && ctx.Err() == nil {
		p.log.Warn("NATS cannot be reached; notifications take another way, or what other nodes do is seen by the next regular look", "component", "notify", "event", "notifications_lost", "error", err)
		p.lookAtAll() // messages on their way are lost
	}
}

func (p *Peers) lookAtAll() {
	if s := p.current(); s != nil {
		s.PutAll()
	}
	p.mu.Lock()
	lost := slices.Collect(maps.Keys(p.listeners))
	p.mu.Unlock()
	for _, l := range lost {
		l.hear(l.subject, nil)
	}
}

func (p *Peers) current() *peernotify.Subscription {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.sub
}

func (p *Peers) connection() *nats.Conn {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.conn
}

// Reachable reports whether there is a connection now.
func (p *Peers) Reachable() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.up && p.conn != nil && p.conn.IsConnected()
}

// Notify tells every other subscribed node.
func (p *Peers) Notify(topic peernotify.Topic) { p.sender.Put(topic) }

func (p *Peers) send(_ context.Context, topics []peernotify.Topic, all bool) error {
	conn := p.connection()
	if conn == nil {
		return nats.ErrDisconnected
	}
	for _, payload := range peernotify.Payloads(p.own, topics, all, maxPayload) {
		if err := conn.Publish(p.subject, payload); err != nil {
			return fmt.Errorf("publish: %w", err)
		}
	}
	return nil
}

// Subscribe never fails. Without a connection nothing arrives; once there
// is one, the subscriber is told to check everything.
func (p *Peers) Subscribe() (*peernotify.Subscription, error) {
	var s *peernotify.Subscription
	s = peernotify.NewSubscription(func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.sub == s {
			p.sub = nil
		}
	})
	p.mu.Lock()
	p.sub = s
	p.mu.Unlock()
	return s, nil
}

// Close sends what waits and closes the connection.
func (p *Peers) Close() {
	p.sender.Close()
	if conn := p.connection(); conn != nil && conn.IsConnected() {
		_ = conn.FlushTimeout(time.Second) // the last published message may matter to the other nodes
	}
	p.stop()
	<-p.ended
}
