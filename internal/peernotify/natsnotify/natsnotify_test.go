package natsnotify_test

import (
	"bytes"
	"log/slog"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"go.uber.org/goleak"

	"chorus/internal/peernotify"
	"chorus/internal/peernotify/natsnotify"
	"chorus/internal/peernotify/peernotifytest"
	"chorus/internal/polltest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const maxWait = time.Minute

// broker is a NATS server that can be stopped and started on its port.
type broker struct {
	port int
	user string
	now  *server.Server
}

func start(t *testing.T, user string) *broker {
	t.Helper()
	b := &broker{port: server.RANDOM_PORT, user: user}
	b.Start(t)
	t.Cleanup(b.Stop)
	return b
}

func (b *broker) Start(t *testing.T) {
	t.Helper()
	s, err := server.NewServer(&server.Options{Host: "127.0.0.1", Port: b.port, NoLog: true, NoSigs: true, Username: b.user, Password: b.user})
	if err != nil {
		t.Fatal(err)
	}
	go s.Start()
	if !s.ReadyForConnections(maxWait) {
		t.Fatal("the NATS server does not start")
	}
	b.now, b.port = s, s.Addr().(*net.TCPAddr).Port
}

func (b *broker) Stop() {
	b.now.Shutdown()
	b.now.WaitForShutdown()
}

func (b *broker) url() string {
	return strings.Replace(b.now.ClientURL(), "nats://", "nats://"+b.user+":"+b.user+"@", 1)
}

func node(t *testing.T, url string) *natsnotify.Peers {
	t.Helper()
	p, err := natsnotify.New(url, "chorus.test.notify", slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p
}

func connected(t *testing.T, url string) *natsnotify.Peers {
	t.Helper()
	p := node(t, url)
	polltest.Until(t, "connected", p.Reachable)
	return p
}

// NATS keeps the promises of every way of notifying.
func TestSuite(t *testing.T) {
	t.Parallel()
	peernotifytest.Run(t, func(t *testing.T) peernotifytest.World {
		b := start(t, "")
		url := b.now.ClientURL()
		return peernotifytest.World{
			New: func(t *testing.T) peernotify.Peers { return connected(t, url) },
			Cut: func(*testing.T) { b.Stop() }, Heal: b.Start,
		}
	})
}

// So does NATS before another way of notifying.
func TestFallbackSuite(t *testing.T) {
	t.Parallel()
	peernotifytest.Run(t, func(t *testing.T) peernotifytest.World {
		b, dir := start(t, ""), filepath.Join(t.TempDir(), "peers")
		url := b.now.ClientURL()
		return peernotifytest.World{Lossy: true,
			New: func(t *testing.T) peernotify.Peers { return peernotify.Fallback(connected(t, url), peernotify.In(dir)) },
			Cut: func(*testing.T) { b.Stop() }, Heal: b.Start,
		}
	})
}

// While the server is away notifications take the other way, also those of nodes that still reach it.
func TestAway(t *testing.T) {
	t.Parallel()
	b, gone, dir := start(t, ""), start(t, ""), filepath.Join(t.TempDir(), "peers")
	url, goneURL := b.now.ClientURL(), gone.now.ClientURL()
	gone.Stop() // what one of the two can never reach
	here, apart := peernotify.Fallback(node(t, url), peernotify.In(dir)), peernotify.Fallback(node(t, goneURL), peernotify.In(dir))
	for _, c := range []struct {
		name     string
		from, to peernotify.Peers
	}{{"from the one that reaches the server", here, apart}, {"from the one that does not", apart, here}} {
		sub, err := c.to.Subscribe()
		if err != nil {
			t.Fatal(err)
		}
		heard := func() bool {
			c.from.Notify("settings")
			got, _ := sub.Take()
			return slices.Contains(got, "settings")
		}
		listening, err := c.from.Subscribe() // it has to hear that the other is away
		if err != nil {
			t.Fatal(err)
		}
		polltest.Until(t, c.name, heard)
		sub.Close()
		listening.Close()
	}
	here.Close()
	apart.Close()
}

// A server that is not there at the start is found when it comes; nothing waits for it, and its password is in no log.
func TestLater(t *testing.T) {
	t.Parallel()
	b := start(t, "hidden")
	url := b.url()
	b.Stop()
	var log buffer
	p, err := natsnotify.New(url, "chorus.test.notify", slog.New(slog.NewTextHandler(&log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	polltest.Until(t, "it says so", func() bool { return strings.Contains(log.String(), "notifications_lost") })
	if p.Reachable() {
		t.Error("a server that is away is reachable")
	}
	b.Start(t)
	polltest.Until(t, "it connects", p.Reachable)
	polltest.Until(t, "it says so", func() bool { return strings.Contains(log.String(), "notifications_back") })
	if strings.Contains(log.String(), "hidden") {
		t.Error(log.String())
	}
}

// Whoever listens once the server is reachable is not told that messages may be lost: none were.
func TestNothingIsLostAtTheStart(t *testing.T) {
	t.Parallel()
	b := start(t, "")
	from := connected(t, b.now.ClientURL())
	for i := range 100 {
		p := connected(t, b.now.ClientURL())
		heard := make(chan string, 1)
		stop := p.Listen("words", func(_ string, data []byte) {
			select {
			case heard <- string(data):
			default:
			}
		})
		first := ""
		polltest.Until(t, "a message", func() bool {
			if err := from.Publish("words", []byte("said")); err != nil {
				t.Fatal(err)
			}
			select {
			case first = <-heard:
				return true
			default:
				return false
			}
		})
		stop()
		p.Close()
		if first != "said" {
			t.Fatalf("connection %d heard %q first", i, first)
		}
	}
}

// A server that refuses the password is tried again, and nothing shows the password.
func TestRefused(t *testing.T) {
	t.Parallel()
	b := start(t, "right")
	var log buffer
	p, err := natsnotify.New(strings.ReplaceAll(b.url(), "right:right", "right:hidden"), "chorus.test.notify", slog.New(slog.NewTextHandler(&log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	polltest.Until(t, "it says so", func() bool { return strings.Contains(log.String(), "notifications_lost") })
	if p.Reachable() || strings.Contains(log.String(), "hidden") {
		t.Error(log.String())
	}
}

func TestBadAddresses(t *testing.T) {
	t.Parallel()
	for _, bad := range []string{"", "host:4222", "http://me:hidden@host", "nats://", "nats://me:hidden@host:port:x", "nats://ok,me:hidden@host"} {
		p, err := natsnotify.New(bad, "x", slog.New(slog.DiscardHandler))
		if err == nil {
			p.Close()
			t.Errorf("%q was taken", bad)
		} else if strings.Contains(err.Error(), "hidden") {
			t.Error(err)
		}
	}
}

// buffer is a log that is read while it is written.
type buffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}
