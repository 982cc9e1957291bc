package database

import (
	"errors"
	"net/url"
	"strings"

	"modernc.org/sqlite"
)

// This file holds what only SQLite understands. dialect_postgres.go has the counterparts.

const (
	driverName = "sqlite"

	// applicationID is "CHOR" in the file's header.
	applicationID = 0x43484f52

	beginWrite       = `BEGIN IMMEDIATE`
	queryIdentity    = `SELECT (SELECT user_version FROM pragma_user_version), (SELECT application_id FROM pragma_application_id), EXISTS (SELECT 1 FROM sqlite_master WHERE tbl_name NOT IN ('goose_db_version', 'sqlite_sequence'))`
	setJournalMode   = `PRAGMA journal_mode = WAL`
	queryVersionTag  = `PRAGMA data_version`
	queryJournalMode = `PRAGMA journal_mode`
	quickCheck       = `PRAGMA quick_check(1)`
)

// Several processes on one home are normal. 10 s is far longer than any commit,
// so whoever waits longer waits for something that hangs.
const busyPragma = "busy_timeout(10000)"

// Page caches are small because the journal is read forwards, once: 1 MB for the writer,
// 400 KB for each reader. A checkpoint waits for the disk in the middle of somebody's turn.
// At 4,000 pages (16 MB) it happens every few hundred turns, and after a crash a log of
// that size is read within tens of milliseconds.
var (
	writerPragmas = []string{"foreign_keys(1)", "secure_delete(fast)", "cache_size(-1000)", "temp_store(2)", "wal_autocheckpoint(4000)"}
	readerPragmas = []string{busyPragma, "query_only(1)", "cache_size(-400)", "temp_store(2)"}
)

func syncPragma(durability string) string {
	if durability == "full" {
		return "synchronous(2)"
	}
	return "synchronous(1)"
}

// onlyExisting is the option of a connection that does not create the file. If somebody removed the database, a connection opened
// later would leave an empty file in its place, which is then in the way of putting the database back.
const onlyExisting = "mode=rw"

// dsn encodes the path as a URI, so that no character in it has a special meaning.
func dsn(path string, pragmas []string, more ...string) string {
	q := make([]string, 0, len(pragmas)+len(more))
	for _, p := range pragmas {
		q = append(q, "_pragma="+p)
	}
	q = append(q, more...)
	u := url.URL{Scheme: "file", Path: path}
	return u.String() + "?" + strings.Join(q, "&")
}

// The SQLite result codes that are distinguished.
const (
	codePerm       = 3
	codeBusy       = 5
	codeLocked     = 6
	codeReadOnly   = 8
	codeIO         = 10
	codeCorrupt    = 11
	codeFull       = 13
	codeCantOpen   = 14
	codeConstraint = 19
	codeNotADB     = 26

	codeUnique     = codeConstraint | 8<<8
	codePrimaryKey = codeConstraint | 6<<8
)

// resultCode returns the extended code of a driver's error, or 0 for any other error.
func resultCode(err error) int {
	if e, ok := errors.AsType[*sqlite.Error](err); ok {
		return e.Code()
	}
	return 0
}

// IsTaken reports whether err says that there is already a row with this key.
func IsTaken(err error) bool {
	code := resultCode(err)
	return pgCode(err) == pgUnique || code == codeUnique || code == codePrimaryKey
}

// IsConstraint reports whether err says that a row would violate a constraint of its table.
func IsConstraint(err error) bool { return resultCode(err)&0xff == codeConstraint }

// IsDamaged reports whether err says that a file is not a SQLite file, or is incomplete.
func IsDamaged(err error) bool {
	code := resultCode(err) & 0xff
	return code == codeCorrupt || code == codeNotADB
}
