// Package store keeps the journal: threads, events, approvals, money and bytes. It
// uses one SQLite file, which several processes may use at the same time, or a
// PostgreSQL database, which several nodes share.
//
// A commit is written completely or not at all. Numbers come only from the
// thread's row. A fenced owner writes nothing. What Commit returned is read
// again the same way after a crash of the process.
//
// Package database runs statements and transactions. The bytes, the audit log and the search
// index, which are written with the journal or derived from it, have subpackages.
package store

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"chorus/internal/blobstorage"
	"chorus/internal/chat"
	"chorus/internal/database"
	"chorus/internal/journal"
	"chorus/internal/owner"
	"chorus/internal/store/audit"
	"chorus/internal/store/blobs"
	"chorus/internal/store/search"
)

// Options say how to open a store.
type Options struct {
	// Path is the database file. It is created, with its folder, if it does not exist.
	Path string
	// URL is a PostgreSQL database, postgres://…, to use instead of a file.
	URL string
	// Durability is "normal" (survives the death of the process; the default)
	// or "full" (survives the loss of power too).
	Durability string
	// BlobDir holds blobs over 64 KiB. "" means the folder "blobs" next to the file.
	BlobDir string
	// Blobs is where blobs over 64 KiB are kept instead, outside of database and home, for
	// all machines; nil if there is no such storage. Close closes it.
	Blobs blobstorage.Storage
	// Now is the clock; nil means time.Now.
	Now func() time.Time
	// MaxWait is how long a commit waits for another writing process before it fails with
	// database.ErrBusy. 0 means 10 s, far longer than any commit takes.
	MaxWait time.Duration
	// AcceptRewound opens a database that is behind its guard, or a
	// different one than before, and makes it the valid one.
	AcceptRewound bool
	// Notify is called when the files can no longer be written and, with nil, when they
	// can be again. It must not call the store. It may be nil.
	Notify func(error)
	// Owns is called inside a transaction that only the owner of a thing may make,
	// such as taking a thread. An error rolls it back. nil means that whoever holds
	// the lock file is the owner and need not be checked.
	Owns func(database.Tx, owner.Name) error
	// Placement returns the label of the machines that have a new thread's
	// files. nil means that threads may run anywhere.
	Placement func(dir string) string
	// Follow is called for every event inside the transaction that writes
	// it. An error rolls back both. It may be nil.
	Follow Follower
}

// Follower is called for every event of a thread inside the transaction that writes it.
type Follower func(tx database.Tx, thread chat.ThreadID, e chat.Event) error

// DB is an open store. All methods may be called from any goroutine. After Close they fail with ErrClosed.
type DB struct {
	*database.DB
	*blobs.Store
	*audit.Log
	*search.Index

	says   *dialect
	follow Follower
	owns   func(database.Tx, owner.Name) error
	places func(dir string) string
	ends   endsKept
	mine   ownedThreads
}

// Open opens the store, creates it if there is none, and migrates an older one. On
// an up-to-date home it runs a few pragmas and one query.
func Open(ctx context.Context, o Options) (*DB, error) {
	if o.BlobDir == "" && o.Path != "" {
		o.BlobDir = filepath.Join(filepath.Dir(o.Path), "blobs")
	}
	in, err := database.Open(ctx, database.Options{Path: o.Path, URL: o.URL, Durability: o.Durability, Now: o.Now, MaxWait: o.MaxWait,
		AcceptRewound: o.AcceptRewound, Notify: o.Notify, Left: leftIn(o.BlobDir), Schema: Schema()})
	if err != nil {
		return nil, err
	}
	db := &DB{DB: in, Store: blobs.New(in, o.BlobDir, o.Blobs), Log: audit.New(in),
		says: sayings(in.OnServer()), follow: o.Follow, owns: o.Owns, places: o.Placement}
	db.Index = search.New(in, indexed{db})
	return db, nil
}

// leftIn finds out from blobs left in their folder whether there was a database.
func leftIn(blobDir string) func() []string {
	return func() []string {
		if blobDir != "" && blobs.InFolder(blobDir) {
			return []string{blobDir}
		}
		return nil
	}
}

// Leftovers returns the files which show that there was a database where there is none now.
func Leftovers(path, blobDir string) []string {
	return append(database.Leftovers(path), leftIn(blobDir)()...)
}

// Inspect inspects a database file without creating or migrating anything.
func Inspect(ctx context.Context, path, blobDir string) (database.Inspection, error) {
	return database.Inspect(ctx, path, schemaVersion, leftIn(blobDir))
}

// Close commits what is queued and closes the file. It may be called twice.
func (db *DB) Close() error {
	err := errors.Join(db.DB.Close(), db.CloseIndex())
	if storage := db.BlobStorage(); storage != nil {
		err = errors.Join(err, storage.Close())
	}
	return err
}

// indexed is the journal as its search index reads it.
type indexed struct{ *DB }

func (j indexed) Page(ctx context.Context, thread chat.ThreadID, after int64) ([]chat.Event, bool, error) {
	return j.page(ctx, thread, after, maxPage, pageBytes)
}

func (j indexed) LaggingThreads(ctx context.Context, reader string) ([]chat.ThreadID, error) {
	behind, err := j.Behind(ctx, reader, 100)
	out := make([]chat.ThreadID, len(behind))
	for i, lag := range behind {
		out[i] = lag.Thread
	}
	return out, err
}

// One returns the first of what was found, or ErrUnknown if there is none.
func One[T any](found []T, err error, what string) (T, error) {
	var none T
	if err == nil && len(found) == 0 {
		err = journal.ErrUnknown
	}
	if err != nil {
		return none, fmt.Errorf("%s: %w", what, err)
	}
	return found[0], nil
}
