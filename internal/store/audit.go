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
	// auditEnd is where a chain ends: one step from the right edge of an index.
	auditEnd = `SELECT seq, hash FROM audit WHERE chain = ? ORDER BY seq DESC LIMIT 1`

	auditValues = `at, seq, agent, thread_id, run_id, call_id, principal, principal_body, action, decision, rule, detail, chain, prev, hash`

	// Lines are listed in the order of their ids. SQLite has one writer, who gives out the next; PostgreSQL has a sequence.
	insertAudit = `INSERT INTO audit (id, ` + auditValues + `)
		VALUES ((SELECT coalesce(max(id), 0) + 1 FROM audit), ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`
	insertAuditServer = `INSERT INTO audit (` + auditValues + `) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`
)

// noThread is the chain of the lines that belong to no commit of a thread. Those from before threads had chains are its beginning.
const noThread chat.ThreadID = ""

// Audit writes one line that belongs to no commit of a thread, such as a change of
// settings.
func (db *DB) Audit(ctx context.Context, a approval.Audit) error {
	now := micros(db.now())
	err := db.write(ctx, func(tx *transaction) error { return writeAudit(tx, noThread, a, now) })
	if err != nil {
		return fmt.Errorf("audit %s: %w", a.Action, err)
	}
	return nil
}

// writeAudit appends a line to the chain of a thread. It must run inside a transaction that holds the thread's row: nobody else,
// in whatever process, can come between reading the end and adding to it.
func writeAudit(tx *transaction, chain chat.ThreadID, a approval.Audit, now int64) error {
	if a.Thread == "" {
		a.Thread = chain
	}
	row, err := newAuditRow(a, now)
	if err != nil {
		return err
	}
	row.chain = string(chain)
	if tx.pg != nil {
		return tx.pg.addAudit(row)
	}
	if end, ok := tx.ends[chain]; ok {
		row.follow(end)
		err := tx.exec(insertAudit, row.values()...)
		if err == nil {
			tx.addedAudit(row)
			return nil
		}
		// Somebody has added to the chain since: the number is not the next one any more.
		if resultCode(err)&0xff != codeConstraint {
			return err
		}
	}
	end, err := readAuditEnd(tx, chain, now)
	if err != nil {
		return err
	}
	row.follow(end)
	if err := tx.exec(insertAudit, row.values()...); err != nil {
		return err
	}
	tx.addedAudit(row)
	return nil
}

// addedAudit remembers the end of a chain, so that the next line needs no reading.
func (tx *transaction) addedAudit(row auditRow) {
	if len(tx.ends) >= maxKnown {
		clear(tx.ends)
	}
	tx.ends[chat.ThreadID(row.chain)] = row.end()
}

// readAuditEnd finds the line that the next one of a chain follows.
func readAuditEnd(tx *transaction, chain chat.ThreadID, now int64) (end auditRow, err error) {
	end = beginning(string(chain))
	err = tx.row(auditEnd, []any{string(chain)}, &end.seq, &end.hash)
	if errors.Is(err, sql.ErrNoRows) {
		return beginning(string(chain)), nil
	}
	if err == nil && end.hash == "" {
		// Whoever brought the file up to date died before it could seal the log.
		if err = sealAudit(context.Background(), tx.w.conn, now, schemaVersion); err == nil {
			err = tx.row(auditEnd, []any{string(chain)}, &end.seq, &end.hash)
		}
	}
	return end, err
}

// numberAudited asks for the thread's row and then for the end of its chain, at once: nobody adds to the chain without the row.
func (t *pgTx) numberAudited(thread chat.ThreadID, query string, args []any, into ...any) error {
	var none error
	err := t.ask(query, args, func(row scanner) error {
		if none = row.Scan(into...); errors.Is(none, sql.ErrNoRows) {
			return nil
		}
		return none
	})
	if err != nil {
		return err
	}
	end := beginning(string(thread))
	err = pgRow{t, auditEnd, []any{string(thread)}}.Scan(&end.seq, &end.hash)
	if none != nil {
		return none
	}
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return err
	}
	t.ends[string(thread)] = end
	return nil
}

// addAudit appends a line to its chain.
func (t *pgTx) addAudit(row auditRow) error {
	end, ok := t.ends[row.chain]
	if !ok { // the transaction holds no row of a thread whose chain it is
		end = beginning(row.chain)
		if err := t.later(nil, lockName, []any{"audit " + row.chain}); err != nil {
			return err
		}
		err := pgRow{t, auditEnd, []any{row.chain}}.Scan(&end.seq, &end.hash)
		if err != nil && !errors.Is(err, sql.ErrNoRows) {
			return err
		}
	}
	for i := range row.texts {
		row.texts[i] = cleanText(row.texts[i]) // the hash is over what is kept
	}
	row.follow(end)
	t.ends[row.chain] = row.end()
	return t.later(nil, insertAuditServer, row.values())
}

func newAuditRow(a approval.Audit, now int64) (auditRow, error) {
	body, err := AsJSON(a.Principal)
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
