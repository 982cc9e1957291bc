//go:build chaos

package main

import (
	"context"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"chorus/internal/app"
	"chorus/internal/chat"
	"chorus/internal/engine"
	"chorus/internal/journal"
)

// injectFaults lets CHORUS_KILL=before:N or after:N end the process, as a power cut would,
// right before or after its Nth write. CHORUS_KILL=count prints the number of writes instead.
// CHORUS_CLOCK names a file with the error of the clock.
func injectFaults(o *app.Options) {
	if file := os.Getenv("CHORUS_CLOCK"); file != "" {
		o.Now = func() time.Time {
			text, _ := os.ReadFile(file) // without a file the clock is right
			by, _ := time.ParseDuration(strings.TrimSpace(string(text)))
			return time.Now().Add(by)
		}
	}
	when, n, _ := strings.Cut(os.Getenv("CHORUS_KILL"), ":")
	at, _ := strconv.ParseInt(n, 10, 64)
	if when == "" {
		return
	}
	o.Journal = func(j engine.Journal) engine.Journal { return &killer{Journal: j, when: when, at: at} }
}

type killer struct {
	engine.Journal
	when   string
	at     int64
	writes atomic.Int64
}

func (k *killer) around(write func()) {
	n := k.writes.Add(1)
	if k.when == "before" && n == k.at {
		die()
	}
	write()
	if k.when == "after" && n == k.at {
		die()
	}
	if k.when == "count" {
		_ = os.WriteFile(os.Getenv("CHORUS_KILL_COUNT"), []byte(strconv.FormatInt(n, 10)), 0o600)
	}
}

// die ends the process at once: no deferred calls, no flush.
func die() {
	_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	select {}
}

func (k *killer) Commit(ctx context.Context, c journal.Commit) (out journal.Committed, err error) {
	k.around(func() { out, err = k.Journal.Commit(ctx, c) })
	return out, err
}

func (k *killer) Arrive(ctx context.Context, a journal.Arrival) (out journal.Arrived, err error) {
	k.around(func() { out, err = k.Journal.Arrive(ctx, a) })
	return out, err
}

func (k *killer) Take(ctx context.Context, thread chat.ThreadID) (out journal.Thread, err error) {
	k.around(func() { out, err = k.Journal.Take(ctx, thread) })
	return out, err
}

func (k *killer) SaveSnapshot(ctx context.Context, s journal.Snapshot) (err error) {
	k.around(func() { err = k.Journal.SaveSnapshot(ctx, s) })
	return err
}
