package store

import (
	"context"
	"database/sql"
	"fmt"
	"math"
)

// Damage is what happened to a line of the audit log.
type Damage string

// The kinds of damage.
const (
	LineChanged  Damage = "changed"
	LineRemoved  Damage = "removed"
	LineInserted Damage = "inserted"
)

// AuditBreak is the first place where the audit log is not what was written.
type AuditBreak struct {
	ID   int64 // the line, or the first of those that are missing; 0: it cannot be said
	What Damage
	Text string // for people
}

// AuditCheck is what VerifyAudit found.
type AuditCheck struct {
	Lines  int64       // that were looked at
	Before int64       // of them from before the chain, covered together
	Head   string      // the hash of the last good line: whoever keeps it elsewhere can prove the log up to it
	HeadID int64       // its number; 0: there is none
	Break  *AuditBreak // nil: all is as it was written
}

// auditPage is how many lines are read at once: some hundred kilobytes.
const auditPage = 1000

// VerifyAudit walks the audit log from its beginning, or from the line with the hash
// since, and stops at the first line that is not what was written. Lines that are
// added meanwhile are looked at too. progress, which may be nil, hears after every
// page how many lines are done, and how many there were at the start.
//
// A log that was cut off at its end, or written anew from some line on, is a whole
// chain again: only a hash that was kept elsewhere and is given as since tells.
func (db *DB) VerifyAudit(ctx context.Context, since string, progress func(done, all int64)) (AuditCheck, error) {
	v := verifier{old: newSeal()}
	from := int64(math.MinInt64) // somebody may have put a line before the first
	if since != "" {
		anchor, err := db.auditAt(ctx, since)
		if err != nil {
			return AuditCheck{}, fmt.Errorf("verify the audit log: %w", err)
		}
		if anchor == nil {
			return AuditCheck{Break: &AuditBreak{What: LineRemoved, Text: "no line has the hash " + since + ": it was removed or changed"}}, nil
		}
		v.end, v.chained, from = auditRow{id: anchor.id - 1, hash: anchor.prev}, true, anchor.id
	}
	var all int64
	err := db.query(ctx, `SELECT count(*) FROM audit WHERE id >= ?`, []any{from}, func(rows *sql.Rows) error { return rows.Scan(&all) })
	for more := err == nil; more && v.found.Break == nil; {
		n := 0
		err = db.query(ctx, `SELECT `+auditColumns+` FROM audit WHERE id >= ? ORDER BY id LIMIT ?+0`, []any{from, auditPage}, func(rows *sql.Rows) error {
			var r auditRow
			if err := r.scan(rows); err != nil {
				return err
			}
			n, from = n+1, r.id+1
			v.take(r)
			return nil
		})
		more = err == nil && n == auditPage
		if progress != nil {
			progress(v.found.Lines, max(all, v.found.Lines))
		}
	}
	if err != nil {
		return AuditCheck{}, fmt.Errorf("verify the audit log: %w", err)
	}
	v.finish()
	return v.found, nil
}

// AuditHead is the last line of the audit log and its hash; 0 when there is none.
func (db *DB) AuditHead(ctx context.Context) (line int64, hash string, err error) {
	err = db.query(ctx, auditEnd, nil, func(rows *sql.Rows) error { return rows.Scan(&line, &hash) })
	if err != nil {
		return 0, "", fmt.Errorf("head of the audit log: %w", err)
	}
	return line, hash, nil
}

// AuditHash is the hash of a line of the audit log; "" when there is none.
func (db *DB) AuditHash(ctx context.Context, line int64) (hash string, err error) {
	err = db.query(ctx, `SELECT hash FROM audit WHERE id = ?`, []any{line}, func(rows *sql.Rows) error { return rows.Scan(&hash) })
	if err != nil {
		return "", fmt.Errorf("line %d of the audit log: %w", line, err)
	}
	return hash, nil
}

