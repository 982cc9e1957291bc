package pgnotify_test

import (
	"encoding/binary"
	"io"
	"log/slog"
	"net"
	"strconv"
	"strings"
	"sync"
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

// pooler is a way to PostgreSQL on which notifications are lost, as they are where a pooler gives a connection to
// others between two transactions.
func pooler(t *testing.T, url string) string {
	t.Helper()
	config, err := pgx.ParseConfig(url)
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var work sync.WaitGroup
	work.Go(func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			server, err := net.Dial("tcp", net.JoinHostPort(config.Host, strconv.Itoa(int(config.Port))))
			if err != nil {
				client.Close()
				return
			}
			work.Go(func() { _, _ = io.Copy(server, client); server.Close() })
			work.Go(func() { passAllBut(client, server, 'A'); client.Close() })
		}
	})
	t.Cleanup(func() { listener.Close(); work.Wait() })
	at := listener.Addr().String()
	return strings.Replace(url, net.JoinHostPort(config.Host, strconv.Itoa(int(config.Port))), at, 1)
}

// passAllBut copies the server's messages (a letter, a length that counts itself, the rest) but those of one kind.
func passAllBut(to io.Writer, from io.Reader, kind byte) {
	for {
		head := make([]byte, 5)
		if _, err := io.ReadFull(from, head); err != nil {
			return
		}
		body := make([]byte, binary.BigEndian.Uint32(head[1:])-4)
		if _, err := io.ReadFull(from, body); err != nil {
			return
		}
		if head[0] == kind {
			continue
		}
		if _, err := to.Write(append(head, body...)); err != nil {
			return
		}
	}
}

// Whoever listens behind a pooler hears nothing, and is told why.
func TestBehindAPooler(t *testing.T) {
	t.Parallel()
	said := make(chan string, 100)
	p, err := pgnotify.New(pooler(t, pgtest.Database(t)), slog.New(slog.NewTextHandler(lines(said), nil)))
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	sub, err := p.Subscribe()
	if err != nil {
		t.Fatal(err)
	}
	defer sub.Close()
	select {
	case line := <-said:
		if !strings.Contains(line, "notifications_lost") || !strings.Contains(line, "session mode") {
			t.Error(line)
		}
	case <-time.After(time.Minute):
		t.Fatal("nothing was said")
	}
}

// lines are what a log writes.
type lines chan string

func (l lines) Write(p []byte) (int, error) {
	l <- string(p)
	return len(p), nil
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
