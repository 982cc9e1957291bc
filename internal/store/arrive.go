package store

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"chorus/internal/database"
	"chorus/internal/journal"
)

const insertArrival = `INSERT INTO arrivals (platform, bot, kind, platform_id, version, decision, at)
	VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING`

// Arrive writes something that came from outside, once, into every thread that hears
// it, completely or not at all. The second time it writes nothing and sets Again.
// Arrived.Commits keeps the order of Arrival.Commits.
func (db *DB) Arrive(ctx context.Context, a journal.Arrival) (journal.Arrived, error) {
	fail := func(err error) (journal.Arrived, error) {
		return journal.Arrived{}, fmt.Errorf("arrival %s %s %s: %w", a.Platform, a.What, a.PlatformID, err)
	}
	if a.PlatformID == "" {
		return fail(errors.New("no platform id"))
	}
	intents := make([]*intent, len(a.Commits))
	order := make([]int, len(a.Commits))
	for i, c := range a.Commits {
		if c.Epoch != 0 {
			return fail(errors.New("an arrival is written by guests only"))
		}
		in, err := db.prepare(ctx, c)
		if err != nil {
			return fail(err)
		}
		intents[i], order[i] = in, i
	}
	// Threads are sorted by id, so that two arrivals lock the same rows in the same order.
	slices.SortStableFunc(order, func(x, y int) int {
		return strings.Compare(string(a.Commits[x].Thread), string(a.Commits[y].Thread))
	})
	var out journal.Arrived
	work := func(tx database.Tx) error {
		out = journal.Arrived{}
		n, err := tx.Change(insertArrival, a.Platform, a.Bot, a.What, a.PlatformID, a.Version, a.Decision, database.Micros(db.Now()))
		if err != nil {
			return err
		}
		if n == 0 {
			out.Again = true
			return nil
		}
		out.Commits = make([]journal.Committed, len(intents))
		for _, i := range order {
			if out.Commits[i], err = db.apply(tx, intents[i]); err != nil {
				return fmt.Errorf("thread %s: %w", intents[i].Thread, err)
			}
		}
		return nil
	}
	lost, err := db.fetching(ctx, func() (bool, error) { return db.TryWrite(ctx, work) })
	for i := 0; i < len(intents) && err == nil; i++ {
		db.RemoveBlobsSoon(ctx, intents[i].allLeft())
	}
	if err != nil && lost {
		if found, ok := db.arrivedAnyway(context.WithoutCancel(ctx), a, intents); ok {
			return found, nil
		}
	}
	if err != nil {
		return fail(err)
	}
	return out, nil
}

// arrivedAnyway reads back an arrival whose COMMIT failed without saying whether it happened.
// The arrival's own row proves that it did; its events are read with it.
func (db *DB) arrivedAnyway(ctx context.Context, a journal.Arrival, intents []*intent) (journal.Arrived, bool) {
	n, err := db.Count(ctx, `SELECT count(*) FROM arrivals
		WHERE platform = ? AND bot = ? AND kind = ? AND platform_id = ? AND version = ?`,
		a.Platform, a.Bot, a.What, a.PlatformID, a.Version)
	if err != nil || n == 0 {
		return journal.Arrived{}, false
	}
	out := journal.Arrived{Commits: make([]journal.Committed, len(intents))}
	for i, in := range intents {
		found, ok := db.readBack(ctx, in)
		if !ok {
			return journal.Arrived{Again: true}, true
		}
		out.Commits[i] = found
	}
	return out, true
}
