package peerlive

import (
	"context"
	"fmt"
	"iter"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"chorus/internal/chat"
	"chorus/internal/peernotify/natsnotify"
	"chorus/internal/polltest"
)

// Live pieces keep the same promises whichever way they come: over HTTP alone, and by messages of a real NATS server.
func TestSuite(t *testing.T) {
	t.Parallel()
	for name, carriers := range map[string]func(*testing.T) func(*testing.T) Carrier{
		"http": func(*testing.T) func(*testing.T) Carrier { return func(*testing.T) Carrier { return nil } },
		"nats": func(t *testing.T) func(*testing.T) Carrier {
			b := newBroker(t)
			return func(t *testing.T) Carrier { return b.join(t) }
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for name, promise := range map[string]func(*testing.T, func(*testing.T) Carrier){
				"the text so far comes first": promiseLate, "it moves": promiseMoves, "a run ends": promiseEnds, "not there": promiseNotThere,
				"long texts": promiseLong, "the owner stops": promiseStops, "a way that is lost": promiseLost,
			} {
				t.Run(name, func(t *testing.T) {
					t.Parallel()
					promise(t, carriers(t))
				})
			}
		})
	}
}

// broker is a NATS server that can be stopped and started on its port.
type broker struct {
	port int
	now  *server.Server
}

func newBroker(t *testing.T) *broker {
	t.Helper()
	b := &broker{port: server.RANDOM_PORT}
	b.start(t)
	t.Cleanup(b.stop)
	return b
}

func (b *broker) start(t *testing.T) {
	t.Helper()
	s, err := server.NewServer(&server.Options{Host: "127.0.0.1", Port: b.port, NoLog: true, NoSigs: true})
	if err != nil {
		t.Fatal(err)
	}
	go s.Start()
	if !s.ReadyForConnections(time.Minute) {
		t.Fatal("the NATS server does not start")
	}
	b.now, b.port = s, s.Addr().(*net.TCPAddr).Port
}

func (b *broker) stop() {
	b.now.Shutdown()
	b.now.WaitForShutdown()
}

// join is the connection of one node.
func (b *broker) join(t *testing.T) *natsnotify.Peers {
	t.Helper()
	p, err := natsnotify.New(fmt.Sprintf("nats://127.0.0.1:%d", b.port), "chorus.test.notify", slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	polltest.Until(t, "connected", p.Reachable)
	return p
}

// run is an answer in the making, on one node.
type run struct {
	mu      sync.Mutex
	text    string
	ended   bool
	changed chan struct{}
}

// grow adds to the text.
func (r *run) grow(text string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.text += text
	close(r.changed)
	r.changed = make(chan struct{})
}

func (r *run) end() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ended = true
	close(r.changed)
	r.changed = make(chan struct{})
}

// pieces yields the text so far, and then what is added, each as it was.
func (r *run) pieces(ctx context.Context) iter.Seq[chat.Live] {
	return func(yield func(chat.Live) bool) {
		for sent := 0; ; {
			r.mu.Lock()
			text, ended, changed := r.text, r.ended, r.changed
			r.mu.Unlock()
			if len(text) > sent && !yield(chat.Delta{Run: "r", Step: 1, What: chat.DeltaText, Offset: sent, Text: text[sent:]}) {
				return
			}
			if sent = len(text); ended {
				return
			}
			select {
			case <-ctx.Done():
				return
			case <-changed:
			}
		}
	}
}

// owning is a node that has runs, and counts how it is asked.
type owning struct {
	*run
	at       Node
	overHTTP atomic.Int64
	away     atomic.Bool // the thread is not here
	stopping chan struct{}
}

func newOwning(t *testing.T, id string, carrier Carrier) *owning {
	t.Helper()
	o := &owning{run: &run{changed: make(chan struct{})}, stopping: make(chan struct{})}
	s := &Server{Secret: "between nodes", Stopping: o.stopping, Source: func(ctx context.Context, _ chat.ThreadID) (iter.Seq[chat.Live], bool) {
		return o.pieces(ctx), !o.away.Load()
	}}
	h := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		o.overHTTP.Add(1)
		s.ServeHTTP(w, r)
	}))
	t.Cleanup(h.Close)
	o.at = Node{ID: id, Address: h.URL}
	if carrier == nil {
		return o
	}
	ctx, cancel := context.WithCancel(context.Background())
	var serving sync.WaitGroup
	serving.Go(func() { s.ServeMessages(ctx, carrier, func() string { return id }) })
	t.Cleanup(func() { cancel(); serving.Wait() })
	return o
}

