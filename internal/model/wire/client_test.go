package wire

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
)

// Conversations that wait for each other at every step use the same connections again.
func TestConnectionsAreKept(t *testing.T) {
	t.Parallel()
	const many, steps = 20, 3
	var mu sync.Mutex
	conns := map[string]bool{}
	var meet sync.WaitGroup
	srv := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		mu.Lock()
		conns[r.RemoteAddr] = true
		mu.Unlock()
		meet.Done()
		meet.Wait() // all are under way at once
	}))
	defer srv.Close()
	client := Client()
	defer client.CloseIdleConnections()
	for range steps {
		meet.Add(many)
		var all sync.WaitGroup
		for range many {
			all.Go(func() {
				resp, err := client.Get(srv.URL)
				if err != nil {
					t.Error(err)
					meet.Done()
					return
				}
				_, _ = io.Copy(io.Discard, resp.Body)
				_ = resp.Body.Close()
			})
		}
		all.Wait()
	}
	if len(conns) > many+many/2 { // the last to be put back may be missed by the first of the next step
		t.Errorf("%d connections for %d conversations", len(conns), many)
	}
}

// A body of any size arrives whole, and sending it makes no buffer of its size.
func TestBodiesAreSentThroughABorrowedBuffer(t *testing.T) {
	t.Parallel()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n, err := io.Copy(io.Discard, r.Body)
		if err != nil || n != r.ContentLength {
			http.Error(w, "cut", http.StatusBadRequest)
		}
	}))
	defer srv.Close()
	client := Client()
	defer client.CloseIdleConnections()
	for _, size := range []int{0, 1, 4095, 4096, 30_000, 32 << 10, 1 << 20} {
		resp, err := client.Post(srv.URL, "text/plain", bytes.NewReader(make([]byte, size)))
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, resp.Body)
		_ = resp.Body.Close()
		if resp.StatusCode != http.StatusOK {
			t.Errorf("%d bytes: %s", size, resp.Status)
		}
	}
	c, err := client.Transport.(*http.Transport).DialContext(t.Context(), "tcp", srv.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, ok := c.(io.ReaderFrom); !ok {
		t.Error("the library would copy through a buffer of its own")
	}
}
