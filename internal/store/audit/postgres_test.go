package audit_test

import (
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"

	"chorus/internal/database"
	"chorus/internal/store"
	"chorus/internal/store/audit"
	"chorus/internal/store/pgtest"
	"chorus/internal/store/storetest"
)

// A database on a server from before, with lines in its one chain, is brought up to date, and what was kept of it holds.
func TestPostgresAuditOfOneChainGoesOn(t *testing.T) {
	t.Parallel()
	url := pgtest.Database(t)
	before := store.Schema()
	before.Version = audit.ChainsOfThreads - 1
	if _, err := database.MigrateServer(t.Context(), url, before, database.MigrateOptions{}); err != nil {
		t.Fatal(err)
	}
	config, err := pgx.ParseConfig(url)
	if err != nil {
		t.Fatal(err)
	}
	raw := stdlib.OpenDB(*config)
	defer raw.Close()
	const lines = 5
	end := audit.Beginning("")
	for n := range lines { // as the version before wrote them
		row, err := audit.NewRow(storetest.AuditLine(n), int64(n))
		if err != nil {
			t.Fatal(err)
		}
		row.Follow(end)
		end = row
		args := append(row.Values()[:12], *row.Prev(), *row.Hash()) // the chain has no name yet
		if _, err := raw.ExecContext(t.Context(), `INSERT INTO audit (at, id, agent, thread_id, run_id, call_id, principal, principal_body, action, decision, rule, detail, prev, hash)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)`, args...); err != nil {
			t.Fatal(err)
		}
	}
	var version int
	if err := raw.QueryRowContext(t.Context(), `SELECT max(version_id) FROM goose_db_version`).Scan(&version); err != nil || version != audit.ChainsOfThreads-1 {
		t.Fatalf("it is at version %d: %v", version, err)
	}
	db := storetest.Open(t, store.Options{URL: url})
	if hash, err := db.AuditHash(t.Context(), lines); err != nil || hash != *end.Hash() {
		t.Fatalf("the head that was kept: %q, %v", hash, err)
	}
	if c := storetest.CheckAudit(t, db, ""); c.Break != nil || c.Lines != lines || c.Chains != 1 {
		t.Fatalf("as it came: %+v %+v", c, c.Break)
	}
	if c := storetest.CheckAudit(t, db, *end.Hash()); c.Break != nil || c.Lines != 1 {
		t.Fatalf("since the head: %+v %+v", c, c.Break)
	}
	auditsOf(t, db, 2, "cli:home:one@main", "")
	sealedAudit(t, db)
	if c := storetest.CheckAudit(t, db, ""); c.Break != nil || c.Lines != lines+4 || c.Chains != 2 || c.HeadID != 1 {
		t.Fatalf("%+v %+v", c, c.Break)
	}
	if _, err := raw.ExecContext(t.Context(), `DELETE FROM audit WHERE seq = 1`); err == nil {
		t.Fatal("lines can be removed after the migration")
	}
	if _, err := raw.ExecContext(t.Context(), `ALTER TABLE audit DISABLE TRIGGER USER; DELETE FROM audit WHERE chain = '' AND seq = 3; ALTER TABLE audit ENABLE TRIGGER USER`); err != nil {
		t.Fatal(err)
	}
	if c := storetest.CheckAudit(t, db, ""); c.Break == nil || c.Break.ID != 3 {
		t.Fatalf("a line of before was removed: %+v", c.Break)
	}
}
