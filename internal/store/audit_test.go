package store

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
)

func auditLine(n int) approval.Audit {
	return approval.Audit{Agent: "main", Thread: "cli:home:one@main", Run: fmt.Sprintf("r%d", n/3), Call: fmt.Sprintf("c%d", n),
		Principal: chat.Principal{Kind: chat.LocalUser, ID: "ada", Name: "Ada"},
		Action:    fmt.Sprintf("shell echo %d", n), Decision: "allow", Rule: "allow shell", Detail: strings.Repeat("d", n%4)}
}

func audits(t testing.TB, db *DB, lines int) {
	t.Helper()
	for n := range lines {
		if err := db.Audit(t.Context(), auditLine(n)); err != nil {
			t.Fatal(err)
		}
	}
}

func checkAudit(t testing.TB, db *DB, since string) AuditCheck {
	t.Helper()
	c, err := db.VerifyAudit(t.Context(), since, nil)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// sealedAudit seals the log and gives the seal's hash.
func sealedAudit(t testing.TB, db *DB) string {
	t.Helper()
	seal, hash, err := db.SealAudit(t.Context())
	if err != nil || seal == 0 {
		t.Fatalf("seal %d, %v", seal, err)
	}
	return hash
}

// auditsOf adds lines to the chains of threads, as their commits do.
func auditsOf(t testing.TB, db *DB, lines int, threads ...chat.ThreadID) {
	t.Helper()
	for n := range lines {
		for _, thread := range threads {
			if err := db.write(t.Context(), func(tx *transaction) error { return writeAudit(tx, thread, auditLine(n), int64(n)) }); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// oldAudit makes a file of schema 1 with lines in it and brings it up to date.
func oldAudit(t *testing.T, lines int) *DB {
	t.Helper()
	path := filepath.Join(t.TempDir(), "chorus.db")
	if err := ensureFile(path, ""); err != nil {
		t.Fatal(err)
	}
	if err := migrateTo(t.Context(), path, 1); err != nil {
		t.Fatal(err)
	}
	for n := range lines {
		script(t, path, fmt.Sprintf(`INSERT INTO audit (at, agent, thread_id, run_id, call_id, principal, principal_body, action, decision, rule, detail)
			VALUES (%d, 'main', 't', 'r', 'c', 'local:ada', '{}', 'shell %d', 'allow', '', '')`, n, n))
	}
	return open(t, path)
}

func TestAuditSealsWhatWasBefore(t *testing.T) {
	t.Parallel()
	db := oldAudit(t, 3)
	c := checkAudit(t, db, "")
	if c.Break != nil || c.Lines != 4 || c.Before != 3 || c.HeadID != 0 {
		t.Fatalf("after the migration: %+v %+v", c, c.Break)
	}
	head := sealedAudit(t, db)
	audits(t, db, 2)
	if c := checkAudit(t, db, head); c.Break != nil || c.Lines != 3 || c.HeadID != 1 {
		t.Fatalf("since the seal: %+v %+v", c, c.Break)
	}
	log, err := db.AuditLog(t.Context(), AuditFilter{Decision: sealed})
	if err != nil || len(log) != 1 || log[0].Detail != "3 lines from before the chain" {
		t.Fatalf("the seal: %+v %v", log, err)
	}
	for _, tamper := range []struct {
		sql  string
		id   int64
		what Damage
	}{
		{`UPDATE audit SET action = 'shell x' WHERE id = 2`, 0, LineChanged},
		{`DELETE FROM audit WHERE id = 1`, 1, LineRemoved},
		{`DELETE FROM audit WHERE id = 3`, 3, LineRemoved},
		{`DELETE FROM audit WHERE id = 4`, 4, LineRemoved},
		{`DELETE FROM audit WHERE id > 3`, 4, LineRemoved},
	} {
		t.Run(tamper.sql, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "copy.db")
			script(t, db.Path(), `VACUUM INTO '`+path+`'`)
			script(t, path, dropAuditTriggers+tamper.sql)
			c := checkAudit(t, open(t, path), "")
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
	script(t, db.Path(), dropAuditTriggers+`DELETE FROM audit WHERE decision = 'sealed'`)
	audits(t, db, 1)
	if c := checkAudit(t, db, ""); c.Break != nil || c.Before != 2 || c.Lines != 4 {
		t.Fatalf("%+v %+v", c, c.Break)
	}
}

func TestAuditMigratesBackAndForth(t *testing.T) {
	t.Parallel()
	path := closed(t)
	db, err := Open(t.Context(), Options{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	audits(t, db, 3)
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	for _, o := range []MigrateOptions{{Down: schemaVersion - 1}, {}} {
		if _, err := Migrate(t.Context(), path, o); err != nil {
			t.Fatal(err)
		}
	}
	if c := checkAudit(t, open(t, path), ""); c.Break != nil || c.Before != 3 || c.Lines != 4 {
		t.Fatalf("%+v %+v", c, c.Break)
	}
}

func TestAuditRefusesChanges(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "chorus.db")
	audits(t, open(t, path), 3)
	raw, err := sql.Open(driverName, path)
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
	if c := checkAudit(t, open(t, path), ""); c.Break != nil || c.Lines != 3 {
		t.Fatalf("%+v", c)
	}
}

// Whoever cuts the log off, or writes it anew from some line on, leaves a whole chain;
// a hash that was kept elsewhere tells.
func TestAuditAnchor(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "chorus.db")
	db := open(t, path)
	audits(t, db, 5)
	kept := sealedAudit(t, db)
	script(t, path, dropAuditTriggers+`DELETE FROM audit WHERE id > 3`)
	if c := checkAudit(t, db, ""); c.Break == nil || c.Break.ID != 4 || c.Break.Seal != 1 || c.Break.What != LineRemoved {
		t.Fatalf("cut off behind a seal: %+v %+v", c, c.Break)
	}
	if lost, err := db.AuditLost(t.Context(), 1); err != nil || !strings.Contains(lost, "line 5, which seal 1 has, is missing") {
		t.Fatalf("what the seal has: %q, %v", lost, err)
	}
	script(t, path, `DELETE FROM audit_seals; DELETE FROM audit_sealed`)
	if c := checkAudit(t, db, ""); c.Break != nil || c.HeadID != 0 || c.Lines != 3 {
		t.Fatalf("the seals cut off, too: %+v %+v", c, c.Break)
	}
	if c := checkAudit(t, db, kept); c.Break == nil || c.Break.What != LineRemoved {
		t.Fatalf("with the anchor: %+v", c)
	}
	// A writer that knew the end goes on from there, so the hole shows after all.
	audits(t, db, 1)
	if c := checkAudit(t, db, ""); c.Break == nil || c.Break.ID != 4 || c.Break.What != LineRemoved {
		t.Fatalf("after the next line: %+v %+v", c, c.Break)
	}
}

func TestAuditProgress(t *testing.T) {
	t.Parallel()
	db := open(t, filepath.Join(t.TempDir(), "chorus.db"))
	lines := make([]approval.Audit, auditPage+200)
	for n := range lines {
		lines[n] = auditLine(n)
	}
	err := db.write(t.Context(), func(tx *transaction) error {
		for _, l := range lines {
			if err := writeAudit(tx, "", l, 1); err != nil {
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
	if want := []int64{auditPage, auditPage + 200, auditPage + 200, auditPage + 200}; !slices.Equal(seen, want) {
		t.Fatalf("progress %v", seen)
	}
}

// Two handles write as two processes do; a job that fails takes its lines with it, and
// a COMMIT that fails may or may not have happened. It is one chain all the same.
func TestAuditManyWriters(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "chorus.db")
	dbs := []*DB{open(t, path), open(t, path)}
	commits := 0
	dbs[0].w.fault = func(after bool) error {
		if commits++; commits%7 == 0 {
			return errors.New("broken for the test")
		}
		return nil
	}
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
				err := db.write(t.Context(), func(tx *transaction) error {
					if err := writeAudit(tx, "", auditLine(n), int64(n)); err != nil {
						return err
					}
					if n%5 == 4 {
						return errBusyForTest
					}
					return writeAudit(tx, chat.ThreadID(fmt.Sprint("t", g%3)), auditLine(n), int64(n))
				})
				if err != nil && g%2 == 1 && !errors.Is(err, errBusyForTest) {
					t.Errorf("writer %d: %v", g, err)
				}
			}
		})
	}
	wg.Wait()
	if c := checkAudit(t, dbs[1], ""); c.Break != nil || c.Lines < 4*20*2 {
		t.Fatalf("%+v %+v", c, c.Break)
	}
}

var errBusyForTest = errors.New("this one wants nothing written")

// A process that is killed while it writes leaves a chain that others go on with.
func TestAuditKilledWriter(t *testing.T) {
	if path := os.Getenv("CHORUS_TEST_AUDIT_WRITER"); path != "" {
		db, err := Open(context.Background(), Options{Path: path})
		if err != nil {
			t.Fatal(err)
		}
		for n := 0; ; n++ {
			if err := db.Audit(context.Background(), auditLine(n)); err != nil {
				t.Fatal(err)
			}
			fmt.Println("line", n)
		}
	}
	t.Parallel()
	path := filepath.Join(t.TempDir(), "chorus.db")
	db := open(t, path)
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
			if err := db.Audit(t.Context(), auditLine(n)); err != nil {
				t.Error(err)
			}
		}
		if err := cmd.Process.Kill(); err != nil {
			t.Error(err)
		}
		_ = cmd.Wait() // killed, as asked
	}
	audits(t, db, 1)
	if c := checkAudit(t, db, ""); c.Break != nil || c.Lines < 120 {
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
	db := open(t, path)
	chains := []chat.ThreadID{"", "cli:a:one@main", "cli:b:one@main"}
	auditsOf(t, db, lines/2, chains...)
	sealedAudit(t, db)
	auditsOf(t, db, lines/2, chains...)
	sealedAudit(t, db)
	script(t, path, dropAuditTriggers+`CREATE TABLE kept AS SELECT * FROM audit`)
	raw, err := sql.Open(driverName, path)
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
func tamper(t *rapid.T, do func(*rapid.T, string, ...any), raw *sql.DB, chain string, k, lines int64) (at int64, want []Damage) {
	const here = ` WHERE chain = ? AND seq = ?`
	columns := strings.Split(auditColumns, ", ")
	switch rapid.SampledFrom([]string{"change", "retype", "delete", "cut", "swap", "insert", "rehash", "renumber", "relist", "forget"}).Draw(t, "how") {
	case "change":
		column := rapid.SampledFrom(columns[3:13]).Draw(t, "column")
		if rapid.Bool().Draw(t, "time") {
			do(t, `UPDATE audit SET at = at + ?`+here, rapid.Int64Range(1, 1<<40).Draw(t, "later"), chain, k)
		} else {
			do(t, `UPDATE audit SET `+column+` = ? || `+column+here, rapid.StringN(1, 4, -1).Draw(t, "more"), chain, k)
		}
		return k, []Damage{LineChanged}
	case "retype":
		column := rapid.SampledFrom(columns[3:13]).Draw(t, "column")
		do(t, `UPDATE audit SET `+column+` = CAST(`+column+` AS BLOB)`+here, chain, k)
		return k, []Damage{LineChanged}
	case "delete":
		do(t, `DELETE FROM audit WHERE chain = ? AND seq BETWEEN ? AND ?`, chain, k, rapid.Int64Range(k, lines).Draw(t, "to"))
		return k, []Damage{LineRemoved}
	case "cut":
		do(t, `DELETE FROM audit WHERE chain = ? AND seq >= ?`, chain, k)
		return k, []Damage{LineRemoved}
	case "forget": // the whole thread
		do(t, `DELETE FROM audit WHERE chain = ?`, chain)
		return 1, []Damage{LineRemoved}
	case "swap":
		k = min(k, lines-1)
		other := rapid.Int64Range(k+1, lines).Draw(t, "other")
		do(t, `UPDATE audit SET seq = -1`+here, chain, k)
		do(t, `UPDATE audit SET seq = ?`+here, k, chain, other)
		do(t, `UPDATE audit SET seq = ? WHERE chain = ? AND seq = -1`, other, chain)
		return k, []Damage{LineChanged, LineInserted}
	case "insert":
		hash := rapid.SampledFrom([]string{"bare", "garbage", "linked"}).Draw(t, "hash")
		forge(t, do, chain, k, lines, hash, raw)
		if chain == "" && k == 1 && hash == "bare" { // it looks like one from before the chain, for which nobody answers
			return 0, []Damage{LineInserted, LineChanged}
		}
		if k == lines && hash != "linked" { // nobody is behind it who follows the one before it
			return k, []Damage{LineInserted, LineChanged}
		}
		return k, []Damage{LineInserted}
	case "rehash":
		r := readLine(t, raw, chain, k)
		r.texts[7] += "x"
		do(t, `UPDATE audit SET decision = ?, hash = ?`+here, r.texts[7], r.after(r.prev), chain, k)
		return k, []Damage{LineChanged}
	case "renumber":
		do(t, `UPDATE audit SET seq = seq + ?`+here, lines, chain, k)
		return k, []Damage{LineRemoved}
	default: // "relist": moves it to the end of what is shown
		k = min(k, lines-1)
		do(t, `UPDATE audit SET id = id + 1000`+here, chain, k)
		return k + 1, []Damage{LineChanged}
	}
}

func readLine(t *rapid.T, raw *sql.DB, chain string, seq int64) (r auditRow) {
	rows, err := raw.QueryContext(context.Background(), `SELECT `+auditColumns+` FROM audit WHERE chain = ? AND seq = ?`, chain, seq)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	if !rows.Next() {
		t.Fatalf("no line %d", seq)
	}
	if err := r.scan(rows); err != nil {
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
	r.texts[6] = "shell rm -rf x"
	switch how {
	case "bare":
		r.prev, r.hash = "", ""
	case "garbage":
		r.hash = strings.Repeat("0", 64)
	case "linked":
		r.hash = r.after(r.prev)
	}
	do(t, insertAudit, r.values()...)
}

// No two lines read the same, however their texts are cut.
func TestAuditEncoding(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		draw := func(name string) (r auditRow) {
			r.seq, r.at = rapid.Int64Range(0, 3).Draw(t, name+" number"), rapid.Int64Range(0, 3).Draw(t, name+" at")
			for i := range r.texts {
				r.texts[i] = rapid.StringOfN(rapid.SampledFrom([]rune("a\x00\x01")), 0, 2, -1).Draw(t, name)
			}
			return r
		}
		a, b := draw("a"), draw("b")
		if same := a == b; (a.after("p") == b.after("p")) != same {
			t.Fatalf("%+v and %+v", a, b)
		}
	})
}

// A log of one chain, with heads that were kept of it, stays true: threads begin chains of their own, and the first seal has its end.
func TestAuditOfOneChainGoesOn(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "chorus.db")
	if err := ensureFile(path, ""); err != nil {
		t.Fatal(err)
	}
	if err := migrateTo(t.Context(), path, auditChains-1); err != nil {
		t.Fatal(err)
	}
	raw, err := sql.Open(driverName, path)
	if err != nil {
		t.Fatal(err)
	}
	defer raw.Close()
	end := beginning("")
	for n := range 5 { // as the version before wrote them
		row, err := newAuditRow(auditLine(n), int64(n))
		if err != nil {
			t.Fatal(err)
		}
		row.follow(end)
		end = row.end()
		if _, err := raw.ExecContext(t.Context(), `INSERT INTO audit (at, id, agent, thread_id, run_id, call_id, principal, principal_body, action, decision, rule, detail, prev, hash)
			SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?14, ?15 WHERE ?13 = ''`, row.values()...); err != nil {
			t.Fatal(err)
		}
	}
	db := open(t, path)
	if hash, err := db.AuditHash(t.Context(), 5); err != nil || hash != end.hash {
		t.Fatalf("the head that was kept: %q, %v", hash, err)
	}
	if c := checkAudit(t, db, end.hash); c.Break != nil || c.Lines != 1 {
		t.Fatalf("since it: %+v %+v", c, c.Break)
	}
	auditsOf(t, db, 2, "cli:home:one@main", "")
	sealedAudit(t, db)
	if c := checkAudit(t, db, ""); c.Break != nil || c.Lines != 9 || c.Chains != 2 || c.HeadID != 1 {
		t.Fatalf("%+v %+v", c, c.Break)
	}
	script(t, path, dropAuditTriggers+`DELETE FROM audit WHERE chain = '' AND seq > 4`)
	if c := checkAudit(t, db, ""); c.Break == nil || c.Break.ID != 5 || c.Break.Seal != 1 {
		t.Fatalf("cut off within what was there before: %+v", c.Break)
	}
}

// Whatever is done to a seal, or to what it has, is found.
func TestAuditSealTampering(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "chorus.db")
	db := open(t, path)
	const seals = 5
	for n := range seals {
		auditsOf(t, db, 1, []chat.ThreadID{"", "cli:a:one@main", "cli:b:one@main"}[:1+n%3]...)
		sealedAudit(t, db)
	}
	script(t, path, dropAuditTriggers+`CREATE TABLE kept_seals AS SELECT * FROM audit_seals; CREATE TABLE kept_sealed AS SELECT * FROM audit_sealed`)
	raw, err := sql.Open(driverName, path)
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
