// Package audit keeps the log of what was asked, allowed and done. Its lines are chained
// by hashes, with one chain per thread. Seals connect the chains, so that a line that was
// changed, removed or inserted afterwards is detected.
package audit

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"chorus/internal/approval"
	"chorus/internal/chat"
	"chorus/internal/database"
)

const (
	// auditEnd finds the end of a chain, one step from the right edge of an index.
	auditEnd = `SELECT seq, hash FROM audit WHERE chain = ? ORDER BY seq DESC LIMIT 1`

	auditValues = `at, seq, agent, thread_id, run_id, call_id, principal, principal_body, action, decision, rule, detail, chain, prev, hash`

	// Lines are listed in the order of their ids. SQLite has a single writer,
	// which assigns the next id; PostgreSQL uses a sequence.
	insertAudit = `INSERT INTO audit (id, ` + auditValues + `)
		VALUES ((SELECT coalesce(max(id), 0) + 1 FROM audit), ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`
	insertAuditServer = `INSERT INTO audit (` + auditValues + `) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`
)

// noThread is the chain of the lines that belong to no commit of a thread. It
// begins with the lines from before threads had chains.
const noThread chat.ThreadID = ""

// Log is the audit log of a database.
type Log struct{ db *database.DB }

// New returns the audit log in a database.
func New(db *database.DB) *Log { return &Log{db} }

// Audit writes one line that belongs to no commit of a thread, such as a change of settings.
func (l *Log) Audit(ctx context.Context, a approval.Audit) error {
	err := l.db.Write(ctx, func(tx database.Tx) error { return Append(tx, noThread, a, database.Micros(tx.Now())) })
	if err != nil {
		return fmt.Errorf("audit %s: %w", a.Action, err)
	}
	return nil
}

// End is what the next line of a chain must know of the last one.
type End struct{ row auditRow }

// Ends are known ends of chains, which need not be read. With SQLite they are
// those of chains that this process was the last to extend, with PostgreSQL
// those of threads whose row the transaction holds.
type Ends map[chat.ThreadID]End

// maxEnds is how many are remembered. It is more threads than one process runs at a time.
const maxEnds = 512

// Memory is what is remembered between the transactions of a connection. It includes the ends of chains.
type Memory interface{ AuditEnds() Ends }

// known returns the ends that need not be read, or nil.
func known(tx database.Tx) Ends {
	if m, ok := tx.Memory().(Memory); ok {
		return m.AuditEnds()
	}
	return nil
}

func (e Ends) keep(chain chat.ThreadID, end End) {
	if e == nil {
		return
	}
	if len(e) >= maxEnds {
		clear(e)
	}
	e[chain] = end
}

// Append adds a line to the chain of a thread. It must run inside a transaction that holds the
// thread's row, so that no other process can come between reading the end and adding to it.
func Append(tx database.Tx, chain chat.ThreadID, a approval.Audit, now int64) error {
	a.Thread = cmp.Or(a.Thread, chain)
	row, err := newAuditRow(a, now)
	if err != nil {
		return err
	}
	row.chain = string(chain)
	ends := known(tx)
	if tx.OnServer() {
		return appendOnServer(tx, ends, row)
	}
	if end, ok := ends[chain]; ok {
		row.follow(end.row)
		err := tx.Exec(insertAudit, row.values()...)
		if err == nil {
			ends.keep(chain, row.end())
			return nil
		}
		// Somebody has extended the chain since, so the number is no longer the next one.
		if !database.IsConstraint(err) {
			return err
		}
	}
	end, err := readEnd(tx, chain)
	if err == nil && end.row.hash == "" {
		// The process that migrated the file died before it could seal the log.
		if err = sealOld(tx, now, ChainsOfThreads); err == nil {
			end, err = readEnd(tx, chain)
		}
	}
	if err != nil {
		return err
	}
	row.follow(end.row)
	if err := tx.Exec(insertAudit, row.values()...); err != nil {
		return err
	}
	ends.keep(chain, row.end())
	return nil
}

