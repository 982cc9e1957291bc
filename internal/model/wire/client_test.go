package wire

import (
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
