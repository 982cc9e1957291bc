package database

import (
	"context"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"chorus/internal/store/pgtest"
)

// A server that starts over after one of its processes crashed was started when it was before, but its life is another: the numbers of
// transactions that it lost are given to others.
func TestAServerThatStartsOverHasAnotherLife(t *testing.T) {
	t.Parallel()
	url := pgtest.New(t).Database(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	ask := func() (pid int, started time.Time, life string, err error) {
		conn, err := pgx.Connect(ctx, url)
		if err != nil {
			return 0, started, "", err
		}
		t.Cleanup(func() { _ = conn.Close(context.Background()) }) // until then its process is there
		err = conn.QueryRow(ctx, `SELECT pg_backend_pid(), pg_postmaster_start_time(), `+serverLife).Scan(&pid, &started, &life)
		return pid, started, life, err
	}
	pid, started, life, err := ask()
	if err != nil {
		t.Fatal(err)
	}
	if _, _, same, err := ask(); err != nil || same != life {
		t.Fatalf("nothing happened, and its life is %q and not %q (%v)", same, life, err)
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	for {
		_, again, now, err := ask()
		switch {
		case ctx.Err() != nil:
			t.Fatalf("it did not start over: %v, %q", err, now)
		case err == nil && now != life:
			if !again.Equal(started) {
				t.Errorf("it was started anew, at %v and not %v", again, started)
			}
			return
		}
		if !pause(ctx, 5, 20) {
			t.Fatal("it did not start over")
		}
	}
}