// auditAt finds the line with a hash; nil if there is none.
func (db *DB) auditAt(ctx context.Context, hash string) (found *auditRow, err error) {
	err = db.query(ctx, `SELECT `+auditColumns+` FROM audit WHERE hash = ? ORDER BY id LIMIT 1`, []any{hash}, func(rows *sql.Rows) error {
		found = &auditRow{}
		return found.scan(rows)
	})
	return found, err
}

// verifier reads lines in order. It judges each when the one behind it is known: that
// one tells a line that was changed from one that was put in.
type verifier struct {
	old     *seal
	gap     int64 // the first number missing before the chain; 0: none is
	end     auditRow
	chained bool
	wait    *auditRow // not judged yet
	found   AuditCheck
}

func (v *verifier) take(r auditRow) {
	if v.found.Break != nil {
		return
	}
	v.found.Lines++
	if r.id < 1 {
		v.broken(r.id, LineInserted, fmt.Sprintf("line %d was put in: the first line has the number 1", r.id))
		return
	}
	if !v.chained && r.hash == "" && r.prev == "" {
		if v.gap == 0 && r.id != v.end.id+1 {
			v.gap = v.end.id + 1
		}
		v.old.add(&r)
		v.end.id = r.id
		v.found.Before++
		return
	}
	if !v.chained {
		v.chained, v.end.hash = true, v.old.sum()
		if v.gap == 0 && r.id != v.end.id+1 {
			v.gap = v.end.id + 1
		}
		if r.prev != v.end.hash {
			v.beforeChain(r)
			return
		}
	}
	if v.wait != nil {
		v.judge(&r)
	}
	v.wait = &r
}

// finish judges the last line.
func (v *verifier) finish() {
	if v.wait != nil && v.found.Break == nil {
		v.judge(nil)
	}
	if v.found.Break == nil && !v.chained && v.found.Before > 0 {
		v.broken(v.end.id+1, LineRemoved, fmt.Sprintf("line %d, which answers for the %d before it, is missing", v.end.id+1, v.found.Before))
	}
}

// beforeChain says why the first link does not hold.
func (v *verifier) beforeChain(first auditRow) {
	switch {
	case v.gap > 0:
		v.broken(v.gap, LineRemoved, fmt.Sprintf("line %d is missing", v.gap))
	case v.found.Before > 0:
		v.broken(0, LineChanged, fmt.Sprintf("one of the lines 1 to %d, from before the chain, is not what it was, or line %d that answers for them is not", v.end.id, first.id))
	default:
		v.broken(first.id, LineChanged, fmt.Sprintf("line %d does not begin the chain as the first line does", first.id))
	}
}

// judge looks at the line that waits; next is the one behind it, nil if there is none.
func (v *verifier) judge(next *auditRow) {
	r := v.wait
	if r.id != v.end.id+1 {
		v.broken(v.end.id+1, LineRemoved, missing(v.end.id+1, r.id-1))
		return
	}
	genuine, linked := r.genuine(), r.prev == v.end.hash
	switch {
	case next != nil && next.prev == v.end.hash && next.prev != r.hash:
		v.broken(r.id, LineInserted, fmt.Sprintf("line %d was put in: the one behind it follows the one before it", r.id))
	case r.hash == "" && r.prev == "":
		v.broken(r.id, LineInserted, fmt.Sprintf("line %d was put in: it is no part of the chain", r.id))
	case !genuine || !linked:
		v.broken(r.id, LineChanged, fmt.Sprintf("line %d is not what it was when it was written", r.id))
	case next != nil && next.prev != r.hash && next.id == r.id+1 && next.genuine():
		v.broken(r.id, LineChanged, fmt.Sprintf("line %d was changed and given a new hash: the one behind it follows another", r.id))
	default:
		v.end = *r
		v.found.Head, v.found.HeadID = r.hash, r.id
	}
}

func missing(from, to int64) string {
	if from == to {
		return fmt.Sprintf("line %d is missing", from)
	}
	return fmt.Sprintf("lines %d to %d are missing", from, to)
}

func (v *verifier) broken(id int64, what Damage, text string) {
	v.found.Break = &AuditBreak{ID: id, What: what, Text: text}
}