// shown is what somebody sees who watches the thread from another node.
type shown struct {
	look chan struct{}

	mu      sync.Mutex
	at      Node
	text    string
	nothing int  // how often there was nothing to see any more
	wrong   bool // a piece was not the next one
}

func watch(t *testing.T, carrier Carrier) *shown {
	t.Helper()
	s := &shown{look: make(chan struct{}, 1)}
	c := &Client{Secret: "between nodes", HTTP: NewHTTP(), Carrier: carrier, Log: slog.New(slog.DiscardHandler), OwnerOf: func(context.Context, chat.ThreadID) (Node, bool) {
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.at, s.at != Node{}
	}}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		c.Follow(ctx, thread, s.look, s.put)
	}()
	t.Cleanup(func() {
		cancel()
		<-ended
		c.HTTP.CloseIdleConnections()
	})
	return s
}

func (s *shown) put(piece chat.Live) {
	s.mu.Lock()
	defer s.mu.Unlock()
	d, ok := piece.(chat.Delta)
	switch {
	case !ok:
		s.text = ""
		s.nothing++
	case d.Offset != len(s.text):
		s.wrong = true
	default:
		s.text += d.Text
	}
}

func (s *shown) runsAt(n Node) {
	s.mu.Lock()
	s.at = n
	s.mu.Unlock()
	select {
	case s.look <- struct{}{}:
	default:
	}
}

func (s *shown) length() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.text)
}

// shows waits until a text is seen, and asks that every piece was the next.
func (s *shown) shows(t *testing.T, want string) {
	t.Helper()
	polltest.Until(t, fmt.Sprintf("%d bytes are seen", len(want)), func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.text == want || s.wrong
	})
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.wrong {
		t.Error("a piece was missing, or came twice")
	}
}

func promiseLate(t *testing.T, join func(*testing.T) Carrier) {
	o := newOwning(t, "one", join(t))
	o.grow("Hel")
	s := watch(t, join(t))
	s.runsAt(o.at)
	s.shows(t, "Hel")
	o.grow("lo\n\"ä\u2028")
	s.shows(t, "Hello\n\"ä\u2028")
}

func promiseMoves(t *testing.T, join func(*testing.T) Carrier) {
	one, two := newOwning(t, "one", join(t)), newOwning(t, "two", join(t))
	one.grow("from one")
	s := watch(t, join(t))
	s.runsAt(one.at)
	s.shows(t, "from one")
	two.grow("and now from two")
	s.runsAt(two.at)
	s.shows(t, "and now from two")
}

func promiseEnds(t *testing.T, join func(*testing.T) Carrier) {
	o := newOwning(t, "one", join(t))
	o.grow("all of it")
	s := watch(t, join(t))
	s.runsAt(o.at)
	s.shows(t, "all of it")
	o.end()
	s.shows(t, "") // it is in the journal now
}

func promiseNotThere(t *testing.T, join func(*testing.T) Carrier) {
	o := newOwning(t, "one", join(t))
	o.away.Store(true)
	s := watch(t, join(t))
	s.runsAt(o.at)
	polltest.Until(t, "asked", func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.nothing > 0
	})
	o.grow("here")
	o.away.Store(false)
	s.runsAt(o.at)
	s.shows(t, "here")
}

func promiseLong(t *testing.T, join func(*testing.T) Carrier) {
	o := newOwning(t, "one", join(t))
	long := strings.Repeat("äöü€😀 ", 200_000) // more than a message may have
	o.grow(long)
	s := watch(t, join(t))
	s.runsAt(o.at)
	s.shows(t, long)
	o.grow("end")
	s.shows(t, long+"end")
}

func promiseStops(t *testing.T, join func(*testing.T) Carrier) {
	one, two := newOwning(t, "one", join(t)), newOwning(t, "two", join(t))
	one.grow("half")
	s := watch(t, join(t))
	s.runsAt(one.at)
	s.shows(t, "half")
	close(one.stopping)
	two.grow("half and the rest")
	s.runsAt(two.at)
	s.shows(t, "half and the rest")
}

