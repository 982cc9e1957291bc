package store

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"hash"

	"chorus/internal/approval"
	"chorus/internal/chat"
)

// auditTexts is how many text columns a line of the audit log has, without its links.
const auditTexts = 10

const auditColumns = `id, at, agent, thread_id, run_id, call_id, principal, principal_body, action, decision, rule, detail, prev, hash`

// auditRow is a line of the audit log as it is stored.
type auditRow struct {
	id, at     int64
	texts      [auditTexts]string // agent … detail, in the order of auditColumns
	prev, hash string
	odd        bool // a column holds what the store never writes there
}

// The first words of what is hashed: a link can never be taken for a seal.
const (
	linkTag = "chorus audit line 1"
	sealTag = "chorus audit seal 1"
)

// encode feeds the row's fields to a hash. Every text comes after its length, so no
// two rows read the same.
func (r *auditRow) encode(h hash.Hash) {
	buf := make([]byte, 0, 512)
	buf = binary.BigEndian.AppendUint64(buf, uint64(r.id))
	buf = binary.BigEndian.AppendUint64(buf, uint64(r.at))
	for _, text := range r.texts {
		buf = binary.BigEndian.AppendUint64(buf, uint64(len(text)))
		buf = append(buf, text...)
	}
	h.Write(buf)
}

// after is the hash that the row has behind a line with the hash prev.
func (r *auditRow) after(prev string) string {
	h := sha256.New()
	buf := append(make([]byte, 0, 128), linkTag...)
	buf = binary.BigEndian.AppendUint64(buf, uint64(len(prev)))
	h.Write(append(buf, prev...))
	r.encode(h)
	return hex.EncodeToString(h.Sum(nil))
}

// follow makes the row the one behind end.
func (r *auditRow) follow(end auditRow) {
	r.id, r.prev = end.id+1, end.hash
	r.hash = r.after(r.prev)
}

// genuine reports whether the row is what its own hash says.
func (r *auditRow) genuine() bool { return !r.odd && r.hash == r.after(r.prev) }

func (r *auditRow) values() []any {
	out := make([]any, 0, auditTexts+4)
	out = append(out, r.id, r.at)
	for _, text := range r.texts {
		out = append(out, text)
	}
	return append(out, r.prev, r.hash)
}

// scan reads a row of auditColumns. SQLite keeps anything in any column, so what is
// read is held against the type that is written.
func (r *auditRow) scan(rows *sql.Rows) error {
	var raw [auditTexts + 4]any
	into := make([]any, len(raw))
	for i := range raw {
		into[i] = &raw[i]
	}
	if err := rows.Scan(into...); err != nil {
		return err
	}
	texts := make([]*string, 0, auditTexts+2)
	for i := range r.texts {
		texts = append(texts, &r.texts[i])
	}
	texts = append(texts, &r.prev, &r.hash)
	var ok bool
	for i, to := range []*int64{&r.id, &r.at} {
		if *to, ok = raw[i].(int64); !ok {
			r.odd = true
		}
	}
	for i, to := range texts {
		if *to, ok = raw[i+2].(string); !ok {
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

// sealOfNothing is what the first line of a new log follows.
func sealOfNothing() string { return newSeal().sum() }

// sealed is the decision of the line that answers for those before the chain.
const sealed = "sealed"

type execer interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
}

// sealAudit writes the line that answers for all lines before the chain. It must run
// inside a transaction that may write. Where there are none, or a chain is there
// already, it does nothing.
func sealAudit(ctx context.Context, tx execer, now int64) (err error) {
	rows, err := tx.QueryContext(ctx, `SELECT `+auditColumns+` FROM audit ORDER BY id`)
	if err != nil {
		return err
	}
	defer rows.Close()
	s := newSeal()
	var last auditRow
	for rows.Next() {
		last = auditRow{}
		if err := last.scan(rows); err != nil {
			return err
		}
		if last.hash != "" {
			return nil
		}
		s.add(&last)
	}
	if err := rows.Err(); err != nil || s.count == 0 {
		return err
	}
	row, err := newAuditRow(approval.Audit{Principal: chat.Principal{Kind: chat.TheSystem, ID: "store"}, Action: "seal the log so far", Decision: sealed,
		Detail: fmt.Sprintf("%d lines from before the chain", s.count)}, now)
	if err != nil {
		return err
	}
	row.follow(auditRow{id: last.id, hash: s.sum()})
	_, err = tx.ExecContext(ctx, insertAudit, row.values()...)
	return err
}

// sealAfterMigration seals a log that was written before there was a chain, before
// anybody can add to it.
func sealAfterMigration(ctx context.Context, db *sql.DB, now int64) error {
	tx, err := db.BeginTx(ctx, nil) // begins as a writer, as the DSN says
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }()
	if err := sealAudit(ctx, tx, now); err != nil {
		return err
	}
	return tx.Commit()
}
