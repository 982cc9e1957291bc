package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"chorus/internal/database"
)

// Salvaged describes what was saved of a damaged database.
type Salvaged struct {
	Folder  string   // where the damaged files are now
	Events  int64    // events that were saved
	Cut     []string // threads that end earlier now because one of their events is lost
	Audit   int64    // audit log lines that were saved
	Damaged []string // tables that could not be read completely
}

// Salvage makes a new database from what can be read of a damaged one, and replaces it. The damaged
// files are kept in a folder next to it. Nobody may have the database open.
func Salvage(ctx context.Context, path string, now time.Time) (Salvaged, error) {
	var out Salvaged
	fresh := path + ".salvaged"
	for _, tail := range []string{"", "-wal", "-shm"} {
		if err := os.Remove(fresh + tail); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return out, database.Explain(fresh, err)
		}
	}
	if err := database.MakeFile(fresh); err != nil {
		return out, err
	}
	if err := database.MigrateTo(ctx, fresh, Schema(), schemaVersion); err != nil {
		return out, database.Explain(fresh, err)
	}
	s := salvager{Salvaged: &out}
	if err := s.run(ctx, path, fresh); err != nil {
		return out, fmt.Errorf("save what can be read of %s: %w", path, err)
	}
	var err error
	if out.Folder, err = database.SetAside(path, "damaged", now); err != nil {
		return out, err
	}
	return out, errors.Join(os.Rename(fresh, path), database.SyncDir(filepath.Dir(path)))
}

// salvager copies what can be read.
type salvager struct {
	*Salvaged
	from, to *sql.DB
}

func (s *salvager) run(ctx context.Context, from, to string) (err error) {
	if s.from, err = database.OpenToRead(from); err != nil {
		return err
	}
	defer s.from.Close()
	// A single connection without foreign key checks: a row may exist while what it refers to does not.
	if s.to, err = database.OpenFile(to, []string{"synchronous(0)", "foreign_keys(0)"}); err != nil {
		return err
	}
	defer s.to.Close()
	s.to.SetMaxOpenConns(1)
	triggers, err := texts(ctx, s.to, `SELECT sql FROM sqlite_master WHERE type = 'trigger'`)
	if err != nil {
		return err
	}
	names, err := texts(ctx, s.to, `SELECT name FROM sqlite_master WHERE type = 'trigger'`)
	if err != nil {
		return err
	}
	for _, name := range names { // triggers would refuse what is done here
		if _, err := s.to.ExecContext(ctx, `DROP TRIGGER `+name); err != nil {
			return err
		}
	}
	tables, err := texts(ctx, s.to, `SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%' AND name <> 'goose_db_version' AND name NOT IN ('snapshots', 'spent_days', 'spent_months')`)
	if err != nil {
		return err
	}
	for _, table := range tables {
		if err := s.table(ctx, table); err != nil {
			return fmt.Errorf("%s: %w", table, err)
		}
	}
	if err := s.repair(ctx); err != nil {
		return err
	}
	for _, text := range triggers {
		if _, err := s.to.ExecContext(ctx, text); err != nil {
			return err
		}
	}
	_, err = s.to.ExecContext(ctx, `PRAGMA wal_checkpoint(TRUNCATE)`)
	return err
}

// table copies the rows of a table, from its beginning up to the damage and from its end back to it.
func (s *salvager) table(ctx context.Context, table string) error {
	columns, err := texts(ctx, s.to, `SELECT '"' || name || '"' FROM pragma_table_info('`+table+`')`)
	if err != nil {
		return err
	}
	had, err := texts(ctx, s.from, `SELECT '"' || name || '"' FROM pragma_table_info('`+table+`')`)
	if err != nil || len(had) == 0 {
		s.Damaged = append(s.Damaged, table)
		return nil
	}
	var both []string
	for _, c := range columns {
		for _, h := range had {
			if c == h {
				both = append(both, c)
			}
		}
	}
	key, err := texts(ctx, s.to, `SELECT '"' || name || '"' FROM pragma_table_info('`+table+`') WHERE pk > 0 ORDER BY pk`)
	if err != nil {
		return err
	}
	if s.hasRowid(ctx, table) {
		both, key = append([]string{"rowid"}, both...), []string{"rowid"}
	}
	forward, backward := strings.Join(key, ", "), strings.Join(key, " DESC, ")+" DESC"
	if s.copyRows(ctx, table, both, forward) == nil {
		return nil
	}
	s.Damaged = append(s.Damaged, table)
	_ = s.copyRows(ctx, table, both, backward) // up to the damage, which is known
	return ctx.Err()
}

// hasRowid reports whether a table has row ids.
func (s *salvager) hasRowid(ctx context.Context, table string) bool {
	_, err := s.to.ExecContext(ctx, `SELECT rowid FROM `+table+` LIMIT 0`)
	return err == nil
}

