package database

import (
	"cmp"
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"net"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"

	"chorus/internal/tcpdial"
)

const (
	// quietLimit is how long a connection may be unused without being checked first, and checkLimit how long that may take.
	quietLimit = time.Second
	checkLimit = time.Second
	// silentLimit is how long nothing may come on a connection once others are in trouble.
	silentLimit = 5 * time.Second
	// goodAt is where a connection keeps when it was last known to work.
	goodAt = "good"
)

// postgresConfig is how connections are made.
func postgresConfig(address string) (*pgx.ConnConfig, error) {
	config, err := pgx.ParseConfig(address)
	if err != nil {
		// The parser's own error quotes the URL, and may take a part of a password for something else.
		return nil, errors.New("databaseUrl cannot be read: it looks like postgres://user:password@host:5432/database?sslmode=require, and special characters of a password are written with %, such as %40 for @")
	}
	config.DialFunc = tcpdial.Dialer{}.DialContext
	config.ConnectTimeout = cmp.Or(config.ConnectTimeout, 5*time.Second)
	for key, value := range map[string]string{
		"application_name":                    "chorus",
		"statement_timeout":                   millis(statementLimit),
		"idle_in_transaction_session_timeout": millis(idleInTransaction),
		"tcp_keepalives_idle":                 "10", "tcp_keepalives_interval": "5", "tcp_keepalives_count": "3", "tcp_user_timeout": millis(answerLimit),
		"timezone": "UTC",
	} {
		if _, set := config.RuntimeParams[key]; !set {
			config.RuntimeParams[key] = value
		}
	}
	return config, nil
}

func millis(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) }

// openPool keeps connections. After the network was cut all of them may be broken, and to find that out one after the other would take
// a second each: so one that is found broken speaks for all that were made before, and after an answer that did not come in time each
// is tried before it is used.
func (p *postgres) openPool(config *pgx.ConnConfig, most int) *sql.DB {
	watched := config.Copy()
	watched.DialFunc = p.trouble.dial(config.DialFunc)
	pool := stdlib.OpenDB(*watched,
		stdlib.OptionAfterConnect(func(_ context.Context, conn *pgx.Conn) error {
			conn.PgConn().CustomData()[goodAt] = time.Now()
			return nil
		}),
		stdlib.OptionShouldPing(func(ctx context.Context, now stdlib.ShouldPingParams) bool {
			p.check(ctx, now.Conn, now.IdleDuration)
			return false
		}),
		stdlib.OptionResetSession(func(_ context.Context, conn *pgx.Conn) error {
			if conn.IsClosed() {
				return driver.ErrBadConn
			}
			return nil
		}))
	pool.SetMaxOpenConns(most)
	pool.SetMaxIdleConns(most)
	pool.SetConnMaxIdleTime(5 * time.Minute)
	return pool
}

// check closes a connection that is of no use before somebody gets it.
func (p *postgres) check(ctx context.Context, conn *pgx.Conn, unused time.Duration) {
	good, _ := conn.PgConn().CustomData()[goodAt].(time.Time)
	if good.Before(p.trouble.broken()) {
		drop(conn)
		return
	}
	if unused < quietLimit && !good.Before(p.trouble.late()) {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, checkLimit)
	defer cancel()
	err := conn.Ping(ctx)
	if err == nil {
		conn.PgConn().CustomData()[goodAt] = time.Now()
		return
	}
	if !errors.Is(err, context.Canceled) {
		p.trouble.foundBroken()
	}
	drop(conn)
}

// drop closes a connection without a word to the server, which may not be there to hear it.
func drop(conn *pgx.Conn) {
	_ = conn.PgConn().Conn().Close()
	ctx, cancel := context.WithTimeout(context.Background(), checkLimit)
	defer cancel()
	_ = conn.Close(ctx)
}

