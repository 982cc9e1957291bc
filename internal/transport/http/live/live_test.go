package live

import (
	"bufio"
	"context"
	"errors"
	"io"
	"iter"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"chorus/internal/chat"
	"chorus/internal/feed"
)

// uncut is the stream of a client that stays connected.
func uncut(t *testing.T, url string) []string {
	t.Helper()
	var r reader
	c := connect(t, url, "")
	defer c.close()
	for !r.ended {
		if err := r.take(c.object(t)); err != nil {
			t.Fatal(err)
		}
	}
	return r.whole
}

func TestCutAtEveryEvent(t *testing.T) {
	t.Parallel()
	t.Run("wide", func(t *testing.T) { t.Parallel(); cutAtEveryEvent(t, New(Options{})) })
	t.Run("narrow", func(t *testing.T) { t.Parallel(); cutAtEveryEvent(t, New(Options{QueueBytes: 1})) })
}

func cutAtEveryEvent(t *testing.T, h *Hub) {
	script := run()
	server := httptest.NewServer(h.serveFake(newFakeSource(script...)))
	t.Cleanup(server.Close)
	want := uncut(t, server.URL)
	for cut := range script {
		// The run continues while the reader is disconnected: one step for each object that was read.
		source := newFakeSource(script[:1]...)
		server := httptest.NewServer(h.serveFake(source))
		var r reader
		published, read := 1, 0
		c := connect(t, server.URL, "")
		for !r.ended {
			if err := r.take(c.object(t)); err != nil {
				t.Fatalf("cut at %d: %v", cut, err)
			}
			if read++; read == cut+1 {
				c.close()
				r.part, r.preview, r.attempt = nil, "", ""
				if published < len(script) { // something happens meanwhile
					source.publish(script[published])
					published++
				}
				c = connect(t, server.URL, r.lastID)
			}
			if published < len(script) {
				source.publish(script[published])
				published++
			}
		}
		c.close()
		server.Close()
		if !slices.Equal(r.whole, want) {
			t.Fatalf("cut at %d:\n%s\nwant\n%s", cut, strings.Join(r.whole, "\n"), strings.Join(want, "\n"))
		}
	}
}

// A queue with room for one object is full all the time; the reader still gets everything.
func TestSlowReaderSeesEverything(t *testing.T) {
	t.Parallel()
	source := newFakeSource(run()...)
	wide := httptest.NewServer(New(Options{}).serveFake(source))
	narrow := httptest.NewServer(New(Options{QueueBytes: 1}).serveFake(source))
	t.Cleanup(wide.Close)
	t.Cleanup(narrow.Close)
	want := uncut(t, wide.URL)
	if got := uncut(t, narrow.URL); !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if looks := source.watchCount(); looks < 5 {
		t.Errorf("the source was watched only %d times", looks)
	}
}

// flood never ends and never waits: only a full queue stops it.
func flood(given *int) Source {
	return func(ctx context.Context, after int64) iter.Seq2[feed.Item, error] {
		return func(yield func(feed.Item, error) bool) {
			for ctx.Err() == nil {
				after++
				*given++
				item := feed.UserMessage{Head: feed.Head{Type: feed.TypeUserMessage, Seq: after}, Text: strings.Repeat("x", 1000)}
				if !yield(item, nil) {
					return
				}
			}
		}
	}
}

func TestSlowReaderUsesBoundedMemory(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		given := 0
		h := New(Options{QueueBytes: 10_000})
		ctx, cancel := context.WithCancel(t.Context())
		stuck := &stuckWriter{header: http.Header{}, until: make(chan struct{})}
		done := make(chan error)
		go func() {
			done <- h.Serve(stuck, httptest.NewRequestWithContext(ctx, "GET", "/", nil), 0, flood(&given))
		}()
		synctest.Wait()
		if given < 5 || given > 40 {
			t.Errorf("%d objects of a kilobyte are queued for a reader with room for ten", given)
		}
		cancel()
		close(stuck.until)
		<-done
	})
}

// stuckWriter accepts the first write and blocks in the second.
type stuckWriter struct {
	header http.Header
	until  chan struct{}
	writes int
}

func (w *stuckWriter) Header() http.Header { return w.header }
func (w *stuckWriter) WriteHeader(int)     {}
func (w *stuckWriter) Flush()              {}
func (w *stuckWriter) Write(data []byte) (int, error) {
	if w.writes++; w.writes > 1 {
		<-w.until
		return 0, errors.New("gone")
	}
	return len(data), nil
}

