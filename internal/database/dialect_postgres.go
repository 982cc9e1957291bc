package database

import (
	"context"
	"database/sql/driver"
	"errors"
	"io"
	"net"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/jackc/pgx/v5/pgconn"
)

// This file holds what only PostgreSQL understands. dialect_sqlite.go has the counterparts.

const (
	// querySnapshot changes whenever any transaction that wrote something ends.
	querySnapshot = `SELECT pg_current_snapshot()::text`
	// forgetXacts is for a database copied from another server with other transaction numbers.
	forgetXacts = `UPDATE events SET xact = 0 WHERE xact >= pg_snapshot_xmax(pg_current_snapshot())::text::bigint`

	lockName = `SELECT pg_advisory_xact_lock(hashtextextended(?, 0))`
)

// numbered caches query texts with $1, $2 … for each ?, by their original text.
type numbered struct{ texts sync.Map }

func (n *numbered) of(query string) string {
	if text, ok := n.texts.Load(query); ok {
		return text.(string)
	}
	text := numberArguments(query)
	n.texts.Store(query, text)
	return text
}

// numberArguments replaces each ? outside of quotes with $1, $2 ….
func numberArguments(query string) string {
	var out strings.Builder
	n, quote := 0, byte(0)
	for i := range len(query) {
		c := query[i]
		switch {
		case quote != 0:
			if c == quote {
				quote = 0 // a doubled quote begins a new one at once
			}
		case c == '\'' || c == '"':
			quote = c
		case c == '?':
			n++
			out.WriteByte('$')
			out.WriteString(strconv.Itoa(n))
			continue
		}
		out.WriteByte(c)
	}
	return out.String()
}

// postgresArgs converts arguments to what PostgreSQL accepts: booleans become numbers, as
// in their columns, and texts become valid UTF-8 without zero bytes.
func postgresArgs(args []any) ([]any, error) {
	out := make([]any, len(args))
	for i, a := range args {
		v, err := driver.DefaultParameterConverter.ConvertValue(a)
		if err != nil {
			return nil, err
		}
		switch v := v.(type) {
		case bool:
			out[i] = Flag(v)
		case string:
			out[i] = CleanText(v)
		default:
			out[i] = v
		}
	}
	return out, nil
}

// CleanText returns a text as PostgreSQL stores it.
func CleanText(s string) string {
	if utf8.ValidString(s) && strings.IndexByte(s, 0) < 0 {
		return s
	}
	return strings.ReplaceAll(strings.ToValidUTF8(s, "\ufffd"), "\x00", "\ufffd")
}

// IsPostgres reports whether a database is opened by URL and not by path.
func IsPostgres(at string) bool {
	return strings.HasPrefix(at, "postgres://") || strings.HasPrefix(at, "postgresql://")
}

// RedactURL returns a database's URL without its secrets.
func RedactURL(text string) string {
	u, err := url.Parse(text)
	if err != nil {
		return "postgres://…" // we cannot tell where the password is
	}
	if u.User != nil {
		u.User = url.User(u.User.Username())
	}
	u.RawQuery, u.Fragment = "", ""
	return u.String()
}

// The PostgreSQL error codes that are distinguished.
const (
	pgUnique         = "23505"
	pgDeadlock       = "40P01"
	pgSerialization  = "40001"
	pgCancelled      = "57014" // statement_timeout
	pgLockTimeout    = "55P03"
	pgTooMany        = "53300"
	pgDiskFull       = "53100"
	pgIdleInTx       = "25P03"
	pgReadOnly       = "25006"
	pgNoDatabase     = "3D000"
	pgNoPrivilege    = "42501"
	pgWrongPassword  = "28P01"
	pgNotAllowed     = "28000"
	pgIO             = "58030"
	pgDataCorrupted  = "XX001"
	pgIndexCorrupted = "XX002"
)

// pgCode returns the code of an error from the server, or "" for any other error.
func pgCode(err error) string {
	if e, ok := errors.AsType[*pgconn.PgError](err); ok {
		return e.Code
	}
	return ""
}

// collided reports whether a transaction was rolled back because of others, so that another try may succeed.
func collided(err error) bool {
	code := pgCode(err)
	return code == pgDeadlock || code == pgSerialization || code == pgUnique && addedBefore(err)
}

// addedBefore reports whether somebody else has added the same line of an audit log chain. Nobody
// who takes the required locks does that, but a process of an older version may.
func addedBefore(err error) bool {
	var e *pgconn.PgError
	return errors.As(err, &e) && e.ConstraintName == "audit_chains"
}

// unreachable reports whether the server is unavailable: it cannot be reached,
// is starting or stopping, or accepts no more connections.
func unreachable(err error) bool {
	if code := pgCode(err); code != "" {
		return strings.HasPrefix(code, "08") || strings.HasPrefix(code, "57P") || code == pgTooMany || code == pgIdleInTx
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return false // the caller's own deadline, which looks like a network error
	}
	var connect *pgconn.ConnectError
	var network net.Error
	return errors.As(err, &connect) || errors.As(err, &network) || errors.Is(err, driver.ErrBadConn) ||
		errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed) ||
		err != nil && (strings.Contains(err.Error(), "conn closed") || strings.Contains(err.Error(), "conn busy"))
}

// postgresProblem returns the kind of an error caused by the database and not by the request, or nil.
func postgresProblem(err error) error {
	switch pgCode(err) {
	case pgCancelled, pgLockTimeout, pgDeadlock, pgSerialization:
		return ErrBusy
	case pgDiskFull:
		return ErrFull
	case pgIO:
		return ErrDisk
	case pgDataCorrupted, pgIndexCorrupted:
		return ErrDamaged
	case pgReadOnly, pgNoPrivilege, pgWrongPassword, pgNotAllowed:
		return ErrDenied
	case pgNoDatabase:
		return ErrMissing
	}
	if unreachable(err) {
		return ErrAway
	}
	return nil
}
