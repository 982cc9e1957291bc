package store

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"time"

	"chorus/internal/database"
)

// Triggers keep the sums by day, so no writer of the ledger can forget them. While the
// existing ledger is being added, the triggers only cover runs that were added
// already. A line of another run is counted with its run.
const (
	filledUpTo = `(SELECT value FROM memos WHERE kind = 'store' AND key = 'spent_days')`

	daysNew = `CREATE TRIGGER spent_days_new AFTER INSERT ON ledger /*WHEN*/
BEGIN
	INSERT INTO spent_days (` + daysColumns + `)
	SELECT ` + dayOf + `, ` + channelOf + `, NEW.agent, NEW.payer, NEW.model, NEW.thread_id, NEW.payer_body, 1, ` + openNew + `, NEW.settled,
		NEW.tok_in, NEW.tok_out, NEW.tok_read, NEW.tok_write FROM (SELECT NEW.thread_id AS thread_id, NEW.at AS at) WHERE true
	` + daysAdd + `;
END`
	daysChange = `CREATE TRIGGER spent_days_change AFTER UPDATE OF reserved, settled, how, tok_in, tok_out, tok_read, tok_write ON ledger /*WHEN*/
BEGIN
	UPDATE spent_days SET open = open + ` + openNew + ` - CASE WHEN OLD.how = '' THEN OLD.reserved ELSE 0 END,
		settled = settled + NEW.settled - OLD.settled, tok_in = tok_in + NEW.tok_in - OLD.tok_in, tok_out = tok_out + NEW.tok_out - OLD.tok_out,
		tok_read = tok_read + NEW.tok_read - OLD.tok_read, tok_write = tok_write + NEW.tok_write - OLD.tok_write
	WHERE day = (SELECT ` + dayOf + ` FROM (SELECT NEW.at AS at)) AND channel = (SELECT ` + channelOf + ` FROM (SELECT NEW.thread_id AS thread_id))
		AND agent = NEW.agent AND payer = NEW.payer AND model = NEW.model;
END`

	daysColumns = `day, channel, agent, payer, model, thread_id, payer_body, calls, open, settled, tok_in, tok_out, tok_read, tok_write`
	daysAdd     = `ON CONFLICT (day, channel, agent, payer, model) DO UPDATE SET thread_id = excluded.thread_id, payer_body = excluded.payer_body,
		calls = calls + excluded.calls, open = open + excluded.open, settled = settled + excluded.settled, tok_in = tok_in + excluded.tok_in,
		tok_out = tok_out + excluded.tok_out, tok_read = tok_read + excluded.tok_read, tok_write = tok_write + excluded.tok_write`

	queryFilled = `SELECT value FROM memos WHERE kind = 'store' AND key = 'spent_days'`

	// fillDays adds the runs between two run ids.
	fillDays = `INSERT INTO spent_days (` + daysColumns + `)
		SELECT ` + dayOf + `, ` + channelOf + `, agent, payer, model, max(thread_id), max(payer_body), count(*), sum(CASE WHEN how = '' THEN reserved ELSE 0 END),
			sum(settled), sum(tok_in), sum(tok_out), sum(tok_read), sum(tok_write)
		FROM ledger WHERE run_id > ? AND run_id <= ? GROUP BY 1, 2, 3, 4, 5 ` + daysAdd
)

// fillPage is how many lines of the ledger one transaction adds. It takes some
// milliseconds, so that other processes are not held up.
const fillPage = 5000

// lastRun marks the end of the ledger: no run has this id.
const lastRun = "\U0010ffff"

// dayTriggers returns the triggers of the sums. whole means that the existing ledger is already included.
func dayTriggers(whole bool) []string {
	when := ""
	if !whole {
		when = `WHEN NEW.run_id <= ` + filledUpTo
	}
	var out []string
	for name, text := range map[string]string{"spent_days_new": daysNew, "spent_days_change": daysChange} {
		out = append(out, `DROP TRIGGER IF EXISTS `+name, strings.Replace(text, `/*WHEN*/`, when, 1))
	}
	return out
}

// fillSpentDays adds the existing ledger to the sums, in parts. It does nothing if that is done,
// and continues where it was interrupted. Several processes may do it at the same time.
func fillSpentDays(ctx context.Context, db *sql.DB) error {
	for {
		done, err := fillPart(ctx, db)
		if err != nil || done {
			return err
		}
	}
}

func fillPart(ctx context.Context, db *sql.DB) (done bool, err error) {
	var from string
	if err := db.QueryRowContext(ctx, queryFilled).Scan(&from); errors.Is(err, sql.ErrNoRows) {
		return true, nil
	} else if err != nil {
		return false, err
	}
	tx, err := db.BeginTx(ctx, nil) // begins as a writer, because of the DSN
	if err != nil {
		return false, err
	}
	defer func() { _ = tx.Rollback() }()
	if err := tx.QueryRowContext(ctx, queryFilled).Scan(&from); errors.Is(err, sql.ErrNoRows) {
		return true, nil // another process was faster
	} else if err != nil {
		return false, err
	}
	if from == "" {
		if err := execAll(ctx, tx, dayTriggers(false)); err != nil {
			return false, err
		}
	}
	to := lastRun
	err = tx.QueryRowContext(ctx, `SELECT run_id FROM ledger WHERE run_id > ? ORDER BY run_id LIMIT 1 OFFSET ?`, from, fillPage).Scan(&to)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return false, err
	}
	if _, err := tx.ExecContext(ctx, fillDays, from, to); err != nil {
		return false, err
	}
	if to == lastRun {
		if err := execAll(ctx, tx, append(dayTriggers(true), `DELETE FROM memos WHERE kind = 'store' AND key = 'spent_days'`)); err != nil {
			return false, err
		}
	} else if _, err := tx.ExecContext(ctx, `UPDATE memos SET value = ? WHERE kind = 'store' AND key = 'spent_days'`, to); err != nil {
		return false, err
	}
	return to == lastRun, tx.Commit()
}

