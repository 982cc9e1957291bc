package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"time"

	"chorus/internal/chat"
	"chorus/internal/desk"
)

const insertAudit = `INSERT INTO audit (at, agent, thread_id, run_id, call_id, principal, principal_body, action, decision, rule, detail)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`

func writeAudit(w *writer, thread chat.ThreadID, a desk.Audit, now int64) error {
	if a.Thread == "" {
		a.Thread = thread
	}
	body, err := asJSON(a.Principal)
	if err != nil {
		return err
	}
	return w.exec(insertAudit,
		now, a.Agent, string(a.Thread), a.Run, a.Call, a.Principal.String(), body, a.Action, a.Decision, a.Rule, a.Detail)
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
	desk.Audit
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
	query, args := where.on(`SELECT id, at, agent, thread_id, run_id, call_id, principal_body, action, decision, rule, detail FROM audit`)
	var out []AuditLine
	err := db.query(ctx, query+` ORDER BY id DESC LIMIT ?`, append(args, orDefault(f.Limit, 100)), func(rows *sql.Rows) error {
		var l AuditLine
		var at int64
		var body string
		err := rows.Scan(&l.ID, &at, &l.Agent, &l.Thread, &l.Run, &l.Call, &body, &l.Action, &l.Decision, &l.Rule, &l.Detail)
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