// ReadEnd reads the end of a thread's chain for the lines that this transaction
// will add. The transaction must hold the thread's row.
func ReadEnd(tx database.Tx, chain chat.ThreadID) error {
	end, err := readEnd(tx, chain)
	if err == nil {
		known(tx).keep(chain, end)
	}
	return err
}

// readEnd finds the line after which the next one of a chain goes.
func readEnd(tx database.Tx, chain chat.ThreadID) (End, error) {
	end := beginning(string(chain))
	err := tx.Row(auditEnd, []any{string(chain)}, &end.seq, &end.hash)
	if errors.Is(err, sql.ErrNoRows) {
		return End{beginning(string(chain))}, nil
	}
	return End{end}, err
}

// appendOnServer is Append for PostgreSQL.
func appendOnServer(tx database.Tx, ends Ends, row auditRow) error {
	chain := chat.ThreadID(row.chain)
	end, ok := ends[chain]
	if !ok { // the transaction does not hold the row of the chain's thread
		if err := tx.Alone("audit " + row.chain); err != nil {
			return err
		}
		var err error
		if end, err = readEnd(tx, chain); err != nil {
			return err
		}
	}
	for i := range row.texts {
		row.texts[i] = database.CleanText(row.texts[i]) // the hash is over what is stored
	}
	row.follow(end.row)
	ends.keep(chain, row.end())
	return tx.Exec(insertAuditServer, row.values()...)
}

// Prepare returns the statements that every turn needs.
func Prepare() []string { return []string{auditEnd, insertAudit} }

// Gathered says how lines of several transactions are sent to PostgreSQL together.
func Gathered() database.Gathered { return database.Gathered{Query: insertAuditServer, Rows: true} }

func newAuditRow(a approval.Audit, now int64) (auditRow, error) {
	body, err := database.AsJSON(a.Principal)
	if err != nil {
		return auditRow{}, err
	}
	return auditRow{at: now, texts: [auditTexts]string{a.Agent, string(a.Thread), a.Run, a.Call, a.Principal.String(), body,
		a.Action, a.Decision, a.Rule, a.Detail}}, nil
}

// Filter narrows the audit log. Zero fields match everything. Principal is a key.
type Filter struct {
	Agent        string
	Thread       chat.ThreadID
	Run          string
	Principal    string
	Decision     string
	Since, Until time.Time
	Before       int64 // only lines with a smaller id
	Limit        int   // 0: 100
}

// Line is one line of the log.
type Line struct {
	ID int64
	At time.Time
	approval.Audit
	Hash string // "" if it is from before the chain
}

// AuditLog reads the audit log, newest line first.
func (l *Log) AuditLog(ctx context.Context, f Filter) ([]Line, error) {
	var where database.Where
	where.Equal("agent", f.Agent)
	where.Equal("thread_id", string(f.Thread))
	where.Equal("run_id", f.Run)
	where.Equal("principal", f.Principal)
	where.Equal("decision", f.Decision)
	where.From("at", f.Since)
	where.Until("at", f.Until)
	if f.Before > 0 {
		where.Add("id < ?", f.Before)
	}
	query, args := where.On(`SELECT id, at, agent, thread_id, run_id, call_id, principal_body, action, decision, rule, detail, hash FROM audit`)
	var out []Line
	err := l.db.Query(ctx, query+` ORDER BY id DESC LIMIT ?+0`, append(args, database.Limit(f.Limit, 100)), database.Fill(&out, func(rows *sql.Rows, l *Line) error {
		var at int64
		var body string
		err := rows.Scan(&l.ID, &at, &l.Agent, &l.Thread, &l.Run, &l.Call, &body, &l.Action, &l.Decision, &l.Rule, &l.Detail, &l.Hash)
		if err != nil {
			return err
		}
		l.At = database.Time(at)
		return json.Unmarshal([]byte(body), &l.Principal)
	}))
	if err != nil {
		return nil, fmt.Errorf("audit log: %w", err)
	}
	return out, nil
}
