package pgtest_test

import (
	"testing"

	"github.com/jackc/pgx/v5"

	"chorus/internal/store/pgtest"
)

// TestWhatIsCommittedSurvivesAKill: the cluster is a real one, so what it acknowledged is there when it is started again.
func TestWhatIsCommittedSurvivesAKill(t *testing.T) {
	t.Parallel()
	c := pgtest.New(t)
	url := c.Database(t)
	conn := connect(t, url)
	if _, err := conn.Exec(t.Context(), "CREATE TABLE kept AS SELECT 42 AS n"); err != nil {
		t.Fatal(err)
	}
	c.Kill()
	if err := conn.Ping(t.Context()); err == nil {
		t.Fatal("a killed server answers")
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	var n int
	if err := connect(t, url).QueryRow(t.Context(), "SELECT n FROM kept").Scan(&n); err != nil || n != 42 {
		t.Fatalf("kept %d, %v; want 42", n, err)
	}
}

// TestDatabasesAreApart: each test has its own.
func TestDatabasesAreApart(t *testing.T) {
	t.Parallel()
	for range 2 {
		if _, err := connect(t, pgtest.Database(t)).Exec(t.Context(), "CREATE TABLE mine (n int)"); err != nil {
			t.Fatal(err)
		}
	}
}

func connect(t *testing.T, url string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(t.Context()) })
	return conn
}
