package main

import (
	"context"
	"fmt"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"chorus/internal/approval"
	"chorus/internal/chat"
	"chorus/internal/journal"
	"chorus/internal/ledger"
	"chorus/internal/store"
	"chorus/internal/store/pgtest"
)

const (
	// commitTime is how long each number of threads commits.
	commitTime = 2 * time.Second
	// PostgreSQL makes at least half of the commits that SQLite does, from a crowd.
	crowdedThreads = 32
	barCommits     = 0.5
)

// commitRows measure how many commits a second a store takes, from so many threads at once: SQLite, which syncs each to the disk as a
// server does, and PostgreSQL on the same machine beside it.
func commitRows(ctx context.Context, dir string) ([]row, error) {
	cluster, stop, err := pgtest.Start()
	if err != nil {
		return nil, err
	}
	defer stop()
	lite, err := store.Open(ctx, store.Options{Path: filepath.Join(dir, "commits.db"), Durability: "full"})
	if err != nil {
		return nil, err
	}
	defer lite.Close()
	server, err := store.Open(ctx, store.Options{URL: cluster.URL("postgres")})
	if err != nil {
		return nil, err
	}
	defer server.Close()
	var rows []row
	for _, audited := range []bool{false, true} {
		what := "an answer and its price"
		if audited {
			what = "a call and its line in the audit log"
		}
		for _, threads := range []int{1, 8, crowdedThreads} {
			var rate [2]float64
			for i, db := range []*store.DB{lite, server} {
				if rate[i], err = commitRate(ctx, db, threads, audited); err != nil {
					return nil, err
				}
			}
			r := row{what: fmt.Sprintf("commits a second, %s, %d threads (beside: SQLite), PostgreSQL", what, threads), floor: rate[0], chorus: rate[1]}
			if threads == crowdedThreads {
				r.value, r.bar, r.how, r.least = rate[1]/rate[0], barCommits, "%.2f×", true
			}
			rows = append(rows, r)
		}
	}
	return rows, nil
}

// commitRate is how many commits a second threads that own themselves make.
func commitRate(ctx context.Context, db *store.DB, threads int, audited bool) (float64, error) {
	rows := make([]journal.Thread, threads)
	for i := range rows {
		id := chat.ThreadID(fmt.Sprintf("cli:bench%d:t%d-%v@main", i, threads, audited))
		if _, err := db.Commit(ctx, journal.Commit{Thread: id, Create: &journal.Thread{}}); err != nil {
			return 0, err
		}
		row, err := db.Take(ctx, id)
		if err != nil {
			return 0, err
		}
		rows[i] = row
	}
	payer := chat.Principal{Kind: chat.LocalUser, ID: "ada"}
	var made atomic.Int64
	var failed atomic.Pointer[error]
	var wg sync.WaitGroup
	began := time.Now()
	for i, row := range rows {
		wg.Go(func() {
			run := fmt.Sprintf("%s-%d", row.ID, i)
			for n := 1; time.Since(began) < commitTime && failed.Load() == nil; n++ {
				c := journal.Commit{Thread: row.ID, Epoch: row.Epoch}
				if audited {
					c.Events = []chat.Event{{Run: run, Body: chat.ToolBegan{Call: fmt.Sprint(n), Name: "shell"}}}
					c.Audit = []approval.Audit{{Agent: "main", Run: run, Principal: payer, Action: "shell", Decision: "allow", Rule: "profile"}}
				} else {
					c.Events = []chat.Event{{Run: run, Body: chat.Said{Step: n, Blocks: chat.TextBlocks("some words of an answer")}}}
					c.Money = []ledger.Entry{{Run: run, Step: n, Attempt: 1, Agent: "main", Payer: payer, Model: "m/1", Reserved: 100, Settled: 50, How: ledger.ByUsage}}
				}
				if _, err := db.Commit(ctx, c); err != nil {
					failed.Store(&err)
					return
				}
				made.Add(1)
			}
		})
	}
	wg.Wait()
	if err := failed.Load(); err != nil {
		return 0, *err
	}
	return float64(made.Load()) / time.Since(began).Seconds(), nil
}
