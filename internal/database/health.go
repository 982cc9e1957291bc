package database

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"
)

// health is what is known of the files: the last error that was theirs, until a write goes
// well again.
type health struct {
	notify func(error) // may be nil

	mu      sync.Mutex
	problem error     // nil: well, as far as anybody knows
	wroteAt time.Time // when a transaction came true
	probed  time.Time
}

// lasting are the problems that stay until somebody does something about them. ErrBusy is not
// among them: it is about other processes.
var lasting = []error{ErrDamaged, ErrDenied, ErrFull, ErrDisk, ErrReplaced, ErrAway}

// saw takes note of an error, if it is about the files.
func (h *health) saw(err error) {
	var p *Problem
	if err == nil || !errors.As(err, &p) || !slices.Contains(lasting, p.What) {
		return
	}
	h.mu.Lock()
	var was *Problem
	known := errors.As(h.problem, &was)
	if known && was.What == ErrDamaged { // nothing else is worse
		h.mu.Unlock()
		return
	}
	h.problem = p
	h.mu.Unlock()
	if h.notify != nil && (!known || was.What != p.What) {
		h.notify(p)
	}
}

// wrote takes note of a transaction that came true. Damage stays: other pages can still be
// written.
func (h *health) wrote() {
	h.mu.Lock()
	h.wroteAt = time.Now()
	was := h.problem
	if was != nil && errors.Is(was, ErrDamaged) {
		was = nil
	} else {
		h.problem = nil
	}
	h.mu.Unlock()
	if was != nil && h.notify != nil {
		h.notify(nil)
	}
}

// damaged is the damage that is known; nil: none. Nothing is written any more from then on:
// on damaged pages it would make things worse.
func (h *health) damaged() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if errors.Is(h.problem, ErrDamaged) {
		return h.problem
	}
	return nil
}

// Health is what is wrong with the files, as far as the last reads and writes have shown; nil:
// nothing. It is a *Problem.
func (db *DB) Health() error {
	h := db.health
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.problem
}

// A probe is written when nothing else was for probeAfter, and while something is wrong at
// most once in probePause: whoever asks often shall not fill the log.
const (
	probeAfter = 5 * time.Second
	probePause = time.Second
)

// Ready finds out whether a commit would come true now. Where none did lately it makes a
// small one; so it tells the truth about a disk that has filled up while nobody wrote.
func (db *DB) Ready(ctx context.Context) error {
	h := db.health
	h.mu.Lock()
	now := time.Now()
	due := now.Sub(h.wroteAt) > probeAfter
	if h.problem != nil {
		due = now.Sub(h.probed) > probePause && !errors.Is(h.problem, ErrDamaged)
	}
	if due {
		h.probed = now
	}
	h.mu.Unlock()
	if !due {
		if _, err := db.DataVersion(ctx); err != nil { // looks at the files, too
			return err
		}
		return db.Health()
	}
	err := db.Write(ctx, func(tx Tx) error {
		return tx.Exec(`INSERT INTO memos (kind, key, value, at) VALUES ('store', 'probe', '', ?)
			ON CONFLICT (kind, key) DO UPDATE SET at = excluded.at`, Micros(db.now()))
	})
	if err != nil {
		return err
	}
	return db.Health()
}

// CheckPages reads the whole file and takes note of damage. It takes as long as the file is
// big, or until ctx ends.
func (db *DB) CheckPages(ctx context.Context) error {
	if db.pg != nil {
		return nil // the server looks after its own pages
	}
	err := CheckFile(ctx, db.path)
	db.health.saw(err)
	return err
}
