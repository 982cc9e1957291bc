package audit

import (
	"cmp"
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"

	"chorus/internal/database"
)

// Threads have separate chains, so that they need not wait for each other. Seals connect
// the chains. Each seal names the last lines of the chains that have grown since the
// previous seal, and includes the hash of that seal. A chain whose end was cut off, or that
// is missing, does not have what a seal says it had.

const (
	auditSealEnd = `SELECT id, hash FROM audit_seals ORDER BY id DESC LIMIT 1`
	// queryEnds selects the ends of the chains that have grown, and up to where they are
	// sealed. The condition for what is written since a mark is appended.
	queryEnds = `SELECT m.chain, (SELECT max(seq) FROM audit a WHERE a.chain = m.chain),
			(SELECT hash FROM audit a WHERE a.chain = m.chain ORDER BY seq DESC LIMIT 1),
			coalesce((SELECT max(seq) FROM audit_sealed s WHERE s.chain = m.chain), 0)
		FROM (SELECT DISTINCT chain FROM audit WHERE `
	insertSeal   = `INSERT INTO audit_seals (id, at, chains, prev, hash) VALUES (?, ?, ?, ?, ?)`
	insertSealed = `INSERT INTO audit_sealed (chain, seq, hash, seal) VALUES (?, ?, ?, ?)`

	// The mark is how far a seal has read. Without it everything is still found,
	// only more slowly. It is not moved to another database.
	queryAuditMark = `SELECT value FROM memos WHERE kind = 'store' AND key = 'audit_sealed'`
	keepAuditMark  = `INSERT INTO memos (kind, key, value, at) VALUES ('store', 'audit_sealed', ?, ?) ON CONFLICT (kind, key) DO UPDATE SET value = excluded.value, at = excluded.at`
)

// chainEnd is the last line of a chain at the time of a seal.
type chainEnd struct {
	chain string
	seq   int64
	hash  string
	seal  int64
}

func (e chainEnd) compare(chain string, seq int64) int {
	return cmp.Or(strings.Compare(e.chain, chain), cmp.Compare(e.seq, seq))
}

// sealHash returns the hash of a seal over ends, which are sorted by chain.
func sealHash(prev string, id, at int64, ends []chainEnd) string {
	buf := append(make([]byte, 0, 256), endsTag...)
	text := func(s string) {
		buf = binary.BigEndian.AppendUint64(buf, uint64(len(s)))
		buf = append(buf, s...)
	}
	text(prev)
	for _, n := range []int64{id, at, int64(len(ends))} {
		buf = binary.BigEndian.AppendUint64(buf, uint64(n))
	}
	h := sha256.New()
	for _, e := range ends {
		text(e.chain)
		buf = binary.BigEndian.AppendUint64(buf, uint64(e.seq))
		text(e.hash)
		h.Write(buf)
		buf = buf[:0]
	}
	h.Write(buf)
	return hex.EncodeToString(h.Sum(nil))
}

// SealAudit seals the ends of all chains that have grown since the last seal, and
// returns the newest seal and its hash, or 0 if the log is empty. If a process
// dies before this, the next one to seal does it.
func (l *Log) SealAudit(ctx context.Context) (seal int64, hash string, err error) {
	now := database.Micros(l.db.Now())
	err = l.db.Write(ctx, func(tx database.Tx) (err error) {
		seal, hash, err = sealEnds(tx, now)
		return err
	})
	if err != nil {
		return 0, "", fmt.Errorf("seal the audit log: %w", err)
	}
	return seal, hash, nil
}

func sealEnds(tx database.Tx, now int64) (seal int64, hash string, err error) {
	if err := tx.Alone("audit seals"); err != nil {
		return 0, "", err
	}
	var mark, highest, since int64
	if err := tx.Row(markQuery(tx), nil, &mark, &highest); err != nil {
		return 0, "", err
	}
	var text string
	if err := tx.Row(queryAuditMark, nil, &text); err == nil {
		_, err = fmt.Sscan(text, &since)
		if err != nil || since > highest { // the mark is from another server with other transaction numbers
			since = 0
		}
	} else if !errors.Is(err, sql.ErrNoRows) {
		return 0, "", err
	}
	err = tx.Row(auditSealEnd, nil, &seal, &hash)
	if errors.Is(err, sql.ErrNoRows) {
		since, err = 0, nil // everything is new
	}
	if err != nil {
		return 0, "", err
	}
	ends, err := movedEnds(tx, since)
	if err != nil || len(ends) == 0 {
		return seal, hash, err
	}
	prev := hash
	seal++
	hash = sealHash(prev, seal, now, ends)
	if err := tx.Exec(insertSeal, seal, now, len(ends), prev, hash); err != nil {
		return 0, "", err
	}
	for _, e := range ends {
		if err := tx.Exec(insertSealed, e.chain, e.seq, e.hash, seal); err != nil {
			return 0, "", err
		}
	}
	return seal, hash, tx.Exec(keepAuditMark, fmt.Sprint(mark), now)
}

// markQuery selects a mark for how far the log has come, and the highest possible mark at this time.
func markQuery(tx database.Tx) string {
	if tx.OnServer() {
		// No generated number follows the order of commits. What this transaction or a later one
		// wrote may have been invisible at the time of the mark; everything before was visible.
		return `SELECT pg_snapshot_xmin(pg_current_snapshot())::text::bigint, pg_snapshot_xmax(pg_current_snapshot())::text::bigint`
	}
	return `SELECT coalesce(max(id), 0), coalesce(max(id), 0) FROM audit`
}