// promiseLost: every piece is seen once, although messages stop coming in the middle, and begin again.
func promiseLost(t *testing.T, join func(*testing.T) Carrier) {
	mine := join(t)
	o := newOwning(t, "one", mine)
	s := watch(t, join(t))
	s.runsAt(o.at)
	want := ""
	for i := range 300 {
		piece := fmt.Sprintf("%d ", i)
		want += piece
		o.grow(piece)
		if i == 100 {
			s.shows(t, want)
			if peers, ok := mine.(*natsnotify.Peers); ok {
				if n := o.overHTTP.Load(); n > 0 {
					t.Errorf("asked %d times over HTTP while messages come", n)
				}
				peers.Close() // the owner's connection; whoever watches keeps theirs, and hears nothing
			}
		}
	}
	s.shows(t, want)
}

// A NATS server that is killed in the middle of an answer, and comes back, costs those who watch nothing.
func TestNATSIsKilled(t *testing.T) {
	t.Parallel()
	b := newBroker(t)
	o := newOwning(t, "one", b.join(t))
	s := watch(t, b.join(t))
	s.runsAt(o.at)
	want := ""
	for i := range 600 {
		piece := fmt.Sprintf("%d ", i)
		want += piece
		o.grow(piece)
		switch i {
		case 100:
			s.shows(t, want)
			if n := o.overHTTP.Load(); n > 0 {
				t.Errorf("asked %d times over HTTP while there is NATS", n)
			}
		case 200: // pieces are on their way
			b.stop()
		case 400:
			s.shows(t, want)
			if o.overHTTP.Load() == 0 {
				t.Error("there is no NATS, and nobody asked over HTTP")
			}
			b.start(t)
		}
		if i > 100 && i%10 == 0 { // as a model writes: in some pieces, not all at once
			polltest.Until(t, "it goes on", func() bool { return len(want)-s.length() < 400 })
		}
	}
	s.shows(t, want)
}

// What others put on the server is neither answered nor shown.
func TestStrangersMessages(t *testing.T) {
	t.Parallel()
	now := time.Now()
	good := ask{Thread: thread, Reply: "ABC", At: now.Unix()}
	seal := func(secret, subject string, a ask) []byte {
		data, err := sealAsk(secret, subject, a)
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	if _, ok := openAsk("s", "live.ask.one", seal("s", "live.ask.one", good), now); !ok {
		t.Error("a good one is refused")
	}
	for name, data := range map[string][]byte{
		"nothing": nil, "short": []byte("x"), "another secret": seal("guess", "live.ask.one", good), "for another node": seal("s", "live.ask.two", good),
		"an hour ago":   seal("s", "live.ask.one", ask{Thread: thread, Reply: "ABC", At: now.Add(-time.Hour).Unix()}),
		"no thread":     seal("s", "live.ask.one", ask{Thread: "nonsense", Reply: "ABC", At: now.Unix()}),
		"any subject":   seal("s", "live.ask.one", ask{Thread: thread, Reply: "a.>", At: now.Unix()}),
		"no subject":    seal("s", "live.ask.one", ask{Thread: thread, At: now.Unix()}),
		"in the clear":  []byte(`{"thread":"web:home:one@helper","reply":"ABC"}`),
		"cut somewhere": seal("s", "live.ask.one", good)[:20],
	} {
		if _, ok := openAsk("s", "live.ask.one", data, now); ok {
			t.Error(name)
		}
	}
	if _, ok := openAsk("", "live.ask.one", seal("", "live.ask.one", good), now); ok {
		t.Error("without a secret everybody is answered")
	}
	salt := []byte("0123456789abcdef")
	mine, _ := newNumbered("s", "ABC", salt)
	theirs, _ := newNumbered("guess", "ABC", salt)
	reader, _ := newNumbered("s", "ABC", salt)
	one, two, three := mine.seal([]byte("1")), mine.seal([]byte("2")), mine.seal([]byte("3"))
	if _, ok, _ := reader.open(theirs.seal([]byte("1"))); ok {
		t.Error("a stranger's line is shown")
	}
	if line, ok, gap := reader.open(one); string(line) != "1" || !ok || gap {
		t.Error(string(line), ok, gap)
	}
	if _, ok, _ := reader.open(one); ok {
		t.Error("a line is shown twice")
	}
	if _, ok, gap := reader.open(three); !ok || !gap {
		t.Error("a missing line is not noticed")
	}
	if _, ok, _ := reader.open(two); ok {
		t.Error("a line comes after a later one")
	}
}
