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

// This file holds what only PostgreSQL understands; dialect_sqlite.go has what stands in its place.

const (
	// querySnapshot changes whenever a transaction ends that wrote something, whoever made it.
	querySnapshot = `SELECT pg_current_snapshot()::text`
	// forgetXacts is for a database that was brought from another server, whose transactions were numbered otherwise.
	forgetXacts = `UPDATE events SET xact = 0 WHERE xact >= pg_snapshot_xmax(pg_current_snapshot())::text::bigint`

	lockName = `SELECT pg_advisory_xact_lock(hashtextextended(?, 0))`
)

// numbered are query texts with $1, $2 … for each ?, by the text they were made of.
type numbered struct{ texts sync.Map }

func (n *numbered) of(query string) string {
	if text, ok := n.texts.Load(query); ok {
		return text.(string)
	}
	text := numberArguments(query)
	n.texts.Store(query, text)
	return text
}

// numberArguments puts $1, $2 … for each ? that stands outside of quotes.
func numberArguments(query string) string {
	var out strings.Builder
	n, quote := 0, byte(0)
	for i := range len(query) {
		c := query[i]
		switch {
		case quote != 0:
			if c == quote {
				quote = 0 // a doubled one begins again at once
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

// postgresArgs are arguments as PostgreSQL takes them: yes and no are numbers, as their columns are, and texts are whole UTF-8
// without a zero byte, which it refuses.
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

// CleanText is a text that PostgreSQL keeps.
func CleanText(s string) string {
	if utf8.ValidString(s) && strings.IndexByte(s, 0) < 0 {
		return s
	}
	return strings.ReplaceAll(strings.ToValidUTF8(s, "\ufffd"), "\x00", "\ufffd")
}

// IsPostgres reports whether a database is opened by its URL and not by a path.
func IsPostgres(at string) bool {
	return strings.HasPrefix(at, "postgres://") || strings.HasPrefix(at, "postgresql://")
}

// RedactURL is a database's URL without what opens it.
func RedactURL(text string) string {
	u, err := url.Parse(text)
	if err != nil {
		return "postgres://…" // it cannot be told where the password stands
	}
	if u.User != nil {
		u.User = url.User(u.User.Username())
	}
	u.RawQuery, u.Fragment = "", ""
	return u.String()
}

// Codes of PostgreSQL's errors, the ones that are told apart.
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

// pgCode is the code of an error that the server gave; "" for any other.
func pgCode(err error) string {
	if e, ok := errors.AsType[*pgconn.PgError](err); ok {
		return e.Code
	}
	return ""
}

// collided reports whether a transaction was taken back because of others, so that the next try may go well.
func collided(err error) bool {
	code := pgCode(err)
	return code == pgDeadlock || code == pgSerialization || code == pgUnique && addedBefore(err)
}

// addedBefore reports whether somebody else has added the line of a chain of the audit log that was to be added: nobody does who
// holds what it takes, but a process of an older version may.
func addedBefore(err error) bool {
	var e *pgconn.PgError
	return errors.As(err, &e) && e.ConstraintName == "audit_chains"
}

// unreachable reports whether the server is away: it cannot be reached, ends, begins, or takes no more connections.
func unreachable(err error) bool {
	if code := pgCode(err); code != "" {
		return strings.HasPrefix(code, "08") || strings.HasPrefix(code, "57P") || code == pgTooMany || code == pgIdleInTx
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return false // the caller's own, which looks like one of the network
	}
	var connect *pgconn.ConnectError
	var network net.Error
	return errors.As(err, &connect) || errors.As(err, &network) || errors.Is(err, driver.ErrBadConn) ||
		errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed) ||
		err != nil && (strings.Contains(err.Error(), "conn closed") || strings.Contains(err.Error(), "conn busy"))
}

// postgresProblem is the kind of an error that is the database's and not the request's; nil for any other.
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
