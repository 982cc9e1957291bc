package pgnotify_test

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"go.uber.org/goleak"

	"chorus/internal/peernotify"
	"chorus/internal/peernotify/peernotifytest"
	"chorus/internal/peernotify/pgnotify"
	"chorus/internal/store/pgtest"
)

func TestMain(m *testing.M) {
	// The cluster that tests share is waited for as long as the program lives.
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("chorus/internal/store/pgtest.(*Cluster).Start.func1"))
}

func node(t *testing.T, url string) peernotify.Peers {
	t.Helper()
	p, err := pgnotify.New(url, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p
}

// PostgreSQL keeps the promises of every way of notifying, also when it is killed and started again.
func TestSuite(t *testing.T) {
	t.Parallel()
	peernotifytest.Run(t, func(t *testing.T) peernotifytest.World {
		if name := t.Name(); !strings.HasSuffix(name, "/LostConnection") && !strings.HasSuffix(name, "/NobodyWaits") {
			url := pgtest.Database(t)
			return peernotifytest.World{New: func(t *testing.T) peernotify.Peers { return node(t, url) }}
		}
		cluster := pgtest.New(t)
		url := cluster.Database(t)
		return peernotifytest.World{
			New: func(t *testing.T) peernotify.Peers { return node(t, url) },
			Cut: func(*testing.T) { cluster.Kill() },
			Heal: func(t *testing.T) {
				if err := cluster.Start(); err != nil {
					t.Fatal(err)
				}
			},
		}
	})
}

// Whatever others put on the channel is no reason to look at anything.
func TestStrangePayloads(t *testing.T) {
	t.Parallel()
	url := pgtest.Database(t)
	p, other := node(t, url), node(t, url)
	sub, err := p.Subscribe()
	if err != nil {
		t.Fatal(err)
	}
	defer sub.Close()
	<-sub.Woken()
	if _, all := sub.Take(); !all {
		t.Fatal("whoever begins to listen does not look at everything")
	}
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	for _, payload := range []string{"", "x", "{}", "[]", `["a"]`, `["a", 1]`, `["a", "no topic"]`, `["a", ""]`, `[["a"]]`, strings.Repeat("[", 7000)} {
		if _, err := conn.Exec(t.Context(), "SELECT pg_notify('chorus', $1)", payload); err != nil {
			t.Fatal(err)
		}
	}
	other.Notify("settings")
	select {
	case <-sub.Woken():
	case <-time.After(time.Minute):
		t.Fatal("nothing came")
	}
	if got, all := sub.Take(); len(got) != 1 || got[0] != "settings" || all {
		t.Errorf("%q, %v", got, all)
	}
}

// One connection of a session that is ended from outside is replaced.
func TestEndedSession(t *testing.T) {
	t.Parallel()
	url := pgtest.Database(t)
	p := node(t, url)
	sub, err := p.Subscribe()
	if err != nil {
		t.Fatal(err)
	}
	defer sub.Close()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	for range 3 {
		select {
		case <-sub.Woken():
		case <-time.After(time.Minute):
			t.Fatal("nothing came")
		}
		if _, all := sub.Take(); !all {
			t.Fatal("whoever has a new connection does not look at everything")
		}
		if _, err := conn.Exec(t.Context(), "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'chorus notifications' AND datname = current_database()"); err != nil {
			t.Fatal(err)
		}
	}
}

// A URL that cannot be read is not repeated: it has a password in it.
func TestBadURL(t *testing.T) {
	t.Parallel()
	p, err := pgnotify.New("postgres://me:hidden@host:port/x", slog.New(slog.DiscardHandler))
	if err == nil {
		p.Close()
		t.Fatal("a port that is no number was taken")
	}
	if strings.Contains(err.Error(), "hidden") {
		t.Error(err)
	}
}