// writtenSince is the condition for lines written since a mark. It may also match some from before it.
func writtenSince(tx database.Tx) string {
	if tx.OnServer() {
		return `xact >= ?`
	}
	return `id > ?`
}

// movedEnds returns the ends of the chains that have lines since a
// mark and are not sealed in their current state.
func movedEnds(tx database.Tx, since int64) (ends []chainEnd, err error) {
	err = tx.Rows(queryEnds+writtenSince(tx)+`) AS m`, []any{since}, func(rows *sql.Rows) error {
		var e chainEnd
		var before int64
		err := rows.Scan(&e.chain, &e.seq, &e.hash, &before)
		if err == nil && e.seq > before && e.hash != "" {
			ends = append(ends, e)
		}
		return err
	})
	slices.SortFunc(ends, func(a, b chainEnd) int { return strings.Compare(a.chain, b.chain) })
	return ends, err
}

// AuditHead returns the newest seal of the audit log and its hash, or 0 if there is none.
func (l *Log) AuditHead(ctx context.Context) (seal int64, hash string, err error) {
	err = l.db.Query(ctx, auditSealEnd, nil, func(rows *sql.Rows) error { return rows.Scan(&seal, &hash) })
	if err != nil {
		return 0, "", fmt.Errorf("head of the audit log: %w", err)
	}
	return seal, hash, nil
}

// AuditSeal returns the hash of a seal, or "" if there is none.
func (l *Log) AuditSeal(ctx context.Context, seal int64) (hash string, err error) {
	err = l.db.Query(ctx, `SELECT hash FROM audit_seals WHERE id = ?`, []any{seal}, func(rows *sql.Rows) error { return rows.Scan(&hash) })
	if err != nil {
		return "", fmt.Errorf("seal %d of the audit log: %w", seal, err)
	}
	return hash, nil
}

// AuditLost says which line named by a seal is missing or different, or returns "".
func (l *Log) AuditLost(ctx context.Context, seal int64) (lost string, err error) {
	err = l.db.Query(ctx, `SELECT s.chain, s.seq FROM audit_sealed s LEFT JOIN audit a ON a.chain = s.chain AND a.seq = s.seq
		WHERE s.seal = ? AND coalesce(a.hash, '') <> s.hash ORDER BY s.chain LIMIT 1`, []any{seal}, func(rows *sql.Rows) error {
		var e chainEnd
		err := rows.Scan(&e.chain, &e.seq)
		lost = fmt.Sprintf("line %d%s, which seal %d has, is missing or another one: lines were cut off or written anew", e.seq, ofThread(e.chain), seal)
		return err
	})
	if err != nil {
		return "", fmt.Errorf("seal %d of the audit log: %w", seal, err)
	}
	return lost, nil
}

// AuditHash returns the hash of a line of the single chain that once held all lines, or "" if
// there is none. Heads kept from before there were seals name such a line.
func (l *Log) AuditHash(ctx context.Context, line int64) (hash string, err error) {
	err = l.db.Query(ctx, `SELECT hash FROM audit WHERE chain = ? AND seq = ?`, []any{string(noThread), line}, func(rows *sql.Rows) error { return rows.Scan(&hash) })
	if err != nil {
		return "", fmt.Errorf("line %d of the audit log: %w", line, err)
	}
	return hash, nil
}

// checkSeals checks the seals from one on, or from the first, up to the
// newest, and returns the number of the newest.
func (l *Log) checkSeals(ctx context.Context, from int64, found *Check) (last int64, err error) {
	type row struct {
		id, at, chains int64
		prev, hash     string
	}
	var before row
	for from = max(from, 1); found.Break == nil; {
		var page []row
		err := l.db.Query(ctx, `SELECT id, at, chains, prev, hash FROM audit_seals WHERE id >= ? ORDER BY id LIMIT ?+0`, []any{from, pageLines}, database.Fill(&page, func(rows *sql.Rows, r *row) error {
			return rows.Scan(&r.id, &r.at, &r.chains, &r.prev, &r.hash)
		}))
		if err != nil || len(page) == 0 {
			return last, err
		}
		ends := map[int64][]chainEnd{}
		err = l.db.Query(ctx, `SELECT chain, seq, hash, seal FROM audit_sealed WHERE seal >= ? AND seal <= ? ORDER BY seal, chain`, []any{from, page[len(page)-1].id}, func(rows *sql.Rows) error {
			var e chainEnd
			err := rows.Scan(&e.chain, &e.seq, &e.hash, &e.seal)
			ends[e.seal] = append(ends[e.seal], e)
			return err
		})
		if err != nil {
			return last, err
		}
		for _, r := range page {
			switch {
			case r.id != from:
				found.broken(Break{Seal: from, What: LineRemoved, Text: fmt.Sprintf("seal %d is missing", from)})
			case before.id > 0 && r.prev != before.hash || before.id == 0 && r.id == 1 && r.prev != "",
				r.hash != sealHash(r.prev, r.id, r.at, ends[r.id]):
				found.broken(Break{Seal: r.id, What: LineChanged, Text: fmt.Sprintf("seal %d is not what it was when it was written", r.id)})
			}
			if found.Break != nil {
				return last, nil
			}
			before, last, from = r, r.id, r.id+1
			found.Head, found.HeadID = r.hash, r.id
		}
	}
	return last, nil
}
