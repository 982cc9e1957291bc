package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"chorus/internal/sim/llmsim"
	"chorus/internal/store/pgtest"
)

// Four nodes must do 3.5 times what one does, with a model that takes half a second for an answer.
const (
	barNodes = 3.5

	slowAnswer = 500 * time.Millisecond
	nodeRuns   = 8 // runs at a time on each node
	nodesTime  = 8 * time.Second
)

// nodeRows measure how many questions a second nodes on one PostgreSQL answer, while there is always one that waits. Nodes, database, model
// and clients share this machine, so a node's own limit of runs is what more of them lift.
func (b *stand) nodeRows(ctx context.Context) ([]row, error) {
	if err := b.prepare(ctx); err != nil {
		return nil, err
	}
	url, closeModel, err := slowModel()
	if err != nil {
		return nil, err
	}
	defer closeModel()
	rate := map[int]float64{}
	for _, nodes := range []int{1, 2, 4} {
		if rate[nodes], err = b.answerRate(ctx, nodes, url); err != nil {
			return nil, fmt.Errorf("%d nodes: %w", nodes, err)
		}
	}
	return []row{
		{what: "answers a second, 2 nodes on one PostgreSQL (beside: 1 node)", floor: rate[1], chorus: rate[2]},
		{what: "answers a second, 4 nodes on one PostgreSQL (beside: 1 node)", floor: rate[1], chorus: rate[4], value: rate[4] / rate[1], bar: barNodes, how: "%.2f×", least: true},
	}, nil
}

// slowModel is the simulator with a pause before each answer.
func slowModel() (url string, end func(), err error) {
	sim := llmsim.New(llmsim.Options{Bench: &llmsim.Bench{Turns: 0, Command: command}})
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, err
	}
	answer := sim.Handler()
	server := &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-time.After(slowAnswer):
			answer.ServeHTTP(w, r)
		case <-r.Context().Done():
		}
	})}
	go func() { _ = server.Serve(listener) }() // ends with Close
	return "http://" + listener.Addr().String(), func() { _ = server.Close() }, nil
}

// answerRate is how many questions a second so many new nodes answer.
func (b *stand) answerRate(ctx context.Context, nodes int, model string) (rate float64, err error) {
	cluster, stop, err := pgtest.Start()
	if err != nil {
		return 0, err
	}
	defer stop()
	var servers []*served
	defer func() {
		for _, s := range servers {
			_, end := s.stop()
			err = errors.Join(err, end)
		}
	}()
	for n := range nodes {
		s, err := b.serve(ctx, fmt.Sprintf("node-%d-of-%d", n+1, nodes), openConfig+fmt.Sprintf("maxRuns: %d\n", nodeRuns),
			"CHORUS_DATABASE_URL="+cluster.URL("postgres"), "ANTHROPIC_BASE_URL="+model, fmt.Sprintf("CHORUS_NODE=node-%d", n+1))
		if err != nil {
			return 0, err
		}
		servers = append(servers, s)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var answered atomic.Int64
	failed := make(chan error, 1)
	var people sync.WaitGroup
	for n := range 2 * nodeRuns * nodes { // one is answered, one waits
		people.Go(func() {
			for ctx.Err() == nil {
				if err := b.ask(ctx, servers[n%nodes]); err != nil && ctx.Err() == nil {
					select {
					case failed <- err:
					default:
					}
					return
				}
				answered.Add(1)
			}
		})
	}
	wait := func(d time.Duration) error {
		select {
		case err := <-failed:
			return err
		case <-time.After(d):
			return nil
		}
	}
	err = wait(nodesTime / 4) // until all are busy
	before, began := answered.Load(), time.Now()
	if err == nil {
		err = wait(nodesTime)
	}
	rate = float64(answered.Load()-before) / time.Since(began).Seconds()
	cancel()
	people.Wait()
	return rate, err
}

// ask asks one question in a conversation of its own and waits for the answer.
func (b *stand) ask(ctx context.Context, s *served) error {
	session, err := s.session(ctx, b.repo())
	if err != nil {
		return err
	}
	if err := s.say(ctx, session); err != nil {
		return err
	}
	got, err := s.follow(ctx, session, func() {})
	if err == nil && got.end != "completed" {
		err = fmt.Errorf("a run ended with %s", got.end)
	}
	return err
}
