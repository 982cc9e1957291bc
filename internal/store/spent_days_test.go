package store

import (
	"database/sql"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"chorus/internal/chat"
	"chorus/internal/database"
	"chorus/internal/journal"
	"chorus/internal/ledger"
)

// fromLedger sums the ledger itself, as Spend did before there were sums by day.
func fromLedger(t *testing.T, db *DB, f SpendFilter) []Sum {
	t.Helper()
	key := map[SpendBy]string{ByNothing: "''", ByModel: "model", ByAgent: "agent", ByPayer: "payer", ByChannel: db.says.channel, ByDay: db.says.day, ByMonth: db.says.month, ByThread: "thread_id"}[f.By]
	var where database.Where
	where.Equal("agent", f.Agent)
	where.Equal("payer", f.Payer)
	where.From("at", f.Since)
	where.Until("at", f.Until)
	query, args := where.On(`SELECT ` + key + `, count(*), sum(settled), sum(CASE WHEN how = '' THEN reserved ELSE 0 END), sum(tok_in), sum(tok_out), sum(tok_read), sum(tok_write) FROM ledger`)
	var out []Sum
	err := db.Query(t.Context(), query+` GROUP BY 1 ORDER BY 3 DESC, 1`, args, func(rows *sql.Rows) error {
		var s Sum
		err := rows.Scan(&s.Key, &s.Calls, &s.Settled, &s.Open, &s.Usage.Input, &s.Usage.Output, &s.Usage.CacheRead, &s.Usage.CacheWrite)
		out = append(out, s)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// agrees holds the sums against the ledger.
func agrees(t *testing.T, db *DB, now time.Time) {
	t.Helper()
	for _, by := range []SpendBy{ByNothing, ByModel, ByAgent, ByPayer, ByChannel, ByDay, ByMonth, ByThread} {
		for _, f := range []SpendFilter{{}, {Agent: "a1"}, {Payer: "local:p1"}, {Since: now.Add(-50 * time.Hour)}, {Since: dayOn(now).AddDate(0, 0, -3)}, {Since: monthOn(now)}, {Since: monthOn(now).AddDate(0, -1, 0)}, {Since: monthOn(now).AddDate(0, -1, -3).Add(time.Hour)}, {Until: monthOn(now).Add(30 * time.Hour)}, {Since: now.Add(-2 * time.Hour)},
			{Until: now.Add(-30 * time.Hour)}, {Since: now.Add(-80 * time.Hour), Until: now.Add(-20 * time.Hour)}, {Since: now.Add(-3 * time.Hour), Until: now.Add(-time.Hour)}} {
			f.By = by
			got, err := db.Spend(t.Context(), f)
			if err != nil {
				t.Fatal(err)
			}
			if want := fromLedger(t, db, f); !slices.Equal(got, want) {
				t.Errorf("%+v:\n%+v, the ledger has\n%+v", f, got, want)
			}
		}
	}
}

// The overview read every call that was ever made: 728 ms at 120,000 of them.
func TestSpentDaysAgreeWithTheLedger(t *testing.T) {
	t.Parallel()
	both(t, testSpentDaysAgreeWithTheLedger)
}

func testSpentDaysAgreeWithTheLedger(t *testing.T, open func(Options) *DB) {
	now := time.Date(2026, 11, 15, 13, 30, 0, 0, time.UTC)
	db := open(Options{Now: func() time.Time { return now }})
	dice := rand.New(rand.NewPCG(1, 2))
	epochs := map[chat.ThreadID]int64{"cli:home:one@main": 0, "discord:g/c/7:x@main": 0, "web:local/ada:w@main": 0}
	for thread := range epochs {
		if _, err := db.Commit(t.Context(), journal.Commit{Thread: thread, Create: &journal.Thread{}, Events: []chat.Event{{Body: chat.Received{}}}}); err != nil {
			t.Fatal(err)
		}
		row, err := db.Take(t.Context(), thread)
		if err != nil {
			t.Fatal(err)
		}
		epochs[thread] = row.Epoch
	}
	end := now
	now = now.Add(-70 * 24 * time.Hour)
	for n := range 300 {
		now = now.Add(time.Duration(dice.IntN(670)) * time.Minute)
		thread := chat.ThreadID([]string{"cli:home:one@main", "discord:g/c/7:x@main", "web:local/ada:w@main"}[dice.IntN(3)])
		e := ledger.Entry{Run: fmt.Sprintf("r%03d", n/4), Step: 1 + n%4, Attempt: 1 + dice.IntN(2), Agent: fmt.Sprintf("a%d", dice.IntN(2)), Payer: chat.Principal{Kind: chat.LocalUser, ID: fmt.Sprintf("p%d", dice.IntN(2))},
			Model: fmt.Sprintf("m/%d", dice.IntN(3)), Reserved: ledger.Nanos(dice.IntN(100)), How: []ledger.How{ledger.Open, ledger.ByUsage}[dice.IntN(2)]}
		if e.How != ledger.Open {
			e.Settled, e.Usage = ledger.Nanos(dice.IntN(100)), chat.Usage{Input: 1, Output: dice.IntN(5), CacheRead: 3, CacheWrite: 4}
		}
		c := journal.Commit{Thread: thread, Epoch: epochs[thread], Money: []ledger.Entry{e}}
		if dice.IntN(5) == 0 {
			c.Money = append(c.Money, func() ledger.Entry { e.How, e.Settled = ledger.ByUsage, 9; return e }())
		}
		if _, err := db.Commit(t.Context(), c); err != nil {
			t.Fatal(err)
		}
	}
	now = end
	agrees(t, db, now)
}

// A ledger from before is added in parts; a kill between two of them, and what others write meanwhile,
// changes nothing.
func TestLedgerFromBeforeIsSummed(t *testing.T) {
	t.Parallel()
	path := closed(t)
	if _, err := Migrate(t.Context(), path, database.MigrateOptions{Down: schemaVersion - daysSummed + 1}); err != nil {
		t.Fatal(err)
	}
	script(t, path, `WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 12000)
		INSERT INTO ledger (run_id, step, attempt, thread_id, agent, payer, payer_body, model, reserved, settled, how, tok_in, tok_out, tok_read, tok_write, at)
		SELECT printf('r%06d', i / 3), i % 3, 1, printf('cli:home:t%d@main', i % 7), printf('a%d', i % 3), printf('local:p%d', i % 2), '{}', printf('m/%d', i % 5), 100,
			i % 50, CASE WHEN i % 4 = 0 THEN '' ELSE 'usage' END, 1, 2, 3, 4, 1794000000000000 + i * 60000000 FROM n`)
	raw, err := database.OpenFile(path, []string{database.BusyTimeout}, "_txlock=immediate")
	if err != nil {
		t.Fatal(err)
	}
	defer raw.Close()
	killed := Schema()
	killed.Finish = nil
	if err := database.MigrateTo(t.Context(), path, killed, schemaVersion); err != nil { // before it filled anything
		t.Fatal(err)
	}
	if done, err := fillPart(t.Context(), raw); err != nil || done {
		t.Fatal(done, err)
	}
	script(t, path, `UPDATE ledger SET settled = reserved, how = 'assumed' WHERE how = '' AND run_id IN ('r000001', 'r003900');
		INSERT INTO ledger (run_id, step, attempt, thread_id, agent, payer, payer_body, model, reserved, at) VALUES ('r000002', 9, 1, 'cli:home:t1@main', 'a1', 'local:p1', '{}', 'm/1', 7, 1794000000000000),
		('r003901', 9, 1, 'cli:home:t1@main', 'a1', 'local:p1', '{}', 'm/1', 7, 1794000000000000)`)
	db := open(t, path)
	script(t, path, `UPDATE ledger SET settled = 3, how = 'usage', tok_in = 8 WHERE run_id = 'r003950'`)
	agrees(t, db, time.UnixMicro(1794000000000000).UTC().Add(5*24*time.Hour))
	if n, err := db.Count(t.Context(), `SELECT count(*) FROM memos WHERE kind = 'store' AND key = 'spent_days'`); err != nil || n != 0 {
		t.Errorf("it is not done: %d %v", n, err)
	}
}
