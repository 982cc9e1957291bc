package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"chorus/internal/approval"
	"chorus/internal/chat"
)

const (
	// auditEnd is where the log ends: one step from the right edge of the table.
	auditEnd    = `SELECT id, hash FROM audit ORDER BY id DESC LIMIT 1`
	insertAudit = `INSERT INTO audit (id, at, agent, thread_id, run_id, call_id, principal, principal_body, action, decision, rule, detail, prev, hash)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`
)

// Audit writes one line that belongs to no commit of a thread, such as a change of
// settings.
func (db *DB) Audit(ctx context.Context, a approval.Audit) error {
	now := micros(db.now())
	err := db.write(ctx, func(tx *transaction) error { return writeAudit(tx, "", a, now) })
	if err != nil {
		return fmt.Errorf("audit %s: %w", a.Action, err)
	}
	return nil
}

// writeAudit appends a line to the chain. It must run inside a writer's transaction:
// nobody else, in whatever process, can come between reading the end and adding to it.
func writeAudit(tx *transaction, thread chat.ThreadID, a approval.Audit, now int64) error {
	if a.Thread == "" {
		a.Thread = thread
	}
	row, err := newAuditRow(a, now)
	if err != nil {
		return err
	}
	if tx.pg != nil {
		tx.pg.audits = append(tx.pg.audits, row)
		return nil
	}
	if tx.end.hash != "" {
		row.follow(tx.end)
		err := tx.exec(insertAudit, row.values()...)
		if err == nil {
			tx.end = auditRow{id: row.id, hash: row.hash}
			return nil
		}
		// Somebody has added to the log since: the number is not the next one any more.
		if resultCode(err)&0xff != codeConstraint {
			return err
		}
	}
	end, err := readAuditEnd(tx, now)
	if err != nil {
		return err
	}
	row.follow(end)
	if err := tx.exec(insertAudit, row.values()...); err != nil {
		return err
	}
	tx.end = auditRow{id: row.id, hash: row.hash}
	return nil
}

// flushAudit adds the lines of a transaction to the chain, as the last that it does: from here to its end nobody else can.
func (tx *transaction) flushAudit() error {
	if len(tx.pg.audits) == 0 {
		return nil
	}
	var end auditRow
	if err := tx.row(lockAudit, nil, &end.id, &end.hash); err != nil {
		return err
	}
	if end.id == 0 {
		end.hash = sealOfNothing()
	}
	for _, row := range tx.pg.audits {
		for i := range row.texts {
			row.texts[i] = cleanText(row.texts[i]) // the hash is over what is kept
		}
		row.follow(end)
		if err := tx.exec(insertAudit, row.values()...); err != nil {
			return err
		}
		end = row
	}
	return nil
}

// readAuditEnd finds the line that the next one follows.
func readAuditEnd(tx *transaction, now int64) (end auditRow, err error) {
	err = tx.row(auditEnd, nil, &end.id, &end.hash)
	if errors.Is(err, sql.ErrNoRows) {
		return auditRow{hash: sealOfNothing()}, nil
	}
	if err == nil && end.hash == "" {
		// Whoever brought the file up to date died before it could seal the log.
		if err = sealAudit(context.Background(), tx.w.conn, now); err == nil {
			err = tx.row(auditEnd, nil, &end.id, &end.hash)
		}
	}
	return end, err
}

func newAuditRow(a approval.Audit, now int64) (auditRow, error) {
	body, err := asJSON(a.Principal)
	if err != nil {
		return auditRow{}, err
	}
	return auditRow{at: now, texts: [auditTexts]string{a.Agent, string(a.Thread), a.Run, a.Call, a.Principal.String(), body,
		a.Action, a.Decision, a.Rule, a.Detail}}, nil
}

// AuditFilter narrows the audit log; zero fields do not. Principal is a key.
type AuditFilter struct {
	Agent        string
	Thread       chat.ThreadID
	Run          string
	Principal    string
	Decision     string
	Since, Until time.Time
	Before       int64 // only lines with a smaller id
	Limit        int   // 0: 100
}

// AuditLine is one line of the log.
type AuditLine struct {
	ID int64
	At time.Time
	approval.Audit
	Hash string // empty: from before the chain
}

// AuditLog reads the audit log, the newest line first.
func (db *DB) AuditLog(ctx context.Context, f AuditFilter) ([]AuditLine, error) {
	var where filter
	where.equal("agent", f.Agent)
	where.equal("thread_id", string(f.Thread))
	where.equal("run_id", f.Run)
	where.equal("principal", f.Principal)
	where.equal("decision", f.Decision)
	where.from("at", f.Since)
	where.until("at", f.Until)
	if f.Before > 0 {
		where.add("id < ?", f.Before)
	}
	query, args := where.on(`SELECT id, at, agent, thread_id, run_id, call_id, principal_body, action, decision, rule, detail, hash FROM audit`)
	var out []AuditLine
	err := db.query(ctx, query+` ORDER BY id DESC LIMIT ?+0`, append(args, orDefault(f.Limit, 100)), func(rows *sql.Rows) error {
		var l AuditLine
		var at int64
		var body string
		err := rows.Scan(&l.ID, &at, &l.Agent, &l.Thread, &l.Run, &l.Call, &body, &l.Action, &l.Decision, &l.Rule, &l.Detail, &l.Hash)
		if err != nil {
			return err
		}
		l.At = instant(at)
		out = append(out, l)
		return json.Unmarshal([]byte(body), &out[len(out)-1].Principal)
	})
	if err != nil {
		return nil, fmt.Errorf("audit log: %w", err)
	}
	return out, nil
}
