package peerlive

import (
	"context"
	"iter"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"chorus/internal/chat"
	"chorus/internal/polltest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const thread = chat.ThreadID("web:home:one@helper")

// node is one that runs threads and answers others.
type node struct {
	*httptest.Server
	mu     sync.Mutex
	runs   bool
	soon   bool // it runs the thread from the next question on
	pieces chan chat.Live
	asked  int
}

func newNode(t *testing.T) *node {
	t.Helper()
	n := &node{runs: true, pieces: make(chan chat.Live)}
	s := &Server{Secret: "between nodes", Source: func(ctx context.Context, id chat.ThreadID) (iter.Seq[chat.Live], bool) {
		n.mu.Lock()
		defer n.mu.Unlock()
		n.asked++
		runs := n.runs
		n.runs = runs || n.soon
		return func(yield func(chat.Live) bool) {
			for {
				select {
				case <-ctx.Done():
					return
				case p, ok := <-n.pieces:
					if !ok || !yield(p) {
						return
					}
				}
			}
		}, runs && id == thread
	}}
	n.Server = httptest.NewServer(s)
	t.Cleanup(n.Close)
	return n
}

func (n *node) times() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.asked
}

// watcher follows a thread whose owner is set by hand.
type watcher struct {
	look chan struct{}
	came chan chat.Live

	mu sync.Mutex
	at string
}

func (w *watcher) runsAt(address string) {
	w.mu.Lock()
	w.at = address
	w.mu.Unlock()
	select {
	case w.look <- struct{}{}:
	default:
	}
}

func follow(t *testing.T, secret string) *watcher {
	t.Helper()
	w := &watcher{look: make(chan struct{}, 1), came: make(chan chat.Live, 100)}
	c := &Client{Secret: secret, HTTP: NewHTTP(), Log: slog.New(slog.DiscardHandler), OwnerOf: func(context.Context, chat.ThreadID) (Node, bool) {
		w.mu.Lock()
		defer w.mu.Unlock()
		return Node{Address: w.at}, w.at != ""
	}}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		c.Follow(ctx, thread, w.look, func(p chat.Live) { w.came <- p })
	}()
	t.Cleanup(func() {
		cancel()
		<-ended
		c.HTTP.CloseIdleConnections()
	})
	return w
}

// gets waits until a piece of the node has come. It is sent again and again: one that goes into a stream that has just
// been lost is lost with it.
func (w *watcher) gets(t *testing.T, n *node, want chat.Live) {
	t.Helper()
	late, again := time.After(time.Minute), time.NewTicker(10*time.Millisecond)
	defer again.Stop()
	for {
		select {
		case <-again.C:
			select {
			case n.pieces <- want:
			default:
			}
		case got := <-w.came:
			if got == want {
				return
			}
		case <-late:
			t.Fatal("nothing came")
		}
	}
}

var hello = chat.Delta{Run: "r", Step: 1, What: chat.DeltaText, Text: "Hello\n\"ä\u2028"}

// Pieces come from the node that runs the thread, and from the next when it moves there.
func TestFollow(t *testing.T) {
	t.Parallel()
	one, two := newNode(t), newNode(t)
	w := follow(t, "between nodes")
	w.runsAt(one.URL)
	w.gets(t, one, hello)
	w.gets(t, one, chat.Progress{Run: "r", Call: "c", Tool: "bash", Text: "50 %"})
	w.runsAt(two.URL)
	w.gets(t, two, chat.Progress{Run: "r", Text: "on another node"})
	close(two.pieces) // the run ends
	w.runsAt("")
	w.runsAt(one.URL)
	w.gets(t, one, chat.Progress{Run: "r2", Text: "and back"})
}

// A node that breaks off, or that is away for a while, is tried again.
func TestComesBack(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	w := follow(t, "between nodes")
	w.runsAt(n.URL)
	w.gets(t, n, hello)
	n.CloseClientConnections()
	w.gets(t, n, chat.Progress{Run: "r", Text: "again"})
	away := httptest.NewServer(http.NotFoundHandler())
	address := away.URL
	away.Close()
	w.runsAt(address)
	w.runsAt(n.URL)
	w.gets(t, n, chat.Progress{Run: "r", Text: "once more"})
}

