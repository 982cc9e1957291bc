// Package pgnotify notifies the other nodes that work on the same PostgreSQL database, using NOTIFY and LISTEN.
//
// A notification is sent after the commit that it is about, on a separate connection: inside the
// transaction it would make every commit of the database wait for the previous one.
// Notifications of several commits within a few milliseconds share one statement. A node that
// loses its connection checks everything once it has one again.
package pgnotify

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"chorus/internal/await"
	"chorus/internal/peernotify"
	"chorus/internal/tcpdial"
)

const (
	channel = "chorus"
	// gather is how long notifications are collected, because PostgreSQL takes one lock for
	// all of its databases while a transaction that notifies commits.
	gather = 5 * time.Millisecond
	// maxPayload is below what PostgreSQL allows (8,000 bytes).
	maxPayload = 7900
	// stepTimeout limits each step on a connection. pingEvery is how often a silent connection is
	// checked. A node whose network was cut notices this only after both together.
	stepTimeout = 3 * time.Second
	pingEvery   = 2 * time.Second
)

// Peers are the other nodes on one database.
type Peers struct {
	config *pgx.ConnConfig
	own    string // marks what this process sent itself
	log    *slog.Logger
	sender *peernotify.Sender
	conn   *pgx.Conn // used by the sender's goroutine; nil if there is none
	close  sync.Once
}

// New returns the nodes on the database of a URL. The URL must lead to PostgreSQL
// itself: a pooler that gives a connection to somebody else after each transaction
// loses LISTEN. New does not connect yet. Close ends it.
func New(url string, log *slog.Logger) (*Peers, error) {
	config, err := pgx.ParseConfig(url)
	if err != nil {
		return nil, errors.New("notifications: the database URL cannot be read; it looks like postgres://user:password@host:5432/name")
	}
	for name := range config.RuntimeParams { // these are for the store's pool
		if strings.HasPrefix(name, "pool_") {
			delete(config.RuntimeParams, name)
		}
	}
	config.RuntimeParams["application_name"] = "chorus notifications"
	config.RuntimeParams["synchronous_commit"] = "off" // there is nothing to make durable
	config.DialFunc = tcpdial.Dialer{}.DialContext
	config.DefaultQueryExecMode = pgx.QueryExecModeExec // without preparing statements
	p := &Peers{config: config, own: rand.Text()[:12], log: log}
	p.sender = peernotify.NewSender(gather, p.send)
	return p, nil
}

// Notify tells every other subscribed node.
func (p *Peers) Notify(topic peernotify.Topic) { p.sender.Put(topic) }

// Close sends what waits and closes the sender's connection. Whoever has the subscription closes it.
func (p *Peers) Close() {
	p.sender.Close()
	p.close.Do(func() { p.drop() })
}

// send runs in the sender's goroutine.
func (p *Peers) send(ctx context.Context, topics []peernotify.Topic, all bool) error {
	var err error
	if p.conn == nil {
		if p.conn, err = p.connect(ctx); err != nil {
			return err
		}
	}
	payloads := peernotify.Payloads(p.own, topics, all, maxPayload)
	words := make([]string, len(payloads))
	for i, b := range payloads {
		words[i] = string(b)
	}
	if _, err = p.conn.Exec(ctx, `SELECT pg_notify($1, payload) FROM unnest($2::text[]) AS payload`, channel, words); err != nil {
		p.drop()
	}
	return err
}

func (p *Peers) drop() {
	if p.conn != nil {
		end(p.conn)
		p.conn = nil
	}
}

func end(conn *pgx.Conn) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = conn.Close(ctx) // it is not needed any more, whatever happens
}

func (p *Peers) connect(ctx context.Context) (*pgx.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, stepTimeout)
	defer cancel()
	return pgx.ConnectConfig(ctx, p.config.Copy())
}

// Subscribe begins to listen and never fails. Without a connection nothing arrives;
// once there is one, the subscriber is told to check everything.
func (p *Peers) Subscribe() (*peernotify.Subscription, error) {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	s := peernotify.NewSubscription(func() { cancel(); <-ended })
	go func() {
		defer close(ended)
		p.listen(ctx, s)
	}()
	return s, nil
}

// listen listens on one connection after another until ctx ends.
func (p *Peers) listen(ctx context.Context, s *peernotify.Subscription) {
	var pause peernotify.Backoff
	lost := false
	for {
		err := p.listenOnce(ctx, s, func() {
			if lost {
				p.log.Info("notifications of other nodes arrive again", "component", "notify", "event", "notifications_back")
			}
			pause, lost = peernotify.Backoff{}, false
		})
		if ctx.Err() != nil {
			return
		}
		if !lost {
			p.log.Warn("notifications of other nodes do not arrive; what they do is seen by the next regular look", "component", "notify", "event", "notifications_lost", "error", err)
		}
		lost = true
		if !await.For(ctx, pause.Next()) {
			return
		}
	}
}

// listenOnce listens until the connection is lost. It calls listening once the connection works.
func (p *Peers) listenOnce(ctx context.Context, s *peernotify.Subscription, listening func()) error {
	conn, err := p.connect(ctx)
	if err != nil {
		return err
	}
	defer end(conn)
	if err := step(ctx, func(ctx context.Context) error { _, err := conn.Exec(ctx, "LISTEN "+channel); return err }); err != nil {
		return err
	}
	if err := p.checkDelivery(ctx, conn, s); err != nil {
		return err
	}
	listening()
	s.PutAll() // earlier notifications may have been missed
	for {
		wait, cancel := context.WithTimeout(ctx, pingEvery)
		n, err := conn.WaitForNotification(wait)
		quiet := wait.Err() != nil && ctx.Err() == nil && !conn.IsClosed()
		cancel()
		switch {
		case err == nil:
			s.PutPayload(p.own, []byte(n.Payload))
		case !quiet:
			return fmt.Errorf("wait for notifications: %w", err)
		default:
			if err := step(ctx, conn.Ping); err != nil {
				return err
			}
		}
	}
}

// checkDelivery tests whether notifications arrive on the connection. Behind a pooler that gives it
// to others between transactions they do not, and nothing else would reveal that.
func (p *Peers) checkDelivery(ctx context.Context, conn *pgx.Conn, s *peernotify.Subscription) error {
	return step(ctx, func(ctx context.Context) error {
		probe := string(peernotify.Payloads(p.own, []peernotify.Topic{"probe"}, false, maxPayload)[0])
		if _, err := conn.Exec(ctx, `SELECT pg_notify($1, $2)`, channel, probe); err != nil {
			return err
		}
		for {
			n, err := conn.WaitForNotification(ctx)
			switch {
			case err != nil && ctx.Err() != nil:
				return fmt.Errorf("%w: %w", errPooler, err)
			case err != nil:
				return err
			case n.Payload == probe:
				return nil
			}
			s.PutPayload(p.own, []byte(n.Payload))
		}
	})
}

// errPooler means that notifications do not arrive on the connection.
var errPooler = errors.New("a notification that this node sent itself does not come back; databaseUrl must lead to PostgreSQL itself, or to a pooler in session mode")

func step(ctx context.Context, do func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, stepTimeout)
	defer cancel()
	return do(ctx)
}
