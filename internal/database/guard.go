package database

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// The guard is a small file next to the database that says how far the database has come. A
// database that is behind it has lost something: its write-ahead log was removed or truncated, or
// an older copy replaced it. SQLite itself considers all of these normal.
//
// The guard is written after commits, so it may be behind the database but never ahead of it. A
// process that is killed between the two leaves an older guard, which is still valid. A loss of
// power may take commits that were not yet on disk ("normal" durability). So the guard
// distinguishes two states: the one that was written, which is valid until the machine is
// restarted, and the one that is known to be on disk.

// guardSize is the size of the file. It is overwritten in place, in one piece, so it
// needs no space on a full disk and never mixes two states.
const guardSize = 1024

// guardEvery is how far the guard may be behind. guardSync is how often a
// long-running process makes sure that the guard's state is on disk.
const (
	guardEvery = 100 * time.Millisecond
	guardSync  = time.Minute
)

// mark is how far a database has come.
type mark struct {
	Events int64  `json:"events"` // the number of the last event, over all threads
	Audit  int64  `json:"audit"`  // the last line of the audit log
	Head   string `json:"head"`   // its hash
}

// before reports whether m is the older of two marks of one database.
func (m mark) before(other mark) bool { return m.Events < other.Events || m.Audit < other.Audit }

// guardState is the content of the file.
type guardState struct {
	Note     string `json:"note"`
	Database string `json:"database"` // its identity
	Boot     string `json:"boot"`     // the boot of the machine in which Written is valid
	Written  mark   `json:"written"`
	OnDisk   mark   `json:"onDisk"`
	Sum      uint32 `json:"sum"` // checksum of all of the above
}

const guardNote = "how far the database beside this file had come; chorus refuses to continue with one that is behind it"

// identified is the migration that gave databases an identity. unknownDatabase is
// what the guard says about an older one that came from a backup.
const (
	identified      = 13
	unknownDatabase = "unknown"
)

// GuardPath returns the guard of a database. Its name does not begin like
// the database's, so that `rm chorus.db*` leaves it.
func GuardPath(path string) string {
	return filepath.Join(filepath.Dir(path), "guard-"+filepath.Base(path))
}

// holds returns how far a database must have come at least.
func (g guardState) holds(boot string) mark {
	if g.Boot == boot && boot != "" {
		return g.Written
	}
	return g.OnDisk
}

func (g guardState) sum() uint32 {
	g.Sum = 0
	data, err := json.Marshal(g)
	if err != nil {
		return 0
	}
	return crc32.ChecksumIEEE(data)
}

// readGuard reads the guard of a database. It returns nil if there is none or it
// cannot be understood, because then it proves nothing.
func readGuard(path string) (*guardState, error) {
	data, err := os.ReadFile(GuardPath(path))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, &Problem{What: ErrDenied, Path: GuardPath(path), Cause: err}
	}
	var g guardState
	if json.Unmarshal(bytes.TrimSpace(data), &g) != nil || g.Sum != g.sum() || g.Database == "" {
		return nil, nil
	}
	return &g, nil
}

func (g guardState) write(path string) error {
	g.Note = guardNote
	g.Sum = g.sum()
	data, err := json.Marshal(g)
	if err != nil {
		return err
	}
	if len(data) >= guardSize {
		return fmt.Errorf("write %s: %d bytes are too much", GuardPath(path), len(data))
	}
	data = append(data, bytes.Repeat([]byte{' '}, guardSize-1-len(data))...)
	f, err := os.OpenFile(GuardPath(path), os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteAt(append(data, '\n'), 0)
	return errors.Join(err, f.Close())
}

// bootID identifies the current boot of the machine; "" if the system does not tell.
func bootID() string {
	data, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(data))
}

const queryMark = `SELECT (SELECT coalesce(max(rowid), 0) FROM events), coalesce((SELECT id FROM audit ORDER BY id DESC LIMIT 1), 0),
	coalesce((SELECT hash FROM audit ORDER BY id DESC LIMIT 1), ''), coalesce((SELECT value FROM memos WHERE kind = 'store' AND key = 'identity'), '')`

// guard maintains the guard file of one writer.
type guard struct {
	path string
	boot string

	mu     sync.Mutex
	timer  *time.Timer // nil if none was needed yet
	armed  bool
	closed bool
	last   time.Time // when it was written
	synced time.Time
	stored guardState
}