// A node that does not run the thread is asked again only when something happens in it.
func TestNotThere(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.runs = false
	w := follow(t, "between nodes")
	w.runsAt(n.URL)
	polltest.Until(t, "asked", func() bool { return n.times() > 0 })
	n.mu.Lock()
	n.runs = true
	n.mu.Unlock()
	w.runsAt(n.URL)
	w.gets(t, n, hello)
	if n.times() > 4 {
		t.Errorf("asked %d times", n.times())
	}
}

// What happens while the node says that it does not run the thread is not missed.
func TestBeginsWhileAsked(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.runs, n.soon = false, true
	w := follow(t, "between nodes")
	noticed := func() bool { return len(w.look) == 0 }
	n.mu.Lock() // it does not answer yet
	w.runsAt(n.URL)
	polltest.Until(t, "the node is asked", noticed)
	w.runsAt(n.URL)
	polltest.Until(t, "the beginning is noticed", noticed)
	n.mu.Unlock()
	w.gets(t, n, hello)
}

// Nobody but a node on the same database is answered.
func TestStrangers(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	now := time.Now()
	for name, header := range map[string]string{
		"nothing": "", "another secret": sign("guess", thread, now), "no secret": sign("", thread, now), "another thread": sign("between nodes", "web:home:two", now),
		"an hour ago": sign("between nodes", thread, now.Add(-time.Hour)), "in an hour": sign("between nodes", thread, now.Add(time.Hour)),
		"cut": strings.TrimSuffix(sign("between nodes", thread, now), "a")[:40], "no number": scheme + "x." + code("between nodes", "x", thread), "bearer": "Bearer between nodes",
	} {
		if status := request(t, n.URL+Path+"?thread="+string(thread), header); status != http.StatusUnauthorized {
			t.Errorf("%s: %d", name, status)
		}
	}
	if status := request(t, n.URL+Path+"?thread=nonsense", ""); status != http.StatusBadRequest {
		t.Error(status)
	}
	if n.times() > 0 {
		t.Error("a stranger was given a source")
	}
	open := httptest.NewServer(&Server{}) // without a secret nobody is let in
	defer open.Close()
	if status := request(t, open.URL+Path+"?thread="+string(thread), sign("", thread, now)); status != http.StatusUnauthorized {
		t.Error(status)
	}
}

func request(t *testing.T, url, header string) int {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", header)
	client := NewHTTP()
	defer client.CloseIdleConnections()
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	return resp.StatusCode
}

// A server that stops ends its streams, and says nothing of the end of a run.
func TestStopping(t *testing.T) {
	t.Parallel()
	stopping := make(chan struct{})
	s := &Server{Secret: "s", Stopping: stopping, Source: func(ctx context.Context, _ chat.ThreadID) (iter.Seq[chat.Live], bool) {
		return func(yield func(chat.Live) bool) {
			yield(hello)
			<-ctx.Done()
		}, true
	}}
	server := httptest.NewServer(s)
	defer server.Close()
	c := &Client{Secret: "s", HTTP: NewHTTP(), Log: slog.New(slog.DiscardHandler)}
	defer c.HTTP.CloseIdleConnections()
	came, err := c.overHTTP(t.Context(), server.URL, thread, func(chat.Live) { close(stopping) })
	if !came || err == nil { // it is no end of the run
		t.Error(came, err)
	}
}

// A node that does not keep up is cut off; nobody waits for it.
func TestSlow(t *testing.T) {
	t.Parallel()
	cut := make(chan struct{})
	s := &Server{Secret: "s", Source: func(ctx context.Context, _ chat.ThreadID) (iter.Seq[chat.Live], bool) {
		return func(yield func(chat.Live) bool) {
			defer close(cut)
			big := chat.Delta{Run: "r", What: chat.DeltaText, Text: strings.Repeat("x", 1<<20)}
			for range 10 * maxQueue { // more than any buffer between the two takes
				if !yield(big) {
					return
				}
			}
		}, true
	}}
	server := httptest.NewServer(s)
	defer server.Close()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+Path+"?thread="+string(thread), nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", sign("s", thread, time.Now()))
	client := NewHTTP()
	defer client.CloseIdleConnections()
	resp, err := client.Do(req) // and never reads
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	select {
	case <-cut:
	case <-time.After(time.Minute):
		t.Fatal("the source waits for a reader")
	}
}