func TestHeartbeat(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, end := pipe(t, New(Options{}), newFakeSource())
		defer end()
		begin := time.Now()
		for _, want := range []string{"hello", "still here", "still here"} {
			f, err := c.next()
			if err != nil || f.comment != want {
				t.Fatalf("got %+v, %v; want the comment %q", f, err, want)
			}
		}
		if took := time.Since(begin); took != 30*time.Second {
			t.Errorf("two heartbeats came after %s", took)
		}
	})
}

func TestRevokedReaderIsDisconnected(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		c, end := pipe(t, New(Options{Recheck: func(context.Context) error {
			if time.Since(begin) > time.Minute {
				return errors.New("the token was revoked")
			}
			return nil
		}}), newFakeSource())
		defer end()
		for {
			if _, err := c.next(); err != nil {
				break
			}
		}
		if took := time.Since(begin); took < time.Minute || took > 2*time.Minute {
			t.Errorf("cut off after %s", took)
		}
	})
}

// pipe is a stream without a network, for tests with a fake clock.
func pipe(t *testing.T, h *Hub, source *fakeSource) (*client, func()) {
	t.Helper()
	read, write := net.Pipe()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		done <- h.Serve(pipeWriter{http.Header{}, write}, httptest.NewRequestWithContext(ctx, "GET", "/", nil), 0, source.watch)
		write.Close()
	}()
	c := &client{read, bufio.NewReader(read)}
	return c, func() {
		cancel()
		read.Close()
		<-done
	}
}

type pipeWriter struct {
	header http.Header
	net.Conn
}

func (w pipeWriter) Header() http.Header { return w.header }
func (w pipeWriter) WriteHeader(int)     {}
func (w pipeWriter) Flush()              {}

// A reader that accepts nothing is disconnected.
func TestWriteTimeout(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := New(Options{WriteTimeout: time.Minute})
		_, end := pipe(t, h, newFakeSource())
		defer end()
		begin := time.Now()
		for h.Readers() != 0 || time.Since(begin) == 0 {
			time.Sleep(time.Second) // of the bubble's clock
			if time.Since(begin) > time.Hour {
				t.Fatal("it is still connected")
			}
		}
		if took := time.Since(begin); took < time.Minute || took > 2*time.Minute {
			t.Errorf("given up after %s", took)
		}
	})
}

func TestDrainSaysGoodbye(t *testing.T) {
	t.Parallel()
	h := New(Options{})
	source := newFakeSource(run()...)
	server := httptest.NewServer(h.serveFake(source))
	t.Cleanup(server.Close)
	var clients []*client
	for range 5 {
		c := connect(t, server.URL, "")
		c.object(t)
		clients = append(clients, c)
	}
	if n := h.Readers(); n != 5 {
		t.Errorf("%d readers", n)
	}
	for range 2 {
		if err := h.Drain(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range clients {
		var last frame
		for {
			f, err := c.next()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			last = f
		}
		if last.comment != "bye" || last.retry == 0 {
			t.Errorf("the last word was %+v", last)
		}
		c.close()
	}
	res, err := http.Get(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	if res.StatusCode != http.StatusServiceUnavailable {
		t.Errorf("a new reader is answered %s", res.Status)
	}
	http.DefaultTransport.(*http.Transport).CloseIdleConnections()
}

func TestSourceErrorIsAComment(t *testing.T) {
	t.Parallel()
	h := New(Options{})
	w := httptest.NewRecorder()
	err := h.Serve(w, httptest.NewRequest("GET", "/", nil), 0, func(context.Context, int64) iter.Seq2[feed.Item, error] {
		return func(yield func(feed.Item, error) bool) {
			_ = yield(nil, errors.New("the disk\nis full")) && yield(feed.Live(thread, chat.Progress{Text: "on"}), nil)
		}
	})
	if err != nil || !strings.Contains(w.Body.String(), "\n: trouble: the disk is full\n") || !strings.Contains(w.Body.String(), "event: trace") {
		t.Errorf("%v: %s", err, w.Body)
	}
}

func TestHeadEndsAtOnce(t *testing.T) {
	t.Parallel()
	w := httptest.NewRecorder()
	if err := New(Options{}).Serve(w, httptest.NewRequest("HEAD", "/", nil), 0, newFakeSource().watch); err != nil || w.Body.Len() > 0 {
		t.Errorf("%v, %q", err, w.Body)
	}
}
