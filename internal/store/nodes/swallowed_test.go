package nodes_test

import (
	"context"
	"database/sql"
	"errors"
	"io"
	"net"
	"net/url"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"chorus/internal/owner"
	"chorus/internal/polltest"
	"chorus/internal/store"
	"chorus/internal/store/nodes"
	"chorus/internal/store/pgtest"
)

// hole is a way to a server on which everything can vanish: connections are accepted and stay open, and nothing passes. Those that were
// there then never come back to life, as after a router has forgotten them.
type hole struct {
	server string
	era    atomic.Int64 // odd: everything vanishes
}

func newHole(t *testing.T, address string) (string, *hole) {
	t.Helper()
	to, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	h := &hole{server: to.Host}
	var mu sync.Mutex
	var conns []net.Conn
	t.Cleanup(func() {
		_ = listener.Close()
		mu.Lock()
		defer mu.Unlock()
		for _, c := range conns {
			_ = c.Close()
		}
	})
	go func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			server, err := net.Dial("tcp", h.server)
			if err != nil {
				_ = client.Close()
				continue
			}
			mu.Lock()
			conns = append(conns, client, server)
			mu.Unlock()
			era := h.era.Load()
			go h.pass(client, server, era)
			go h.pass(server, client, era)
		}
	}()
	to.Host = listener.Addr().String()
	return to.String(), h
}

// pass copies what comes in the time that the connection is from. An end that vanished is not told to the other side either.
func (h *hole) pass(from, to net.Conn, era int64) {
	buf := make([]byte, 32<<10)
	for {
		n, err := from.Read(buf)
		lives := h.era.Load() == era && era%2 == 0
		if lives && n > 0 {
			_, _ = to.Write(buf[:n])
		}
		if err != nil {
			if lives || !errors.Is(err, io.EOF) {
				_ = to.Close()
			}
			return
		}
	}
}

// soon is how long a node may need after its network is back, on a busy machine: before there were limits it was 40 s.
const soon = 30 * time.Second

// A node whose network swallows everything gives up what it has in time, and is back soon after the network is, although none of its
// connections ever answers again, and readers wait on all of them.
func TestTheNetworkSwallowsEverything(t *testing.T) {
	t.Parallel()
	address, h := newHole(t, pgtest.Database(t))
	db, err := store.Open(t.Context(), store.Options{URL: address})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	n, err := nodes.Join(t.Context(), nodes.Options{DB: db, Name: "a"})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { n.Run(ctx) })
	defer running.Wait()
	defer stop()
	held, err := n.Take(t.Context(), "thing")
	if err != nil {
		t.Fatal(err)
	}
	read := func(ctx context.Context) error {
		return db.Query(ctx, `SELECT count(*) FROM nodes, pg_sleep(0.2)`, nil, func(rows *sql.Rows) error { return rows.Scan(new(int)) })
	}
	var readers sync.WaitGroup
	defer readers.Wait()
	defer stop()
	for range 12 { // more than there are connections, all the time
		readers.Go(func() {
			for ctx.Err() == nil {
				_ = read(ctx)
			}
		})
	}
	polltest.Until(t, "they read", func() bool { return read(t.Context()) == nil })
	h.era.Add(1)
	select {
	case <-held.Context().Done():
	case <-time.After(time.Minute):
		t.Fatal("it keeps what it cannot know to have")
	}
	if err := n.Alive(); !errors.Is(err, nodes.ErrFenced) {
		t.Errorf("alive: %v", err)
	}
	held.Release()
	h.era.Add(1)
	back := time.Now()
	polltest.Until(t, "it lives again", func() bool { return n.Alive() == nil })
	lives := time.Since(back)
	for {
		again, err := n.Take(t.Context(), owner.Name("thing"))
		if err == nil {
			again.Release()
			break
		}
		if time.Since(back) > time.Minute {
			t.Fatal(err)
		}
	}
	takes := time.Since(back)
	t.Logf("it lives %v after the network was back, and takes after %v", lives, takes)
	if lives > soon || takes > soon {
		t.Errorf("that is beyond %v", soon)
	}
}
