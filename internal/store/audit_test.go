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
	if c.Break != nil || c.Lines != 4 || c.Before != 3 || c.HeadID != 4 {
		t.Fatalf("after the migration: %+v %+v", c, c.Break)
	}
	audits(t, db, 2)
	if c := checkAudit(t, db, c.Head); c.Break != nil || c.Lines != 3 || c.HeadID != 6 {
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
	kept := checkAudit(t, db, "")
	script(t, path, dropAuditTriggers+`DELETE FROM audit WHERE id > 3`)
	if c := checkAudit(t, db, ""); c.Break != nil || c.HeadID != 3 {
		t.Fatalf("cut off: %+v %+v", c, c.Break)
	}
	if c := checkAudit(t, db, kept.Head); c.Break == nil || c.Break.What != LineRemoved {
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
				err := db.write(t.Context(), func(tx *transaction) error {
					if err := writeAudit(tx, "", auditLine(n), int64(n)); err != nil {
						return err
					}
					if n%5 == 4 {
						return errBusyForTest
					}
					return writeAudit(tx, "", auditLine(n), int64(n))
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

const dropAuditTriggers = `DROP TRIGGER audit_no_update; DROP TRIGGER audit_no_delete; DROP TRIGGER audit_at_the_end; `

// Whatever somebody does to one line in the middle is found, and at the right place.
func TestAuditTampering(t *testing.T) {
	t.Parallel()
	const lines = 12
	path := filepath.Join(t.TempDir(), "chorus.db")
	db := open(t, path)
	audits(t, db, lines)
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
	columns := strings.Split(auditColumns, ", ")
	rapid.Check(t, func(t *rapid.T) {
		do(t, `DELETE FROM audit`)
		do(t, `INSERT INTO audit SELECT * FROM kept`)
		k := rapid.Int64Range(1, lines-1).Draw(t, "line")
		var want []Damage
		at := k
		switch rapid.SampledFrom([]string{"change", "retype", "delete", "swap", "insert", "rehash", "renumber"}).Draw(t, "how") {
		case "change":
			column := rapid.SampledFrom(columns[1:]).Draw(t, "column")
			if column == "at" {
				do(t, `UPDATE audit SET at = at + ? WHERE id = ?`, rapid.Int64Range(1, 1<<40).Draw(t, "later"), k)
			} else {
				do(t, `UPDATE audit SET `+column+` = ? || `+column+` WHERE id = ?`, rapid.StringN(1, 4, -1).Draw(t, "more"), k)
			}
			want = []Damage{LineChanged}
		case "retype":
			column := rapid.SampledFrom(columns[2:]).Draw(t, "column")
			do(t, `UPDATE audit SET `+column+` = CAST(`+column+` AS BLOB) WHERE id = ?`, k)
			want = []Damage{LineChanged}
		case "delete":
			to := rapid.Int64Range(k, lines-1).Draw(t, "to")
			do(t, `DELETE FROM audit WHERE id BETWEEN ? AND ?`, k, to)
			want = []Damage{LineRemoved}
		case "swap":
			other := rapid.Int64Range(k+1, lines).Draw(t, "other")
			do(t, `UPDATE audit SET id = -1 WHERE id = ?`, k)
			do(t, `UPDATE audit SET id = ? WHERE id = ?`, k, other)
			do(t, `UPDATE audit SET id = ? WHERE id = -1`, other)
			want = []Damage{LineChanged, LineInserted}
		case "insert":
			hash := rapid.SampledFrom([]string{"bare", "garbage", "linked"}).Draw(t, "hash")
			forge(t, do, k, lines, hash, raw)
			want = []Damage{LineInserted}
			if k == 1 && hash == "bare" { // it looks like one from before the chain, for which nobody answers
				want, at = []Damage{LineInserted, LineChanged}, 0
			}
		case "rehash":
			r := readLine(t, raw, k)
			r.texts[7] += "x"
			do(t, `UPDATE audit SET decision = ?, hash = ? WHERE id = ?`, r.texts[7], r.after(r.prev), k)
			want = []Damage{LineChanged}
		case "renumber":
			do(t, `UPDATE audit SET id = id + ? WHERE id = ?`, lines, k)
			want = []Damage{LineRemoved}
		}
		c, err := db.VerifyAudit(context.Background(), "", nil)
		if err != nil {
			t.Fatal(err)
		}
		if c.Break == nil || c.Break.ID != at || !slices.Contains(want, c.Break.What) {
			t.Fatalf("wanted %v at %d, found %+v in %+v", want, at, c.Break, c)
		}
	})
}

func readLine(t *rapid.T, raw *sql.DB, id int64) (r auditRow) {
	rows, err := raw.QueryContext(context.Background(), `SELECT `+auditColumns+` FROM audit WHERE id = ?`, id)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	if !rows.Next() {
		t.Fatalf("no line %d", id)
	}
	if err := r.scan(rows); err != nil {
		t.Fatal(err)
	}
	return r
}

// forge puts a line at k and moves those behind it.
func forge(t *rapid.T, do func(*rapid.T, string, ...any), k, lines int64, how string, raw *sql.DB) {
	r := readLine(t, raw, k)
	for id := lines; id >= k; id-- {
		do(t, `UPDATE audit SET id = ? WHERE id = ?`, id+1, id)
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
			r.id, r.at = rapid.Int64Range(0, 3).Draw(t, name+" id"), rapid.Int64Range(0, 3).Draw(t, name+" at")
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
