package audit_test

import (
	"bufio"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"chorus/internal/approval"
	"chorus/internal/chat"
	"chorus/internal/database"
	"chorus/internal/store"
	"chorus/internal/store/audit"
	"chorus/internal/store/storetest"
)

// sealedAudit seals the log and gives the seal's hash.
func sealedAudit(t testing.TB, db *store.DB) string {
	t.Helper()
	seal, hash, err := db.SealAudit(t.Context())
	if err != nil || seal == 0 {
		t.Fatalf("seal %d, %v", seal, err)
	}
	return hash
}

// auditsOf adds lines to the chains of threads, as their commits do.
func auditsOf(t testing.TB, db *store.DB, lines int, threads ...chat.ThreadID) {
	t.Helper()
	for n := range lines {
		for _, thread := range threads {
			if err := db.Write(t.Context(), func(tx database.Tx) error { return audit.Append(tx, thread, storetest.AuditLine(n), int64(n)) }); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// migrateTo makes a file of an older schema.
func migrateTo(t *testing.T, path string, version int) {
	t.Helper()
	if err := errors.Join(database.MakeFile(path), database.MigrateTo(t.Context(), path, store.Schema(), version)); err != nil {
		t.Fatal(err)
	}
}

// oldAudit makes a file of schema 1 with lines in it and brings it up to date.
func oldAudit(t *testing.T, lines int) *store.DB {
	t.Helper()
	path := filepath.Join(t.TempDir(), "chorus.db")
	migrateTo(t, path, 1)
	for n := range lines {
		storetest.Script(t, path, fmt.Sprintf(`INSERT INTO audit (at, agent, thread_id, run_id, call_id, principal, principal_body, action, decision, rule, detail)
			VALUES (%d, 'main', 't', 'r', 'c', 'local:ada', '{}', 'shell %d', 'allow', '', '')`, n, n))
	}
	return storetest.Open(t, store.Options{Path: path})
}

func TestAuditSealsWhatWasBefore(t *testing.T) {
	t.Parallel()
	db := oldAudit(t, 3)
	c := storetest.CheckAudit(t, db, "")
	if c.Break != nil || c.Lines != 4 || c.Before != 3 || c.HeadID != 0 {
		t.Fatalf("after the migration: %+v %+v", c, c.Break)
	}
	head := sealedAudit(t, db)
	storetest.Audits(t, db, 2)
	if c := storetest.CheckAudit(t, db, head); c.Break != nil || c.Lines != 3 || c.HeadID != 1 {
		t.Fatalf("since the seal: %+v %+v", c, c.Break)
	}
	log, err := db.AuditLog(t.Context(), audit.Filter{Decision: audit.Sealed})
	if err != nil || len(log) != 1 || log[0].Detail != "3 lines from before the chain" {
		t.Fatalf("the seal: %+v %v", log, err)
	}
	for _, tamper := range []struct {
		sql  string
		id   int64
		what audit.Damage
	}{
		{`UPDATE audit SET action = 'shell x' WHERE id = 2`, 0, audit.LineChanged},
		{`DELETE FROM audit WHERE id = 1`, 1, audit.LineRemoved},
		{`DELETE FROM audit WHERE id = 3`, 3, audit.LineRemoved},
		{`DELETE FROM audit WHERE id = 4`, 4, audit.LineRemoved},
		{`DELETE FROM audit WHERE id > 3`, 4, audit.LineRemoved},
	} {
		t.Run(tamper.sql, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "copy.db")
			storetest.Script(t, db.Path(), `VACUUM INTO '`+path+`'`)
			storetest.Script(t, path, dropAuditTriggers+tamper.sql)
			c := storetest.CheckAudit(t, storetest.Open(t, store.Options{Path: path}), "")
			if c.Break == nil || c.Break.ID != tamper.id || c.Break.What != tamper.what {
				t.Fatalf("%+v %+v", c, c.Break)
			}
		})
	}
}

// A process may die between the migration and the seal; the next line brings it.
func TestAuditSealsLate(t *testing.T) {
	t.Parallel()
	db := oldAudit(t, 2)
	storetest.Script(t, db.Path(), dropAuditTriggers+`DELETE FROM audit WHERE decision = 'sealed'`)
	storetest.Audits(t, db, 1)
	if c := storetest.CheckAudit(t, db, ""); c.Break != nil || c.Before != 2 || c.Lines != 4 {
		t.Fatalf("%+v %+v", c, c.Break)
	}
}

func TestAuditMigratesBackAndForth(t *testing.T) {
	t.Parallel()
	path := storetest.Closed(t)
	db, err := store.Open(t.Context(), store.Options{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	storetest.Audits(t, db, 3)
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	for _, o := range []database.MigrateOptions{{Down: store.Schema().Version - 1}, {}} {
		if _, err := store.Migrate(t.Context(), path, o); err != nil {
			t.Fatal(err)
		}
	}
	if c := storetest.CheckAudit(t, storetest.Open(t, store.Options{Path: path}), ""); c.Break != nil || c.Before != 3 || c.Lines != 4 {
		t.Fatalf("%+v %+v", c, c.Break)
	}
}

func TestAuditRefusesChanges(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "chorus.db")
	storetest.Audits(t, storetest.Open(t, store.Options{Path: path}), 3)
	raw, err := database.OpenFile(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer raw.Close()
	const columns = `at, agent, thread_id, run_id, call_id, principal, principal_body, action, decision, rule, detail, prev`
	for _, statement := range []string{
		`UPDATE audit SET rule = 'x' WHERE id = 2`,
		`UPDATE audit SET id = 9 WHERE id = 3`,
		`DELETE FROM audit WHERE id = 2`,
		`DELETE FROM audit`,
		`REPLACE INTO audit (id, ` + columns + `, hash) SELECT id, ` + columns + `, hash FROM audit WHERE id = 2`,
		`INSERT INTO audit (id, ` + columns + `, hash) SELECT -1, ` + columns + `, hash FROM audit WHERE id = 2`,
		`INSERT INTO audit (` + columns + `) SELECT ` + columns + ` FROM audit WHERE id = 2`,
	} {
		if _, err := raw.ExecContext(t.Context(), statement); err == nil || !strings.Contains(err.Error(), "only ever appended to") {
			t.Errorf("%s: %v", statement, err)
		}
	}
	if c := storetest.CheckAudit(t, storetest.Open(t, store.Options{Path: path}), ""); c.Break != nil || c.Lines != 3 {
		t.Fatalf("%+v", c)
	}
}

// Whoever cuts the log off, or writes it anew from some line on, leaves a whole chain;
// a hash that was kept elsewhere tells.
func TestAuditAnchor(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "chorus.db")
	db := storetest.Open(t, store.Options{Path: path})
	storetest.Audits(t, db, 5)
	kept := sealedAudit(t, db)
	storetest.Script(t, path, dropAuditTriggers+`DELETE FROM audit WHERE id > 3`)
	if c := storetest.CheckAudit(t, db, ""); c.Break == nil || c.Break.ID != 4 || c.Break.Seal != 1 || c.Break.What != audit.LineRemoved {
		t.Fatalf("cut off behind a seal: %+v %+v", c, c.Break)
	}
	if lost, err := db.AuditLost(t.Context(), 1); err != nil || !strings.Contains(lost, "line 5, which seal 1 has, is missing") {
		t.Fatalf("what the seal has: %q, %v", lost, err)
	}
	storetest.Script(t, path, `DELETE FROM audit_seals; DELETE FROM audit_sealed`)
	if c := storetest.CheckAudit(t, db, ""); c.Break != nil || c.HeadID != 0 || c.Lines != 3 {
		t.Fatalf("the seals cut off, too: %+v %+v", c, c.Break)
	}
	if c := storetest.CheckAudit(t, db, kept); c.Break == nil || c.Break.What != audit.LineRemoved {
		t.Fatalf("with the anchor: %+v", c)
	}
	// A writer that knew the end goes on from there, so the hole shows after all.
	storetest.Audits(t, db, 1)
	if c := storetest.CheckAudit(t, db, ""); c.Break == nil || c.Break.ID != 4 || c.Break.What != audit.LineRemoved {
		t.Fatalf("after the next line: %+v %+v", c, c.Break)
	}
}

func TestAuditProgress(t *testing.T) {
	t.Parallel()
	db := storetest.Open(t, store.Options{Path: filepath.Join(t.TempDir(), "chorus.db")})
	lines := make([]approval.Audit, audit.PageLines+200)
	for n := range lines {
		lines[n] = storetest.AuditLine(n)
	}
	err := db.Write(t.Context(), func(tx database.Tx) error {
		for _, l := range lines {
			if err := audit.Append(tx, "", l, 1); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	var seen []int64
	c, err := db.VerifyAudit(t.Context(), "", func(done, all int64) { seen = append(seen, done, all) })
	if err != nil || c.Break != nil || c.Lines != int64(len(lines)) {
		t.Fatalf("%+v %v", c, err)
	}
	if want := []int64{audit.PageLines, audit.PageLines + 200, audit.PageLines + 200, audit.PageLines + 200}; !slices.Equal(seen, want) {
		t.Fatalf("progress %v", seen)
	}
}

// Two handles write as two processes do; a job that fails takes its lines with it, and
// a COMMIT that fails may or may not have happened. It is one chain all the same.
func TestAuditManyWriters(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "chorus.db")
	dbs := []*store.DB{storetest.Open(t, store.Options{Path: path}), storetest.Open(t, store.Options{Path: path})}
	commits := 0
	dbs[0].BreakCommits(func(after bool) error {
		if commits++; commits%7 == 0 {
			return errors.New("broken for the test")
		}
		return nil
	})
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			db := dbs[g%2]
			for n := range 25 {
				if n%10 == 3 {
					if _, _, err := db.SealAudit(t.Context()); err != nil && g%2 == 1 {
						t.Error(err)
					}
				}
				err := db.Write(t.Context(), func(tx database.Tx) error {
					if err := audit.Append(tx, "", storetest.AuditLine(n), int64(n)); err != nil {
						return err
					}
					if n%5 == 4 {
						return errBusyForTest
					}
					return audit.Append(tx, chat.ThreadID(fmt.Sprint("t", g%3)), storetest.AuditLine(n), int64(n))
				})
				if err != nil && g%2 == 1 && !errors.Is(err, errBusyForTest) {
					t.Errorf("writer %d: %v", g, err)
				}
			}
		})
	}
	wg.Wait()
	if c := storetest.CheckAudit(t, dbs[1], ""); c.Break != nil || c.Lines < 4*20*2 {
		t.Fatalf("%+v %+v", c, c.Break)
	}
}

var errBusyForTest = errors.New("this one wants nothing written")

// A process that is killed while it writes leaves a chain that others go on with.
func TestAuditKilledWriter(t *testing.T) {
	if path := os.Getenv("CHORUS_TEST_AUDIT_WRITER"); path != "" {
		db, err := store.Open(context.Background(), store.Options{Path: path})
		if err != nil {
			t.Fatal(err)
		}
		for n := 0; ; n++ {
			if err := db.Audit(context.Background(), storetest.AuditLine(n)); err != nil {
				t.Fatal(err)
			}
			fmt.Println("line", n)
		}
	}
	t.Parallel()
	path := filepath.Join(t.TempDir(), "chorus.db")
	db := storetest.Open(t, store.Options{Path: path})
	for range 2 {
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestAuditKilledWriter$")
		cmd.Env = append(os.Environ(), "CHORUS_TEST_AUDIT_WRITER="+path)
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(out)
		for n := 0; n < 30 && lines.Scan(); n++ {
			if err := db.Audit(t.Context(), storetest.AuditLine(n)); err != nil {
				t.Error(err)
			}
		}
		if err := cmd.Process.Kill(); err != nil {
			t.Error(err)
		}
		_ = cmd.Wait() // killed, as asked
	}
	storetest.Audits(t, db, 1)
	if c := storetest.CheckAudit(t, db, ""); c.Break != nil || c.Lines < 120 {
		t.Fatalf("%+v %+v", c, c.Break)
	}
}

const dropAuditTriggers = `DROP TRIGGER audit_no_update; DROP TRIGGER audit_no_delete; DROP TRIGGER audit_at_the_end;
	DROP TRIGGER audit_seals_no_update; DROP TRIGGER audit_seals_no_delete; DROP TRIGGER audit_sealed_no_update; DROP TRIGGER audit_sealed_no_delete; `

// Whatever somebody does to one line of a chain is found, and at the right place, whichever chain it is; of the last line, too, as
// it is sealed.
func TestAuditTampering(t *testing.T) {
	t.Parallel()
	const lines = 8
	path := filepath.Join(t.TempDir(), "chorus.db")
	db := storetest.Open(t, store.Options{Path: path})
	chains := []chat.ThreadID{"", "cli:a:one@main", "cli:b:one@main"}
	auditsOf(t, db, lines/2, chains...)
	sealedAudit(t, db)
	auditsOf(t, db, lines/2, chains...)
	sealedAudit(t, db)
	storetest.Script(t, path, dropAuditTriggers+`CREATE TABLE kept AS SELECT * FROM audit`)
	raw, err := database.OpenFile(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer raw.Close()
	raw.SetMaxOpenConns(1)
	do := func(t *rapid.T, statement string, args ...any) {
		if _, err := raw.ExecContext(context.Background(), statement, args...); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		do(t, `DELETE FROM audit`)
		do(t, `INSERT INTO audit SELECT * FROM kept`)
		chain := string(rapid.SampledFrom(chains).Draw(t, "chain"))
		k := rapid.Int64Range(1, lines).Draw(t, "line")
		at, want := tamper(t, do, raw, chain, k, lines)
		c, err := db.VerifyAudit(context.Background(), "", nil)
		if err != nil {
			t.Fatal(err)
		}
		if c.Break == nil || c.Break.ID != at || string(c.Break.Thread) != chain || !slices.Contains(want, c.Break.What) {
			t.Fatalf("wanted %v at %d of %q, found %+v in %+v", want, at, chain, c.Break, c)
		}
		if chain != "" && !strings.Contains(c.Break.Text, chain) {
			t.Fatalf("it does not say which thread: %s", c.Break.Text)
		}
	})
}

// tamper does something to line k of a chain, and gives where and as what it must be found.
func tamper(t *rapid.T, do func(*rapid.T, string, ...any), raw *sql.DB, chain string, k, lines int64) (at int64, want []audit.Damage) {
	const here = ` WHERE chain = ? AND seq = ?`
	columns := strings.Split(audit.Columns, ", ")
	switch rapid.SampledFrom([]string{"change", "retype", "delete", "cut", "swap", "insert", "rehash", "renumber", "relist", "forget"}).Draw(t, "how") {
	case "change":
		column := rapid.SampledFrom(columns[3:13]).Draw(t, "column")
		if rapid.Bool().Draw(t, "time") {
			do(t, `UPDATE audit SET at = at + ?`+here, rapid.Int64Range(1, 1<<40).Draw(t, "later"), chain, k)
		} else {
			do(t, `UPDATE audit SET `+column+` = ? || `+column+here, rapid.StringN(1, 4, -1).Draw(t, "more"), chain, k)
		}
		return k, []audit.Damage{audit.LineChanged}
	case "retype":
		column := rapid.SampledFrom(columns[3:13]).Draw(t, "column")
		do(t, `UPDATE audit SET `+column+` = CAST(`+column+` AS BLOB)`+here, chain, k)
		return k, []audit.Damage{audit.LineChanged}
	case "delete":
		do(t, `DELETE FROM audit WHERE chain = ? AND seq BETWEEN ? AND ?`, chain, k, rapid.Int64Range(k, lines).Draw(t, "to"))
		return k, []audit.Damage{audit.LineRemoved}
	case "cut":
		do(t, `DELETE FROM audit WHERE chain = ? AND seq >= ?`, chain, k)
		return k, []audit.Damage{audit.LineRemoved}
	case "forget": // the whole thread
		do(t, `DELETE FROM audit WHERE chain = ?`, chain)
		return 1, []audit.Damage{audit.LineRemoved}
	case "swap":
		k = min(k, lines-1)
		other := rapid.Int64Range(k+1, lines).Draw(t, "other")
		do(t, `UPDATE audit SET seq = -1`+here, chain, k)
		do(t, `UPDATE audit SET seq = ?`+here, k, chain, other)
		do(t, `UPDATE audit SET seq = ? WHERE chain = ? AND seq = -1`, other, chain)
		return k, []audit.Damage{audit.LineChanged, audit.LineInserted}
	case "insert":
		hash := rapid.SampledFrom([]string{"bare", "garbage", "linked"}).Draw(t, "hash")
		forge(t, do, chain, k, lines, hash, raw)
		if chain == "" && k == 1 && hash == "bare" { // it looks like one from before the chain, for which nobody answers
			return 0, []audit.Damage{audit.LineInserted, audit.LineChanged}
		}
		if k == lines && hash != "linked" { // nobody is behind it who follows the one before it
			return k, []audit.Damage{audit.LineInserted, audit.LineChanged}
		}
		return k, []audit.Damage{audit.LineInserted}
	case "rehash":
		r := readLine(t, raw, chain, k)
		*r.Text(7) += "x"
		do(t, `UPDATE audit SET decision = ?, hash = ?`+here, *r.Text(7), r.After(*r.Prev()), chain, k)
		return k, []audit.Damage{audit.LineChanged}
	case "renumber":
		do(t, `UPDATE audit SET seq = seq + ?`+here, lines, chain, k)
		return k, []audit.Damage{audit.LineRemoved}
	default: // "relist": moves it to the end of what is shown
		k = min(k, lines-1)
		do(t, `UPDATE audit SET id = id + 1000`+here, chain, k)
		return k + 1, []audit.Damage{audit.LineChanged}
	}
}

func readLine(t *rapid.T, raw *sql.DB, chain string, seq int64) (r audit.Row) {
	rows, err := raw.QueryContext(context.Background(), `SELECT `+audit.Columns+` FROM audit WHERE chain = ? AND seq = ?`, chain, seq)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	if !rows.Next() {
		t.Fatalf("no line %d", seq)
	}
	if err := r.Scan(rows); err != nil {
		t.Fatal(err)
	}
	return r
}

// forge puts a line at k and moves those behind it.
func forge(t *rapid.T, do func(*rapid.T, string, ...any), chain string, k, lines int64, how string, raw *sql.DB) {
	r := readLine(t, raw, chain, k)
	for seq := lines; seq >= k; seq-- {
		do(t, `UPDATE audit SET seq = ? WHERE chain = ? AND seq = ?`, seq+1, chain, seq)
	}
	*r.Text(6) = "shell rm -rf x"
	switch how {
	case "bare":
		*r.Prev(), *r.Hash() = "", ""
	case "garbage":
		*r.Hash() = strings.Repeat("0", 64)
	case "linked":
		*r.Hash() = r.After(*r.Prev())
	}
	do(t, audit.InsertAudit, r.Values()...)
}

// A log of one chain, with heads that were kept of it, stays true: threads begin chains of their own, and the first seal has its end.
func TestAuditOfOneChainGoesOn(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "chorus.db")
	migrateTo(t, path, audit.ChainsOfThreads-1)
	raw, err := database.OpenFile(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer raw.Close()
	end := audit.Beginning("")
	for n := range 5 { // as the version before wrote them
		row, err := audit.NewRow(storetest.AuditLine(n), int64(n))
		if err != nil {
			t.Fatal(err)
		}
		row.Follow(end)
		end = row
		if _, err := raw.ExecContext(t.Context(), `INSERT INTO audit (at, id, agent, thread_id, run_id, call_id, principal, principal_body, action, decision, rule, detail, prev, hash)
			SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?14, ?15 WHERE ?13 = ''`, row.Values()...); err != nil {
			t.Fatal(err)
		}
	}
	db := storetest.Open(t, store.Options{Path: path})
	if hash, err := db.AuditHash(t.Context(), 5); err != nil || hash != *end.Hash() {
		t.Fatalf("the head that was kept: %q, %v", hash, err)
	}
	if c := storetest.CheckAudit(t, db, *end.Hash()); c.Break != nil || c.Lines != 1 {
		t.Fatalf("since it: %+v %+v", c, c.Break)
	}
	auditsOf(t, db, 2, "cli:home:one@main", "")
	sealedAudit(t, db)
	if c := storetest.CheckAudit(t, db, ""); c.Break != nil || c.Lines != 9 || c.Chains != 2 || c.HeadID != 1 {
		t.Fatalf("%+v %+v", c, c.Break)
	}
	storetest.Script(t, path, dropAuditTriggers+`DELETE FROM audit WHERE chain = '' AND seq > 4`)
	if c := storetest.CheckAudit(t, db, ""); c.Break == nil || c.Break.ID != 5 || c.Break.Seal != 1 {
		t.Fatalf("cut off within what was there before: %+v", c.Break)
	}
}

// Whatever is done to a seal, or to what it has, is found.
func TestAuditSealTampering(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "chorus.db")
	db := storetest.Open(t, store.Options{Path: path})
	const seals = 5
	for n := range seals {
		auditsOf(t, db, 1, []chat.ThreadID{"", "cli:a:one@main", "cli:b:one@main"}[:1+n%3]...)
		sealedAudit(t, db)
	}
	storetest.Script(t, path, dropAuditTriggers+`CREATE TABLE kept_seals AS SELECT * FROM audit_seals; CREATE TABLE kept_sealed AS SELECT * FROM audit_sealed`)
	raw, err := database.OpenFile(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer raw.Close()
	raw.SetMaxOpenConns(1)
	rapid.Check(t, func(t *rapid.T) {
		do := func(statement string, args ...any) {
			if _, err := raw.ExecContext(context.Background(), statement, args...); err != nil {
				t.Fatalf("%s: %v", statement, err)
			}
		}
		do(`DELETE FROM audit_seals; DELETE FROM audit_sealed; INSERT INTO audit_seals SELECT * FROM kept_seals; INSERT INTO audit_sealed SELECT * FROM kept_sealed`)
		if c, err := db.VerifyAudit(context.Background(), "", nil); err != nil || c.Break != nil || c.HeadID != seals {
			t.Fatalf("untouched: %+v %v", c.Break, err)
		}
		k := rapid.Int64Range(1, seals).Draw(t, "seal")
		switch rapid.SampledFrom([]string{"time", "hash", "prev", "remove", "end", "chain", "drop", "add", "swap"}).Draw(t, "how") {
		case "time":
			do(`UPDATE audit_seals SET at = at + 1 WHERE id = ?`, k)
		case "hash":
			do(`UPDATE audit_seals SET hash = 'x' || hash WHERE id = ?`, k)
		case "prev":
			do(`UPDATE audit_seals SET prev = 'x' || prev WHERE id = ?`, k)
		case "remove": // the last one can be taken away with what it has, and only a kept head tells
			k = min(k, seals-1)
			do(`DELETE FROM audit_seals WHERE id = ?`, k)
		case "end":
			do(`UPDATE audit_sealed SET seq = seq + 100 WHERE seal = ?`, k)
		case "chain":
			do(`UPDATE audit_sealed SET chain = 'x' || chain WHERE seal = ?`, k)
		case "drop":
			do(`DELETE FROM audit_sealed WHERE seal = ?`, k)
		case "add":
			do(`INSERT INTO audit_sealed (chain, seq, hash, seal) VALUES ('cli:z:one@main', 1, 'x', ?)`, k)
		case "swap":
			k = min(k, seals-1)
			do(`UPDATE audit_seals SET id = -1 WHERE id = ?`, k)
			do(`UPDATE audit_seals SET id = ? WHERE id = ?`, k, k+1)
			do(`UPDATE audit_seals SET id = ? WHERE id = -1`, k+1)
		}
		c, err := db.VerifyAudit(context.Background(), "", nil)
		if err != nil || c.Break == nil || c.Break.Seal != k {
			t.Fatalf("wanted seal %d, found %+v, %v", k, c.Break, err)
		}
	})
}