func execAll(ctx context.Context, tx *sql.Tx, queries []string) error {
	for _, q := range queries {
		if _, err := tx.ExecContext(ctx, q); err != nil {
			return err
		}
	}
	return nil
}

// spendSource returns where to read sums: the months where they are enough, the days for parts of a month.
func spendSource(says *dialect, f SpendFilter) (string, []any) {
	first, last := monthAfter(f.Since), monthOn(f.Until)
	if f.Thread != "" || f.Under != "" || f.Run != "" || f.By == ByThread || f.By == ByRun || f.By == ByDay ||
		!f.Since.IsZero() && !f.Until.IsZero() && !first.Before(last) {
		return daySource(says, f)
	}
	months := sumsOf(f)
	if !f.Since.IsZero() {
		months.Add("month >= ?", first.Format(monthForm))
	}
	if !f.Until.IsZero() {
		months.Add("month < ?", last.Format(monthForm))
	}
	query, args := months.On(`SELECT month AS day, channel, '' AS thread_id, '' AS run_id, agent, payer, model, calls, settled, open, tok_in, tok_out, tok_read, tok_write FROM spent_months`)
	edges := []SpendFilter{}
	if !f.Since.IsZero() && f.Since.Before(first) {
		edges = append(edges, f)
		edges[0].Until = first
	}
	if !f.Until.IsZero() && last.Before(f.Until) {
		edges = append(edges, f)
		edges[len(edges)-1].Since = last
	}
	for _, edge := range edges {
		part, more := daySource(says, edge)
		query, args = query+` UNION ALL `+part, append(args, more...)
	}
	return query, args
}

// sumsOf returns the conditions for sums of whole days or months.
func sumsOf(f SpendFilter) (where database.Where) {
	where.Equal("agent", f.Agent)
	where.Equal("payer", f.Payer)
	where.Equal("model", f.Model)
	return where
}

// daySource is spendSource without months: the days where they are enough, the ledger for the rest.
func daySource(says *dialect, f SpendFilter) (string, []any) {
	ledgerRows := `SELECT ` + says.day + ` AS day, ` + says.channel + ` AS channel, thread_id, run_id, agent, payer, model, 1 AS calls, settled,
		CASE WHEN how = '' THEN reserved ELSE 0 END AS open, tok_in, tok_out, tok_read, tok_write FROM ledger`
	from := func(since, until time.Time) (string, []any) {
		var where database.Where
		where.Equal("agent", f.Agent)
		where.Equal("payer", f.Payer)
		where.Equal("model", f.Model)
		where.Equal("thread_id", string(f.Thread))
		where.Begins("thread_id", f.Under)
		where.Equal("run_id", f.Run)
		where.From("at", since)
		where.Until("at", until)
		return where.On(ledgerRows)
	}
	if f.Thread != "" || f.Under != "" || f.Run != "" || f.By == ByThread || f.By == ByRun {
		return from(f.Since, f.Until)
	}
	first, last := dayAfter(f.Since), dayOn(f.Until)
	if !f.Since.IsZero() && !f.Until.IsZero() && !first.Before(last) {
		return from(f.Since, f.Until)
	}
	days := sumsOf(f)
	if !f.Since.IsZero() {
		days.Add("day >= ?", first.Format(time.DateOnly))
	}
	if !f.Until.IsZero() {
		days.Add("day < ?", last.Format(time.DateOnly))
	}
	query, args := days.On(`SELECT day, channel, '' AS thread_id, '' AS run_id, agent, payer, model, calls, settled, open, tok_in, tok_out, tok_read, tok_write FROM spent_days`)
	if !f.Since.IsZero() && f.Since.Before(first) {
		part, more := from(f.Since, first)
		query, args = query+` UNION ALL `+part, append(args, more...)
	}
	if !f.Until.IsZero() && last.Before(f.Until) {
		part, more := from(last, f.Until)
		query, args = query+` UNION ALL `+part, append(args, more...)
	}
	return query, args
}

const monthForm = "2006-01"

// monthOn returns the beginning of the month, in UTC.
func monthOn(t time.Time) time.Time {
	t = t.UTC()
	return time.Date(t.Year(), t.Month(), 1, 0, 0, 0, 0, time.UTC)
}

// monthAfter returns the beginning of the first whole month from an instant on.
func monthAfter(t time.Time) time.Time {
	if month := monthOn(t); month.Before(t) {
		return month.AddDate(0, 1, 0)
	}
	return monthOn(t)
}

// dayOn returns the beginning of the day, in UTC.
func dayOn(t time.Time) time.Time { return t.UTC().Truncate(24 * time.Hour) }

// dayAfter returns the beginning of the first whole day from an instant on.
func dayAfter(t time.Time) time.Time {
	if day := dayOn(t); day.Before(t) {
		return day.AddDate(0, 0, 1)
	}
	return dayOn(t)
}
