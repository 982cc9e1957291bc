package client_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"chorus/internal/client"
	"chorus/internal/feed"
	"chorus/internal/operation"
	"chorus/internal/operations"
)

// cutter stands between a client and its server, and cuts streams after some lines.
type cutter struct {
	target string
	after  atomic.Int64 // lines that the next stream may have; 0: all
	lines  atomic.Int64 // of the last stream
	wire   http.Transport
}

func (c *cutter) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	out := r.Clone(r.Context())
	out.URL.Scheme, out.URL.Host, out.RequestURI = "http", strings.TrimPrefix(c.target, "http://"), ""
	out.Host = out.URL.Host
	res, err := c.wire.RoundTrip(out)
	if err != nil {
		w.WriteHeader(http.StatusBadGateway)
		return
	}
	defer res.Body.Close()
	for name, values := range res.Header {
		w.Header()[name] = values
	}
	w.WriteHeader(res.StatusCode)
	if !strings.HasSuffix(r.URL.Path, "/stream") {
		_, _ = io.Copy(w, res.Body)
		return
	}
	most := c.after.Swap(0)
	in := bufio.NewReader(res.Body)
	for n := int64(1); ; n++ {
		line, err := in.ReadString('\n')
		if err != nil {
			return
		}
		_, _ = io.WriteString(w, line)
		_ = http.NewResponseController(w).Flush()
		c.lines.Store(n)
		if n == most {
			panic(http.ErrAbortHandler)
		}
	}
}

func watchWhole(t *testing.T, c operation.Executor, id string) []string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var out []string
	for item, err := range operations.Watch.Follow(ctx, c, operation.Caller{}, operations.WatchRequest{ID: id, After: 0}) {
		if err != nil {
			t.Fatal(err)
		}
		if item.Header().Seq > 0 {
			data, err := feed.Encode(item)
			if err != nil {
				t.Fatal(err)
			}
			out = append(out, string(data))
		}
		if item.Header().Type.Terminal() {
			return out
		}
	}
	t.Fatal("the watch ended")
	return nil
}

