package chaos

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"chorus/internal/polltest"
	"chorus/internal/store"
	"chorus/internal/store/pgtest"
)

// A restore to a server is killed while it moves the database there, and another one after that was done and before it could say so: nothing starts with such a
// home, whoever tries is told what to do, and doing it brings everything back.
func TestRestoreToServerIsCutOff(t *testing.T) {
	t.Parallel()
	from, to := newSite(t, ""), newSite(t, "")
	file := filepath.Join(t.TempDir(), "backup.tar.gz")
	call := func(s *crashSite, env string, args ...string) (string, error) {
		ctx, cancel := context.WithTimeout(t.Context(), atMost)
		defer cancel()
		out, err := s.command(ctx, []string{env}, args...).CombinedOutput()
		return string(out), err
	}
	must := func(s *crashSite, env string, args ...string) string {
		t.Helper()
		out, err := call(s, env, args...)
		if err != nil {
			t.Fatalf("chorus %s: %v\n%s", strings.Join(args, " "), err, out)
		}
		return out
	}
	refused := func(env string, words string, args ...string) {
		t.Helper()
		if out, err := call(to, env, args...); err == nil || !strings.Contains(out, words) {
			t.Fatalf("chorus %s: %v, not %q:\n%s", strings.Join(args, " "), err, words, out)
		}
	}
	must(from, "", "run", "-y", "-m", "demo/script", "!say kept")
	before := must(from, "", "thread", "list", "--json")
	must(from, "", "backup", file)

	url := pgtest.New(t).Database(t)
	env := "CHORUS_DATABASE_URL=" + url
	killInMove(t, to, url, env, file)
	fix := "`chorus restore --replace " + file + "`"
	refused(env, fix, "thread", "list")
	refused(env, fix, "serve", "--addr", "127.0.0.1:0")
	note := filepath.Join(to.home, ".restore-unfinished.json")
	kept, err := os.ReadFile(note)
	if err != nil {
		t.Fatal(err)
	}
	must(to, env, "restore", "--replace", file)
	if after := must(to, env, "thread", "list", "--json"); after != before {
		t.Errorf("restored:\n%s\nnot:\n%s", after, before)
	}

	// As if it had been killed before its last step.
	if err := os.WriteFile(note, kept, 0o600); err != nil {
		t.Fatal(err)
	}
	refused(env, fix, "thread", "list")
	must(to, env, "restore", "--replace", file)
	if after := must(to, env, "thread", "list", "--json"); after != before {
		t.Errorf("restored:\n%s\nnot:\n%s", after, before)
	}
	// A new one of the same backup is not taken for the one that was cut off.
	refused(env, "is not empty and was left alone", "restore", "--replace", file)
	if left, _ := filepath.Glob(filepath.Join(to.home, ".restore-*")); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

// killInMove kills a restore that has moved a part of the database.
func killInMove(t *testing.T, to *crashSite, url, env, file string) {
	t.Helper()
	db, err := store.Open(t.Context(), store.Options{URL: url})
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.WithoutCancel(t.Context()))
	if _, err := conn.Exec(t.Context(), `BEGIN; LOCK TABLE events IN ACCESS EXCLUSIVE MODE`); err != nil {
		t.Fatal(err)
	}
	killed := to.command(context.Background(), []string{env}, "restore", file)
	var said notes
	killed.Stdout, killed.Stderr = &said, &said
	if err := killed.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() { defer close(ended); _ = killed.Wait() }()
	defer func() { _ = killed.Process.Kill(); <-ended }()
	waits := func() bool {
		waiting := 0
		err := conn.QueryRow(t.Context(), `SELECT count(*) FROM pg_locks WHERE NOT granted AND relation = 'events'::regclass`).Scan(&waiting)
		return err == nil && waiting > 0
	}
	if !polltest.Soon(waits) {
		t.Fatalf("it does not get to the middle:\n%s", said.String())
	}
}