// trouble knows which connections are of no use any more.
type trouble struct {
	mu    sync.Mutex
	at    time.Time // when one was last found broken
	slow  time.Time // when an answer last did not come in time
	conns map[*watchedConn]struct{}
}

// watchedConn knows when something last came.
type watchedConn struct {
	net.Conn
	in    *trouble
	heard atomic.Int64 // Unix nanoseconds
}

func (c *watchedConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if n > 0 {
		c.heard.Store(time.Now().UnixNano())
	}
	return n, err
}

func (c *watchedConn) Close() error {
	c.in.mu.Lock()
	delete(c.in.conns, c)
	c.in.mu.Unlock()
	return c.Conn.Close()
}

func (t *trouble) dial(dial pgconn.DialFunc) pgconn.DialFunc {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		c := &watchedConn{Conn: conn, in: t}
		c.heard.Store(time.Now().UnixNano())
		t.mu.Lock()
		defer t.mu.Unlock()
		if t.conns == nil {
			t.conns = map[*watchedConn]struct{}{}
		}
		t.conns[c] = struct{}{}
		return c, nil
	}
}

func (t *trouble) broken() time.Time {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.at
}

func (t *trouble) late() time.Time {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.slow
}

func (t *trouble) foundBroken() {
	t.mu.Lock()
	t.at = time.Now()
	t.mu.Unlock()
	t.endSilent()
}

// endSilent ends connections on which nothing came for long, also those that are in use: whoever waits for an answer there tries again.
func (t *trouble) endSilent() {
	var silent []*watchedConn
	t.mu.Lock()
	for c := range t.conns {
		if time.Since(time.Unix(0, c.heard.Load())) > silentLimit {
			silent = append(silent, c)
		}
	}
	t.mu.Unlock()
	for _, c := range silent {
		_ = c.Close()
	}
}

// saw looks what an error of a statement says about connections. One that could not be made says nothing of those on which something
// comes.
func (t *trouble) saw(err error) {
	var connect *pgconn.ConnectError
	switch {
	case err == nil || pgCode(err) == pgTooMany:
	case errors.As(err, &connect):
		t.endSilent()
	case unreachable(err):
		t.foundBroken()
	case pgconn.Timeout(err):
		t.mu.Lock()
		t.slow = time.Now()
		t.mu.Unlock()
		t.endSilent()
	}
}

// xact is a transaction as its server knows it.
type xact struct {
	id   string // "": not known yet
	life string // of the server; see serverLife
}

// serverLife changes when the server starts, and when it starts over after a crash, which resets its statistics. It gives the numbers of
// transactions that it lost in a crash to others.
const serverLife = `extract(epoch FROM pg_postmaster_start_time())::text || ' ' || coalesce(extract(epoch FROM pg_stat_get_bgwriter_stat_reset_time())::text, '')`

// outcome asks the server whether a transaction happened whose answer was lost, with err; then err is nil. lost: nobody knows. While it is
// still on, as the server sees it, it is waited for: the server ends it when it notices that nobody is there, at the latest after
// idleInTransaction. A server that began anew since may mean another transaction by the number: then nobody knows.
func (p *postgres) outcome(ctx context.Context, number xact, err error) (lost bool, _ error) {
	if number.id == "" {
		return true, err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), p.maxWait+idleInTransaction)
	defer cancel()
	for {
		var status sql.NullString
		var life string
		asked := p.hurry.QueryRowContext(ctx, `SELECT pg_xact_status($1::text::xid8), `+serverLife, number.id).Scan(&status, &life)
		switch {
		case asked == nil && life != number.life:
			return true, err
		case asked == nil && status.String == "committed":
			return false, nil
		case asked == nil && status.String == "aborted":
			return false, err
		case asked == nil && !status.Valid, asked != nil && !unreachable(asked): // too long ago, or a server that has not heard of it
			return true, err
		}
		p.trouble.saw(asked)
		if !pause(ctx, 20, 60) {
			return true, err
		}
	}
}
