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
	// quietLimit is how long a connection may be unused without being checked
	// first. checkLimit is how long that check may take.
	quietLimit = time.Second
	checkLimit = time.Second
	// silentLimit is how long a connection may be silent once others have problems.
	silentLimit = 5 * time.Second
	// goodAt is the key under which a connection stores when it was last known to work.
	goodAt = "good"
)

// postgresConfig returns how connections are made.
func postgresConfig(address string) (*pgx.ConnConfig, error) {
	config, err := pgx.ParseConfig(address)
	if err != nil {
		// The parser's own error quotes the URL, and may mistake part of a password for something else.
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

// openPool opens a pool of connections. After a network failure all of them may be
// broken, and finding that out one by one would take a second each. So if one is found
// broken, all that were made before are considered broken too. After an answer that did
// not come in time, each is checked before use.
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

// check closes a connection that no longer works before somebody gets it.
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

// drop closes a connection without telling the server, which may not be there.
func drop(conn *pgx.Conn) {
	_ = conn.PgConn().Conn().Close()
	ctx, cancel := context.WithTimeout(context.Background(), checkLimit)
	defer cancel()
	_ = conn.Close(ctx)
}

// trouble knows which connections can no longer be used.
type trouble struct {
	mu    sync.Mutex
	at    time.Time // when one was last found broken
	slow  time.Time // when an answer was last late
	conns map[*watchedConn]struct{}
}

// watchedConn records when it last received something.
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

// endSilent closes connections that have been silent for long, including those
// in use; whoever waits for an answer there tries again.
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

// saw records what a statement's error says about connections. Failing to connect
// says nothing about connections that still receive data.
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

// xact is a transaction as its server identifies it.
type xact struct {
	id   string // "" if not known yet
	life string // of the server; see serverLife
}

// serverLife changes when the server starts, and when it starts over after a crash, which resets
// its statistics. After a crash, the server may reuse the numbers of transactions that it lost.
const serverLife = `extract(epoch FROM pg_postmaster_start_time())::text || ' ' || coalesce(extract(epoch FROM pg_stat_get_bgwriter_stat_reset_time())::text, '')`

// outcome asks the server whether a transaction was committed whose answer was lost because
// of err; it returns nil if so. lost means that nobody knows. While the server still
// considers it open, outcome waits: the server ends it when it notices that the client is
// gone, at the latest after idleInTransaction. If the server has restarted, the number may
// belong to another transaction, so nobody knows.
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
		case asked == nil && !status.Valid, asked != nil && !unreachable(asked): // too long ago, or a server that does not know the number
			return true, err
		}
		p.trouble.saw(asked)
		if !pause(ctx, 20, 60) {
			return true, err
		}
	}
}