// verify compares a database that was just opened with its guard.
func (g *guard) verify(ctx context.Context, q rowQuerier) error {
	was, err := readGuard(g.path)
	if err != nil {
		return err
	}
	now, id, err := markOf(ctx, q)
	if err != nil {
		return err
	}
	g.boot = bootID()
	g.stored = guardState{Database: id, Boot: g.boot, Written: now}
	if was == nil {
		return nil
	}
	if was.Database == unknownDatabase {
		return nil
	}
	if was.Database != id {
		return &Problem{What: ErrRewound, Path: g.path, Cause: errors.New("it is a different database than the one that was here")}
	}
	g.stored.OnDisk = was.OnDisk
	held := was.holds(g.boot)
	if now.before(held) {
		return &Problem{What: ErrRewound, Path: g.path, Cause: fmt.Errorf("it ends with event %d and line %d of the audit log, and had come to event %d and line %d", now.Events, now.Audit, held.Events, held.Audit)}
	}
	if held.Head == "" {
		return nil
	}
	var hash string
	err = q.QueryRowContext(ctx, `SELECT hash FROM audit WHERE id = ?`, held.Audit).Scan(&hash)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return Explain(g.path, err)
	}
	if hash != held.Head {
		return &Problem{What: ErrRewound, Path: g.path, Cause: fmt.Errorf("line %d of its audit log differs from the one that was there", held.Audit)}
	}
	return nil
}

func markOf(ctx context.Context, q rowQuerier) (m mark, id string, err error) {
	err = q.QueryRowContext(ctx, queryMark).Scan(&m.Events, &m.Audit, &m.Head, &id)
	return m, id, err
}

// committed is called after each commit by whoever has the writer's turn. The timer calls keep later.
func (g *guard) committed(w *writer) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return
	}
	if since := time.Since(g.last); since < guardEvery {
		g.later(w, guardEvery-since)
		return
	}
	g.keep(w)
	if time.Since(g.synced) > guardSync {
		g.later(w, guardEvery)
	}
}

// later starts a timer that writes the guard. The caller holds g.mu.
func (g *guard) later(w *writer, after time.Duration) {
	if g.armed {
		return
	}
	g.armed = true
	if g.timer == nil {
		g.timer = time.AfterFunc(after, func() { g.fire(w) })
		return
	}
	g.timer.Reset(after)
}

// fire writes the guard while nobody else uses the connection.
func (g *guard) fire(w *writer) {
	select {
	case w.turn <- struct{}{}:
	case <-w.stop:
		return // close writes it
	}
	g.mu.Lock()
	g.armed = false
	if !g.closed && !w.isClosed() {
		g.keep(w)
	}
	due := !g.closed && time.Since(g.synced) > guardSync
	at := g.stored.Written
	g.mu.Unlock()
	<-w.turn
	if due && SyncFile(g.path+"-wal") == nil {
		g.mu.Lock()
		g.stored.OnDisk, g.synced = at, time.Now()
		if !g.closed {
			_ = g.stored.write(g.path) // an older guard is still valid
		}
		g.mu.Unlock()
	}
}

// keep writes how far the database has come. The caller holds g.mu and the writer's turn.
// An error does no harm: the remaining guard is older, but valid.
func (g *guard) keep(w *writer) {
	var now mark
	var id string
	if w.row(queryMark, nil, &now.Events, &now.Audit, &now.Head, &id) != nil {
		return
	}
	g.last = time.Now()
	g.stored.Written, g.stored.Database = now, id
	if was, err := readGuard(g.path); err == nil && was != nil && was.Database == id && g.stored.OnDisk.before(was.OnDisk) {
		g.stored.OnDisk = was.OnDisk // another process knows more
	}
	_ = g.stored.write(g.path)
}

// close writes the guard for the last time. The caller holds w's turn, and w's connection is still open.
func (g *guard) close(w *writer) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.closed = true
	if g.timer != nil {
		g.timer.Stop()
	}
	if g.armed {
		g.keep(w)
	}
}

// settled is called when the connection is closed. The last one to close brings
// everything into the database file and onto the disk, and removes the log.
func (g *guard) settled() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.last.IsZero() {
		return
	}
	if _, err := os.Stat(g.path + "-wal"); errors.Is(err, fs.ErrNotExist) {
		g.stored.OnDisk = g.stored.Written
		_ = g.stored.write(g.path)
	}
}

// SyncFile makes what was written to a file survive a loss of power.
func SyncFile(path string) error {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// Leftovers returns the files which show that there was a database at path; nil if there are none.
func Leftovers(path string) (found []string) {
	if info, err := os.Stat(GuardPath(path)); err == nil && info.Size() > 0 {
		found = append(found, GuardPath(path))
	}
	if info, err := os.Stat(path + "-wal"); err == nil && info.Size() > 0 {
		found = append(found, path+"-wal")
	}
	return found
}
