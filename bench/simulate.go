package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strconv"
	"sync"
	"time"

	"chorus/internal/sim/llmsim"
)

// command is what the model calls: nothing to do, and never the same call twice, at which
// a careful agent would stop.
const command = "true {n}"

// clock is the simulator, and notes when each request came and over how many connections.
type clock struct {
	next http.Handler
	sim  *llmsim.Server

	mu     sync.Mutex
	times  []int64 // unix nanoseconds, one a request
	conns  map[string]bool
	await  int           // so many requests are waited for
	enough chan struct{} // closed when they have come
}

func newClock() *clock {
	sim := llmsim.New(llmsim.Options{Bench: &llmsim.Bench{Turns: 1, Command: command}})
	return &clock{next: sim.Handler(), sim: sim, conns: map[string]bool{}}
}

// seen is what the simulator noted about one run.
type seen struct {
	Times       []int64 `json:"times"`
	Connections int     `json:"connections"`
}

// ServeHTTP answers models' clients, and the bench at /bench: POST with turns before a
// run, GET after it.
func (c *clock) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case r.URL.Path == "/v1/messages":
		now := time.Now().UnixNano()
		c.mu.Lock()
		c.times = append(c.times, now)
		c.conns[r.RemoteAddr] = true
		if len(c.times) == c.await {
			close(c.enough)
		}
		c.mu.Unlock()
		c.next.ServeHTTP(w, r)
	case r.URL.Path == "/bench" && r.Method == http.MethodPost:
		turns, err := strconv.Atoi(r.URL.Query().Get("turns"))
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		c.sim.Load(llmsim.Script{Bench: &llmsim.Bench{Turns: turns, Command: command}})
		c.mu.Lock()
		c.times, c.conns = make([]int64, 0, turns+1), map[string]bool{}
		c.await, c.enough = 0, nil
		c.mu.Unlock()
	case r.URL.Path == "/bench" && r.URL.Query().Has("await"):
		c.wait(r)
	case r.URL.Path == "/bench":
		c.mu.Lock()
		defer c.mu.Unlock()
		_ = json.NewEncoder(w).Encode(seen{c.times, len(c.conns)}) // fails only if the bench has gone
	default:
		c.next.ServeHTTP(w, r)
	}
}

// wait returns when so many requests have come since the run was announced.
func (c *clock) wait(r *http.Request) {
	n, err := strconv.Atoi(r.URL.Query().Get("await"))
	c.mu.Lock()
	if err != nil || len(c.times) >= n {
		c.mu.Unlock()
		return
	}
	enough := make(chan struct{})
	c.await, c.enough = n, enough
	c.mu.Unlock()
	select {
	case <-enough:
	case <-r.Context().Done():
	}
}

// simulate is the simulator's process: it prints its address and serves until its
// input ends, which it does with the bench itself.
func simulate() error {
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt)
	defer cancel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	srv := &http.Server{Handler: newClock(), ReadHeaderTimeout: time.Minute}
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		cancel()
	}()
	context.AfterFunc(ctx, func() { _ = srv.Close() })
	fmt.Println("http://" + l.Addr().String())
	if err := srv.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// expect tells the simulator how many tool turns the next run has.
func expect(ctx context.Context, base string, turns int) error {
	_, err := control(ctx, http.MethodPost, fmt.Sprintf("%s/bench?turns=%d", base, turns))
	return err
}

// sightings asks the simulator about the run since the last expect.
func sightings(ctx context.Context, base string) (seen, error) {
	data, err := control(ctx, http.MethodGet, base+"/bench")
	if err != nil {
		return seen{}, err
	}
	var s seen
	return s, json.Unmarshal(data, &s)
}

func control(ctx context.Context, method, address string) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, method, address, nil)
	if err != nil {
		return nil, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("simulator: %s: %s", resp.Status, data)
	}
	return data, err
}
