package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"chorus/internal/peernotify"
	"chorus/internal/peernotify/natsnotify"
	"chorus/internal/peernotify/pgnotify"
	"chorus/internal/store/pgtest"
)

const (
	// notifyRate is how many notifications a second are sent, for notifySeconds.
	notifyRate    = 1000
	notifySeconds = 5
	// notifyBar is what half of them may take at most, through PostgreSQL, which gathers for 5 ms.
	notifyBar = 10.0 // ms
	// notifyTimeout bounds every wait.
	notifyTimeout = 30 * time.Second
)

// notifyRows measure the time from a notification to its receiver, one after the other in the same process. Where there
// is no PostgreSQL to start, its rows are missing.
func notifyRows(ctx context.Context, dir string) ([]row, error) {
	quiet := slog.New(slog.DiscardHandler)
	sockets := filepath.Join(dir, "peers")
	rows, err := notifyBy(ctx, "datagrams", 0, func() (peernotify.Peers, error) { return peernotify.In(sockets), nil })
	if err != nil {
		return nil, err
	}
	if cluster, end, err := pgtest.Start(); err == nil {
		defer end()
		more, err := notifyBy(ctx, "PostgreSQL", notifyBar, func() (peernotify.Peers, error) { return pgnotify.New(cluster.URL("postgres"), quiet) })
		if err != nil {
			return nil, err
		}
		rows = append(rows, more...)
	}
	nats, err := server.NewServer(&server.Options{Host: "127.0.0.1", Port: server.RANDOM_PORT, NoLog: true, NoSigs: true})
	if err != nil {
		return nil, err
	}
	go nats.Start()
	defer nats.Shutdown()
	if !nats.ReadyForConnections(notifyTimeout) {
		return nil, errors.New("the NATS server does not start")
	}
	more, err := notifyBy(ctx, "NATS", 0, func() (peernotify.Peers, error) {
		return natsnotify.New(nats.ClientURL(), "chorus.bench.notify", quiet)
	})
	return append(rows, more...), err
}

func notifyBy(ctx context.Context, name string, bar float64, open func() (peernotify.Peers, error)) ([]row, error) {
	ctx, cancel := context.WithTimeout(ctx, notifySeconds*time.Second+notifyTimeout)
	defer cancel()
	from, err := open()
	if err != nil {
		return nil, err
	}
	defer from.Close()
	to, err := open()
	if err != nil {
		return nil, err
	}
	defer to.Close()
	sub, err := to.Subscribe()
	if err != nil {
		return nil, err
	}
	defer sub.Close()
	if err := reach(ctx, from, sub); err != nil {
		return nil, fmt.Errorf("notifications by %s: %w", name, err)
	}
	took, lost := storm(ctx, from, sub)
	half := quantile(took, 0.5)
	r := row{what: "from a notification to its receiver, by " + name + ", " + strconv.Itoa(notifyRate) + " a second", unit: "ms", chorus: half}
	if bar > 0 {
		r.value, r.bar, r.how = half, bar, "%.1f ms"
	}
	return []row{r, {what: "… 99 of 100", unit: "ms", chorus: quantile(took, 0.99)}, {what: "… lost, which the next regular look makes up for", unit: "", chorus: float64(lost)}}, nil
}

// reach waits until notifications arrive.
func reach(ctx context.Context, from peernotify.Peers, sub *peernotify.Subscription) error {
	for {
		from.Notify("hello")
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(100 * time.Millisecond):
		}
		if topics, _ := sub.Take(); len(topics) > 0 {
			return nil
		}
	}
}

// storm sends notifications evenly and says how long each took, in milliseconds, and how many never came.
func storm(ctx context.Context, from peernotify.Peers, sub *peernotify.Subscription) (took []float64, lost int) {
	const n = notifyRate * notifySeconds
	sent := make([]time.Time, n)
	began := make(chan time.Time, n)
	go func() {
		tick := time.NewTicker(time.Second / notifyRate)
		defer tick.Stop()
		for i := range n {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			began <- time.Now()
			from.Notify(peernotify.Topic("bench-" + strconv.Itoa(i)))
		}
		close(began)
	}()
	known, last := 0, time.NewTimer(notifySeconds*time.Second+2*time.Second)
	defer last.Stop()
	for len(took) < n {
		select {
		case <-last.C:
			return took, n - len(took)
		case <-sub.Woken():
		}
		now := time.Now()
		topics, _ := sub.Take()
		for _, topic := range topics {
			number, ok := strings.CutPrefix(string(topic), "bench-")
			i, err := strconv.Atoi(number)
			if !ok || err != nil || i >= n {
				continue
			}
			for known <= i { // it was sent, so its time is there or about to be
				sent[known] = <-began
				known++
			}
			took = append(took, ms(int64(now.Sub(sent[i]))))
		}
	}
	return took, 0
}
