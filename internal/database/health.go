package database

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"
)

// health is what is known about the files: the last error they caused, until a write succeeds again.
type health struct {
	notify func(error) // may be nil

	mu      sync.Mutex
	problem error     // nil: healthy, as far as known
	wroteAt time.Time // when a transaction was last committed
	probed  time.Time
}

// lasting are the problems that remain until somebody fixes them. ErrBusy is
// not one of them, since it is about other processes.
var lasting = []error{ErrDamaged, ErrDenied, ErrFull, ErrDisk, ErrReplaced, ErrAway}

// saw records an error if it is about the files.
func (h *health) saw(err error) {
	var p *Problem
	if err == nil || !errors.As(err, &p) || !slices.Contains(lasting, p.What) {
		return
	}
	h.mu.Lock()
	var was *Problem
	known := errors.As(h.problem, &was)
	if known && was.What == ErrDamaged { // nothing is worse
		h.mu.Unlock()
		return
	}
	h.problem = p
	h.mu.Unlock()
	if h.notify != nil && (!known || was.What != p.What) {
		h.notify(p)
	}
}

// wrote records a committed transaction. Damage remains, since other pages can still be written.
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

// damaged returns the known damage, or nil. After damage nothing is written any
// more, because on damaged pages that would make things worse.
func (h *health) damaged() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if errors.Is(h.problem, ErrDamaged) {
		return h.problem
	}
	return nil
}

// Health returns what is wrong with the files according to the latest
// reads and writes, or nil. The error is a *Problem.
func (db *DB) Health() error {
	h := db.health
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.problem
}

// A probe is written if nothing else was for probeAfter and, during a problem, at most
// once per probePause, so that frequent callers do not fill the log.
const (
	probeAfter = 5 * time.Second
	probePause = time.Second
)

// Ready finds out whether a commit would succeed now. If there was none lately it makes a
// small one, so it also notices a disk that filled up while nobody wrote.
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
		if _, err := db.DataVersion(ctx); err != nil { // this checks the files too
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

// CheckPages reads the whole file and records damage. The time grows with the size of the file; ctx can end it.
func (db *DB) CheckPages(ctx context.Context) error {
	if db.pg != nil {
		return nil // the server checks its own pages
	}
	err := CheckFile(ctx, db.path)
	db.health.saw(err)
	return err
}
