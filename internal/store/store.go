// Package store keeps the journal: threads, events, approvals, money and bytes, in one
// SQLite file that several processes may use at the same time, or in a PostgreSQL
// database that several nodes do.
//
// It promises that a commit is true as a whole or not at all, that numbers come
// only from the thread's row, that a fenced owner writes nothing, and that what
// Commit returned will be read again the same way after a crash of the process.
// How statements and transactions are run is package database's business; the bytes,
// the audit log and the search index, which are written with the journal or made of it,
// have packages of their own below this one.
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
	// Path of the database file; made, with its folder, if it is not there.
	Path string
	// URL of a PostgreSQL database, postgres://…, instead of a file.
	URL string
	// Durability is "normal" (survives the death of the process; the default)
	// or "full" (survives the loss of power too).
	Durability string
	// BlobDir holds blobs over 64 KiB; empty means the folder "blobs" beside the file.
	BlobDir string
	// Blobs is where blobs over 64 KiB are kept instead, outside of database and home, for all machines; nil: nowhere. Close
	// closes it.
	Blobs blobstorage.Storage
	// Now is the clock; nil means time.Now.
	Now func() time.Time
	// MaxWait is how long a commit waits for another process that writes, before it
	// fails with database.ErrBusy; 0 means 10 s, far beyond any commit.
	MaxWait time.Duration
	// AcceptRewound opens a database that is behind its guard, or another one than was there, and
	// makes it the one that counts.
	AcceptRewound bool
	// Notify is told, by whoever found out, that the files can no longer be written, and with nil
	// that they can be again. It must not call the store. nil: nobody is.
	Notify func(error)
	// Owns is asked inside a transaction that only the owner of a thing may make, such as taking a thread; an error undoes it. nil:
	// whoever holds the lock file owns it, and need not be asked.
	Owns func(database.Tx, owner.Name) error
	// Placement is the label of the machines that have a new thread's files; nil: it may run anywhere.
	Placement func(dir string) string
	// Follow is told of every event inside the transaction that writes it; an error undoes both. nil: nobody is.
	Follow Follower
}

// Follower is told of every event of a thread inside the transaction that writes it.
type Follower func(tx database.Tx, thread chat.ThreadID, e chat.Event) error

// DB is an open store. All methods may be called from any goroutine; after
// Close they answer ErrClosed.
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

// Open opens the store, makes it if there is none, and brings an older one up to
// date. On a warm home it runs a handful of pragmas and one query.
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

// leftIn tells that there was a database by the blobs that are left in their folder.
func leftIn(blobDir string) func() []string {
	return func() []string {
		if blobDir != "" && blobs.InFolder(blobDir) {
			return []string{blobDir}
		}
		return nil
	}
}

// Leftovers are the files that show that there was a database where none is.
func Leftovers(path, blobDir string) []string {
	return append(database.Leftovers(path), leftIn(blobDir)()...)
}

// Inspect looks at a database file and makes and migrates nothing.
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

// One is the first of what was found; ErrUnknown if there is none.
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