// copyRows copies rows in the given order until one cannot be read.
func (s *salvager) copyRows(ctx context.Context, table string, columns []string, order string) error {
	list := strings.Join(columns, ", ")
	rows, err := s.from.QueryContext(ctx, `SELECT `+list+` FROM `+table+` NOT INDEXED ORDER BY `+order)
	if err != nil {
		return err
	}
	defer rows.Close()
	tx, err := s.to.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	insert, err := tx.PrepareContext(ctx, `INSERT OR REPLACE INTO `+table+` (`+list+`) VALUES (?`+strings.Repeat(", ?", len(columns)-1)+`)`)
	if err != nil {
		return errors.Join(err, tx.Rollback())
	}
	values, into := make([]any, len(columns)), make([]any, len(columns))
	for i := range values {
		into[i] = &values[i]
	}
	for rows.Next() {
		if err = rows.Scan(into...); err != nil {
			break
		}
		if _, err := insert.ExecContext(ctx, values...); err != nil {
			continue // a row that our schema does not allow
		}
	}
	return errors.Join(err, rows.Err(), tx.Commit())
}

// repair makes the rest consistent: a thread ends before its first lost event, the audit
// log before its first lost line, and nothing refers to what is gone.
func (s *salvager) repair(ctx context.Context) error {
	const gaps = `SELECT thread_id, min(lost) AS first FROM (
		SELECT thread_id, seq, lag(seq, 1, 0) OVER (PARTITION BY thread_id ORDER BY seq) + 1 AS lost FROM events) WHERE seq <> lost GROUP BY thread_id`
	rows, err := s.to.QueryContext(ctx, gaps+` UNION SELECT id, 0 FROM threads WHERE next_seq <> (SELECT coalesce(max(seq), 0) + 1 FROM events WHERE thread_id = id) ORDER BY 1`)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var thread string
		var at int64
		if err := rows.Scan(&thread, &at); err != nil {
			return err
		}
		if len(s.Cut) == 0 || s.Cut[len(s.Cut)-1] != thread {
			s.Cut = append(s.Cut, thread)
		}
	}
	if err := errors.Join(rows.Err(), rows.Close()); err != nil {
		return err
	}
	for _, query := range []string{
		`CREATE TEMP TABLE gaps AS ` + gaps,
		`DELETE FROM events WHERE seq >= (SELECT first FROM gaps WHERE gaps.thread_id = events.thread_id)`,
		`DELETE FROM events WHERE thread_id NOT IN (SELECT id FROM threads)`,
		`DELETE FROM event_blobs WHERE NOT EXISTS (SELECT 1 FROM events e WHERE e.thread_id = event_blobs.thread_id AND e.seq = event_blobs.seq)`,
		`UPDATE threads SET next_seq = (SELECT coalesce(max(seq), 0) + 1 FROM events WHERE thread_id = id),
			waiting = (SELECT count(*) FROM events WHERE thread_id = id AND taken = 0)`,
		`DELETE FROM readers WHERE thread_id NOT IN (SELECT id FROM threads)`,
		`DELETE FROM approvals WHERE thread_id NOT IN (SELECT id FROM threads)`,
		`UPDATE readers SET seq = min(seq, (SELECT next_seq - 1 FROM threads WHERE id = thread_id))`,
		`CREATE TEMP TABLE audit_gaps AS SELECT chain, min(lost) AS first FROM (
			SELECT chain, seq, lag(seq, 1, 0) OVER (PARTITION BY chain ORDER BY seq) + 1 AS lost FROM audit) WHERE seq <> lost GROUP BY chain`,
		`DELETE FROM audit WHERE seq >= (SELECT first FROM audit_gaps WHERE audit_gaps.chain = audit.chain)`,
		// A seal is only true while everything it covers is there. The next one covers what these did.
		`DELETE FROM audit_seals WHERE id >= (SELECT min(lost) FROM (SELECT id, lag(id, 1, 0) OVER (ORDER BY id) + 1 AS lost FROM audit_seals) WHERE id <> lost)`,
		`DELETE FROM audit_seals WHERE id >= (SELECT min(id) FROM audit_seals WHERE chains <> (SELECT count(*) FROM audit_sealed s JOIN audit a ON a.chain = s.chain AND a.seq = s.seq WHERE s.seal = audit_seals.id))`,
		`DELETE FROM audit_sealed WHERE seal NOT IN (SELECT id FROM audit_seals)`,
		`DELETE FROM memos WHERE kind = 'store' AND key = 'audit_sealed'`,
	} {
		if _, err := s.to.ExecContext(ctx, query); err != nil {
			return fmt.Errorf("%s: %w", query, err)
		}
	}
	// Sums are computed again: the saved ones may include lines that were lost.
	if _, err := s.to.ExecContext(ctx, `DELETE FROM spent_days`); err != nil {
		return err
	}
	if _, err := s.to.ExecContext(ctx, fillDays, "", lastRun); err != nil {
		return err
	}
	_, err = s.to.ExecContext(ctx, `INSERT INTO spent_months SELECT substr(day, 1, 7), channel, agent, payer, model, max(thread_id), max(payer_body), sum(calls), sum(open), sum(settled),
		sum(tok_in), sum(tok_out), sum(tok_read), sum(tok_write) FROM spent_days GROUP BY 1, 2, 3, 4, 5`)
	if err != nil {
		return err
	}
	return s.to.QueryRowContext(ctx, `SELECT (SELECT count(*) FROM events), (SELECT count(*) FROM audit)`).Scan(&s.Events, &s.Audit)
}

// texts returns a column of strings.
func texts(ctx context.Context, db *sql.DB, query string) (out []string, err error) {
	rows, err := db.QueryContext(ctx, query)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var text string
		if err := rows.Scan(&text); err != nil {
			return nil, err
		}
		out = append(out, text)
	}
	return out, rows.Err()
}
