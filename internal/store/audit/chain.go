package audit

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"strings"
	"time"

	"chorus/internal/approval"
	"chorus/internal/chat"
	"chorus/internal/database"
)

// auditTexts is how many text columns a line of the audit log has, not counting its links.
const auditTexts = 10

const auditColumns = `id, ` + auditValues

// auditRow is a line of the audit log as it is stored. Its id is its
// place in lists; its seq is its number in the chain.
type auditRow struct {
	id, at     int64
	texts      [auditTexts]string // agent … detail, in the order of auditColumns
	chain      string
	seq        int64 // its number in the chain
	prev, hash string
	odd        bool // a column has a type that the store never writes there
}

// The first words of what is hashed, so that a link can never be mistaken for a seal.
const (
	linkTag  = "chorus audit line 1"
	sealTag  = "chorus audit seal 1"  // over lines from before the chain
	chainTag = "chorus audit chain 1" // over the name of a thread, followed by its first line
	endsTag  = "chorus audit ends 1"  // over the ends of chains
)

// beginning returns the row that the first line of a chain follows.
func beginning(chain string) auditRow {
	if chain == string(noThread) {
		return auditRow{hash: sealOfNothing()}
	}
	h := sha256.New()
	h.Write([]byte(chainTag))
	h.Write([]byte(chain))
	return auditRow{chain: chain, hash: hex.EncodeToString(h.Sum(nil))}
}

// end returns what the next line needs to know of the row.
func (r *auditRow) end() End { return End{auditRow{chain: r.chain, seq: r.seq, hash: r.hash}} }

// encode writes the row's fields to a hash. Every text follows its length, so no two rows are encoded the same.
func (r *auditRow) encode(h hash.Hash) {
	buf := make([]byte, 0, 512)
	buf = binary.BigEndian.AppendUint64(buf, uint64(r.seq))
	buf = binary.BigEndian.AppendUint64(buf, uint64(r.at))
	for _, text := range r.texts {
		buf = binary.BigEndian.AppendUint64(buf, uint64(len(text)))
		buf = append(buf, text...)
	}
	h.Write(buf)
}

// after returns the hash that the row has when it follows a line with the hash prev.
func (r *auditRow) after(prev string) string {
	h := sha256.New()
	buf := append(make([]byte, 0, 128), linkTag...)
	buf = binary.BigEndian.AppendUint64(buf, uint64(len(prev)))
	h.Write(append(buf, prev...))
	r.encode(h)
	return hex.EncodeToString(h.Sum(nil))
}

// follow makes the row follow end.
func (r *auditRow) follow(end auditRow) {
	r.seq, r.prev = end.seq+1, end.hash
	r.hash = r.after(r.prev)
}

// genuine reports whether the row matches its own hash.
func (r *auditRow) genuine() bool { return !r.odd && r.hash == r.after(r.prev) }

func (r *auditRow) values() []any {
	out := make([]any, 0, auditTexts+5)
	out = append(out, r.at, r.seq)
	for _, text := range r.texts {
		out = append(out, text)
	}
	return append(out, r.chain, r.prev, r.hash)
}

// scan reads a row of auditColumns. SQLite stores any type in any column, so
// scan checks that each value has the type that is written.
func (r *auditRow) scan(rows *sql.Rows) error {
	numbers, texts := []*int64{&r.id, &r.at, &r.seq}, make([]*string, 0, auditTexts+3)
	for i := range r.texts {
		texts = append(texts, &r.texts[i])
	}
	texts = append(texts, &r.chain, &r.prev, &r.hash)
	raw := make([]any, len(numbers)+len(texts))
	into := make([]any, len(raw))
	for i := range raw {
		into[i] = &raw[i]
	}
	if err := rows.Scan(into...); err != nil {
		return err
	}
	var ok bool
	for i, to := range numbers {
		if *to, ok = raw[i].(int64); !ok {
			r.odd = true
		}
	}
	for i, to := range texts {
		if *to, ok = raw[i+len(numbers)].(string); !ok {
			r.odd = true
		}
	}
	return nil
}

// seal is a hash over lines from before the chain, all of them as they were.
type seal struct {
	hash.Hash
	count int64
}

func newSeal() *seal {
	s := &seal{Hash: sha256.New()}
	s.Write([]byte(sealTag))
	return s
}

func (s *seal) add(r *auditRow) {
	r.encode(s.Hash)
	s.count++
}

func (s *seal) sum() string { return hex.EncodeToString(s.Sum(nil)) }

// sealOfNothing is the hash that the first line of a new log follows.
func sealOfNothing() string { return newSeal().sum() }

// sealed is the decision of the line that stands for the lines before the chain.
const sealed = "sealed"

// ChainedSince is the migration that made the log a chain. ChainsOfThreads is
// the migration that gave each thread a chain of its own.
const (
	ChainedSince    = 2
	ChainsOfThreads = 34
)

// statements are run in a transaction that may write.
type statements interface {
	Exec(query string, args ...any) error
	Rows(query string, args []any, scan func(*sql.Rows) error) error
}

// errChained stops the reading of a log that is already a chain.
var errChained = errors.New("the log is a chain")

// sealOld writes the line that stands for all lines before the chain, into a file of that
// version. If there are none, or there is already a chain, it does nothing.
func sealOld(tx statements, now int64, version int) error {
	columns, insert := strings.Replace(auditColumns, "seq,", "id,", 1), insertAudit
	if version < ChainsOfThreads {
		columns = strings.Replace(columns, "chain,", "'',", 1)
		insert = `INSERT INTO audit (at, id, agent, thread_id, run_id, call_id, principal, principal_body, action, decision, rule, detail, prev, hash)
			SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?14, ?15 WHERE ?13 = ''`
	}
	s := newSeal()
	var last auditRow
	err := tx.Rows(`SELECT `+columns+` FROM audit ORDER BY id`, nil, func(rows *sql.Rows) error {
		last = auditRow{}
		if err := last.scan(rows); err != nil {
			return err
		}
		if last.hash != "" {
			return errChained
		}
		s.add(&last)
		return nil
	})
	if errors.Is(err, errChained) {
		return nil
	}
	if err != nil || s.count == 0 {
		return err
	}
	row, err := newAuditRow(approval.Audit{Principal: chat.Principal{Kind: chat.TheSystem, ID: "store"}, Action: "seal the log so far", Decision: sealed,
		Detail: fmt.Sprintf("%d lines from before the chain", s.count)}, now)
	if err != nil {
		return err
	}
	row.follow(auditRow{seq: last.id, hash: s.sum()})
	return tx.Exec(insert, row.values()...)
}

// FinishMigration seals a log that was written before there was a chain, in a file
// that was migrated to a version, before anybody can add to it.
func FinishMigration(ctx context.Context, db *sql.DB, now time.Time, version int) error {
	if version < ChainedSince {
		return nil
	}
	tx, err := db.BeginTx(ctx, nil) // begins as a writer, because of the DSN
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }()
	if err := sealOld(migrating{ctx, tx}, database.Micros(now), version); err != nil {
		return err
	}
	return tx.Commit()
}

// migrating runs statements during a migration.
type migrating struct {
	ctx context.Context
	tx  *sql.Tx
}

func (m migrating) Exec(query string, args ...any) error {
	_, err := m.tx.ExecContext(m.ctx, query, args...)
	return err
}

func (m migrating) Rows(query string, args []any, scan func(*sql.Rows) error) error {
	return database.ScanAll(scan)(m.tx.QueryContext(m.ctx, query, args...))
}