// TestCutAnywhere cuts the stream of a run after each of its lines: what is seen is
// the same every time.
func TestCutAnywhere(t *testing.T) {
	t.Parallel()
	h := openServer(t)
	token, _ := h.token("ada", operation.Chat)
	between := &cutter{target: h.server.URL}
	front := httptest.NewServer(between)
	t.Cleanup(func() { front.Close(); between.wire.CloseIdleConnections() })
	c := h.client(front.URL, token)
	made, err := operations.CreateSession.Call(t.Context(), c, operation.Caller{}, operations.NewSession{Model: "demo/script", Permissions: "standard"})
	if err != nil {
		t.Fatal(err)
	}
	_, err = operations.Say.Call(t.Context(), c, operation.Caller{}, operations.Message{ID: made.SessionID, Message: "!say looking\n!call list_files {}\n!call list_files {\"path\":\".\"}\n!end\n!say there: {{last}}"})
	if err != nil {
		t.Fatal(err)
	}
	want := watchWhole(t, c, made.SessionID)
	if again := watchWhole(t, c, made.SessionID); !slices.Equal(again, want) {
		t.Fatalf("a second look saw\n%s\nafter\n%s", strings.Join(again, "\n"), strings.Join(want, "\n"))
	}
	total := between.lines.Load()
	if total < int64(len(want)) {
		t.Fatalf("%d lines for %d objects", total, len(want))
	}
	for at := int64(1); at <= total; at++ {
		between.after.Store(at)
		if got := watchWhole(t, c, made.SessionID); !slices.Equal(got, want) {
			t.Fatalf("cut after line %d:\n%s\nexpected\n%s", at, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}
}

// TestGivesUp: a server that is gone is waited for, but not for ever. The time lasts for a second try
// also where the first one takes long.
func TestGivesUp(t *testing.T) {
	t.Parallel()
	asked := atomic.Int64{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		w.WriteHeader(http.StatusServiceUnavailable)
	}))
	defer server.Close()
	c, err := client.New(client.Options{URL: server.URL, FirstWait: time.Millisecond, GiveUpAfter: 2 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	var last error
	for _, err := range operations.Watch.Follow(t.Context(), c, operation.Caller{}, operations.WatchRequest{ID: "x", After: 0}) {
		last = err
	}
	if operation.KindOf(last) != operation.Unavailable || asked.Load() < 2 {
		t.Errorf("%v after %d tries", last, asked.Load())
	}
}

// TestAway: somebody who waits for a server is told once that it is away, and that it is back. A cut that is mended at once is no news.
func TestAway(t *testing.T) {
	t.Parallel()
	asked := atomic.Int64{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		n := asked.Add(1)
		if n == 3 || n == 4 {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		if n == 5 {
			fmt.Fprintf(w, "id: 1\ndata: {\"type\":\"completed\",\"sessionId\":\"x\",\"seq\":1,\"at\":\"2026-01-01T00:00:00Z\"}\n\n")
		}
	}))
	defer server.Close()
	var told []bool
	c, err := client.New(client.Options{URL: server.URL, FirstWait: time.Millisecond, Away: func(away bool) { told = append(told, away) }})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for _, err := range operations.Watch.Follow(t.Context(), c, operation.Caller{}, operations.WatchRequest{ID: "x", After: 0}) {
		if err != nil {
			t.Fatal(err)
		}
		break
	}
	if !slices.Equal(told, []bool{true, false}) {
		t.Errorf("told %v after %d streams", told, asked.Load())
	}
}

// TestSilence: a stream that says nothing at all is cut and taken up again, as is one whose words come too late.
func TestSilence(t *testing.T) {
	t.Parallel()
	streams := atomic.Int64{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		w.WriteHeader(http.StatusOK)
		if streams.Add(1) > 1 {
			fmt.Fprintf(w, "id: 1\ndata: {\"type\":\"completed\",\"sessionId\":\"x\",\"seq\":1,\"at\":\"2026-01-01T00:00:00Z\"}\n\n")
		}
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	}))
	defer server.Close()
	c, err := client.New(client.Options{URL: server.URL, FirstWait: time.Millisecond, Silence: 30 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for item, err := range operations.Watch.Follow(t.Context(), c, operation.Caller{}, operations.WatchRequest{ID: "x", After: 0}) {
		if err != nil || item.Header().Type != feed.TypeCompleted {
			t.Fatalf("%v, %v", item, err)
		}
		break
	}
	if n := streams.Load(); n < 2 {
		t.Errorf("%d streams", n)
	}
}

// TestEndless: a line without an end is not kept.
func TestEndless(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		chunk := []byte(strings.Repeat("x", 1<<20))
		for range 40 {
			if _, err := w.Write(chunk); err != nil {
				return
			}
		}
	}))
	defer server.Close()
	c, err := client.New(client.Options{URL: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for _, err := range operations.Watch.Follow(t.Context(), c, operation.Caller{}, operations.WatchRequest{ID: "x", After: 0}) {
		if operation.KindOf(err) != operation.TooLarge {
			t.Error(err)
		}
	}
}

func TestCancelledCalls(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		cancel()
		<-r.Context().Done()
	}))
	defer server.Close()
	c, err := client.New(client.Options{URL: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := operations.ListModels.Call(ctx, c, operation.Caller{}, operation.None{}); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

func TestParseURL(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"http://127.0.0.1:8420": "http://127.0.0.1:8420", "127.0.0.1:8420": "http://127.0.0.1:8420", "localhost:1/": "http://localhost:1",
		"chorus.example.org": "https://chorus.example.org", "https://x/base/": "https://x/base", "[::1]:9": "http://[::1]:9",
		"": "", "ftp://x": "", "http://": "", "http://u:p@x": "", "http://x?a=b": "",
	} {
		got, err := client.ParseURL(text)
		if want == "" {
			if err == nil {
				t.Errorf("%q became %s", text, got)
			}
			continue
		}
		if err != nil || got.String() != want {
			t.Errorf("%q became %v, %v", text, got, err)
		}
	}
}
