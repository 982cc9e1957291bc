// Package blobs keeps bytes by their hash: small ones in the database, larger ones in
// files of the home or in a storage shared by several machines. It knows which of them
// events refer to, and removes the others when they are old.
package blobs

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"chorus/internal/blobstorage"
	"chorus/internal/chat"
	"chorus/internal/database"
	"chorus/internal/digest"
	"chorus/internal/journal"
)

// MaxInline is the largest blob stored in the database. Larger ones would pass
// through the write-ahead log twice, so they are files.
const MaxInline = 64 << 10

// SweepAfter is how long unreferenced bytes are kept. It gives whoever put
// them time to write the event that refers to them.
const SweepAfter = 24 * time.Hour

// ErrSwept means that an old file with the same bytes was found, and swept
// before its row was written. The second try writes it.
var ErrSwept = errors.New("swept while it was being kept; try again")

// Store keeps the blobs of a database.
type Store struct {
	db      *database.DB
	dir     string              // folder of the blob files
	storage blobstorage.Storage // nil if there is none
}

// New keeps blobs in a database, in files of a folder, and in a storage if there is one.
func New(db *database.DB, dir string, storage blobstorage.Storage) *Store {
	return &Store{db: db, dir: dir, storage: storage}
}

// BlobStorage returns where large blobs are kept outside of database and home, or nil.
func (s *Store) BlobStorage() blobstorage.Storage { return s.storage }

// Row is a prepared blob. Its file, if any, is already on disk.
type Row struct {
	Hash  string
	size  int
	data  []byte // nil: in a file, or in the storage
	place string // the storage; "" if none
}

// KeepBlob checks the hash and writes a large blob into its file or into the storage.
func (s *Store) KeepBlob(ctx context.Context, b chat.Blob) (Row, error) {
	if !s.KeptApart(len(b.Data)) {
		return s.KeepBlobHere(b)
	}
	row, err := hashed(b)
	if err != nil {
		return row, err
	}
	return s.putApart(ctx, row)
}

// hashed prepares a blob after checking its hash.
func hashed(b chat.Blob) (Row, error) {
	hash := digest.Of(b.Data)
	if b.Hash != "" && b.Hash != hash {
		return Row{}, fmt.Errorf("blob %s: its bytes have the hash %s", b.Hash, hash)
	}
	row := Row{Hash: hash, size: len(b.Data), data: b.Data}
	if row.data == nil {
		row.data = []byte{}
	}
	return row, nil
}

// KeepBlobHere is KeepBlob for what stays in the database or in the home, even if there is a storage.
func (s *Store) KeepBlobHere(b chat.Blob) (Row, error) {
	row, err := hashed(b)
	if err != nil || len(b.Data) <= MaxInline || s.db.OnServer() || s.storage != nil {
		return row, err
	}
	hash := row.Hash
	row.data = nil
	// Refresh the time of an unreferenced file, so that no sweep removes it before its row is written.
	if err := os.Chtimes(s.BlobPath(hash), time.Time{}, s.db.Now()); err == nil {
		// A truncated or overwritten file is replaced, since we have the bytes.
		if kept, err := os.ReadFile(s.BlobPath(hash)); err == nil && bytes.Equal(kept, b.Data) {
			return row, nil
		}
	}
	return row, s.WriteBlobFile(hash, b.Data)
}

// BlobPath returns the path of a blob's file.
func (s *Store) BlobPath(hash string) string {
	return filepath.Join(s.dir, hash[:2], hash)
}

// WriteBlobFile writes bytes into their file. If the clock jumps ahead, a sweep may take
// the unfinished file for an old one; then it is written again.
func (s *Store) WriteBlobFile(hash string, data []byte) error {
	const tries = 3
	for i := 1; ; i++ {
		if err := s.tryBlobFile(hash, data); i == tries || !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
}

// tryBlobFile writes a temporary file, syncs and renames it, so that a
// file with the right name always has the right bytes.
func (s *Store) tryBlobFile(hash string, data []byte) error {
	path := s.BlobPath(hash)
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return database.Explain(dir, fmt.Errorf("keep blob: %w", err))
	}
	f, err := os.CreateTemp(dir, newPrefix+"*")
	if err != nil {
		return database.Explain(dir, fmt.Errorf("keep blob: %w", err))
	}
	_, err = f.Write(data)
	if err == nil {
		err = f.Sync()
	}
	err = errors.Join(err, f.Close())
	if err == nil {
		err = os.Chtimes(f.Name(), time.Time{}, s.db.Now()) // sweeps use our clock
	}
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		if gone := os.Remove(f.Name()); !errors.Is(gone, fs.ErrNotExist) {
			err = errors.Join(err, gone)
		}
		return database.Explain(path, fmt.Errorf("keep blob: %w", err))
	}
	return database.SyncDir(dir)
}

// WriteBlob writes a blob's row, or refreshes the time of an existing one.
func (s *Store) WriteBlob(tx database.Tx, b Row, now int64) error {
	if b.place != "" {
		return writeApart(tx, b, now)
	}
	if b.data == nil {
		// The sweep deletes files while it holds the write lock, and we hold it now: a file that exists stays.
		switch _, err := os.Stat(s.BlobPath(b.Hash)); {
		case errors.Is(err, fs.ErrNotExist):
			return fmt.Errorf("blob %s: %w", b.Hash, ErrSwept)
		case err != nil:
			return fmt.Errorf("blob %s: %w", b.Hash, err)
		}
	}
	// If the row has no bytes, it gets those given now, wherever it said that they were.
	return tx.Exec(`INSERT INTO blobs (hash, size, data, touched) VALUES (?, ?, ?, ?)
		ON CONFLICT (hash) DO UPDATE SET touched = excluded.touched, data = coalesce(blobs.data, excluded.data), place = CASE WHEN blobs.data IS NULL THEN '' ELSE blobs.place END`,
		b.Hash, b.size, blobData(b.data), now)
}

// blobData stores nil as NULL and empty bytes as empty bytes.
func blobData(data []byte) any {
	if data == nil {
		return nil
	}
	return data
}

// PutBlob stores bytes and returns their hash. They are swept after a
// day unless an event refers to them by then.
func (s *Store) PutBlob(ctx context.Context, data []byte) (string, error) {
	hash, err := s.putBlob(ctx, data)
	if errors.Is(err, ErrSwept) {
		return s.putBlob(ctx, data)
	}
	return hash, err
}

func (s *Store) putBlob(ctx context.Context, data []byte) (string, error) {
	row, err := s.KeepBlob(ctx, chat.Blob{Data: data})
	if err != nil {
		return "", err
	}
	err = s.db.Write(ctx, func(tx database.Tx) error { return s.WriteBlob(tx, row, database.Micros(s.db.Now())) })
	if err != nil {
		return "", fmt.Errorf("keep blob: %w", err)
	}
	return row.Hash, nil
}

// Blob reads bytes by their hash and checks them, or fails with ErrUnknown. The
// error is also chat.ErrLost if they are missing or changed.
func (s *Store) Blob(ctx context.Context, hash string) ([]byte, error) {
	var data []byte
	found, outside, place := false, false, ""
	err := s.db.Query(ctx, `SELECT data, data IS NULL, place FROM blobs WHERE hash = ?`, []any{hash}, func(rows *sql.Rows) error {
		found = true
		return rows.Scan(&data, &outside, &place)
	})
	if err == nil && !found {
		err = fmt.Errorf("%w: %w", journal.ErrUnknown, chat.ErrLost)
	}
	switch {
	case err != nil || !outside:
	case place != "":
		data, err = s.getApart(ctx, hash, place)
	default:
		data, err = os.ReadFile(s.BlobPath(hash))
		if errors.Is(err, fs.ErrNotExist) {
			err = fmt.Errorf("%w: its file is gone: %w", journal.ErrUnknown, chat.ErrLost)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("blob %s: %w", hash, err)
	}
	if digest.Of(data) != hash {
		path := s.db.Path()
		switch {
		case outside && place != "":
			path = place
		case outside:
			path = s.BlobPath(hash)
		}
		return nil, &database.Problem{What: database.ErrBlob, Path: path, Cause: fmt.Errorf("blob %s has other bytes than it had: %w", hash, chat.ErrLost)}
	}
	return bytes.Clone(data), nil
}

// newPrefix begins the names of unfinished files.
const newPrefix = ".new-"

// sweepPage limits how long one step of a sweep holds the writer.
const sweepPage = 200

// unusedHashes selects the blobs that no event refers to. It reads two indexes and no bytes.
const unusedHashes = `SELECT hash FROM blobs EXCEPT SELECT hash FROM event_blobs`

// SweepBlobs removes bytes that no event refers to and nobody has put since olderThan ago, and
// files and storage objects that have belonged to nothing for that long. It returns the number
// removed. A reader finds the candidates. The writer is held only to check again and remove, one
// page at a time, so that others can continue. Ending ctx ends the sweep between pages.
func (s *Store) SweepBlobs(ctx context.Context, olderThan time.Duration) (int, error) {
	before := s.db.Now().Add(-olderThan)
	total, err := s.sweepRows(ctx, before)
	if err == nil {
		var files int
		files, err = s.sweepFiles(ctx, before)
		total += files
	}
	if err == nil && s.storage != nil {
		var objects int
		objects, err = s.sweepApart(ctx, before)
		total += objects
	}
	if err != nil {
		return total, fmt.Errorf("sweep blobs: %w", err)
	}
	return total, nil
}

func (s *Store) sweepRows(ctx context.Context, before time.Time) (int, error) {
	var hashes []string
	err := s.db.Query(ctx, unusedHashes, nil, database.Column(&hashes))
	if err != nil {
		return 0, err
	}
	total := 0
	for page := range slices.Chunk(hashes, sweepPage) {
		var done swept
		now := s.db.Now()
		err := s.db.Write(ctx, func(tx database.Tx) (err error) {
			done, err = s.sweepPage(tx, page, database.Micros(before), database.Micros(now))
			return err
		})
		if err != nil {
			return total, err
		}
		total += done.rows
		s.removeLeft(ctx, done.left)
	}
	return total, nil
}

const lockBlob = `SELECT hash FROM blobs WHERE hash = ? FOR KEY SHARE`

// LockBlob protects bytes from sweeps until the transaction ends.
func LockBlob(tx database.Tx, hash string) error { return tx.Lock(lockBlob, hash) }

// RemoveBlob removes bytes that no event refers to any more, whatever their age. It returns
// what to remove from the storage once the transaction is committed.
func (s *Store) RemoveBlob(tx database.Tx, hash string, now int64) ([]Leaving, error) {
	done, err := s.sweepPage(tx, []string{hash}, now+1, now)
	return done.left, err
}

const deleteUnused = `DELETE FROM blobs WHERE hash = ? AND touched < ?
	AND NOT EXISTS (SELECT 1 FROM event_blobs e WHERE e.hash = blobs.hash) AND (data IS NOT NULL OR place = '' OR place = ?) RETURNING data IS NULL, place`

// swept is the result of one step of a sweep.
type swept struct {
	rows int       // removed
	left []Leaving // those with bytes in the storage, to be removed once the transaction is committed
}

// sweepPage removes the blobs of the page that are still unused now that nobody else
// writes. It leaves those in a storage other than this one.
func (s *Store) sweepPage(tx database.Tx, page []string, before, now int64) (n swept, err error) {
	storage := ""
	if s.storage != nil {
		storage = s.storage.Name()
	}
	for _, hash := range page {
		var outside bool
		var place string
		// Lock first, so that new references to them are seen.
		if err := tx.Lock(`SELECT hash FROM blobs WHERE hash = ? FOR UPDATE`, hash); err != nil {
			return n, err
		}
		err := tx.Row(deleteUnused, []any{hash, before, storage}, &outside, &place)
		switch {
		case errors.Is(err, sql.ErrNoRows):
			continue
		case err != nil:
			return n, err
		}
		n.rows++
		switch {
		case outside && place != "":
			n.left = append(n.left, Leaving{hash, now})
			err = tx.Exec(`INSERT INTO memos (kind, key, value, at) VALUES ('`+LeavingKind+`', ?, ?, ?)
				ON CONFLICT (kind, key) DO UPDATE SET at = excluded.at`, hash, place, now)
			if err != nil {
				return n, err
			}
		case outside:
			if err := os.Remove(s.BlobPath(hash)); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return n, err
			}
		}
	}
	return n, nil
}

// fileRows counts the rows whose bytes are in the file of a hash.
const fileRows = `SELECT count(*) FROM blobs WHERE hash = ? AND data IS NULL AND place = ''`

// sweepFiles removes files without a row. It checks again while it holds the writer: if somebody
// finds such a file and wants to keep it, writing its row fails there, and they try again.
func (s *Store) sweepFiles(ctx context.Context, before time.Time) (int, error) {
	total := 0
	err := s.strayFiles(ctx, before, func(path, hash string, _ int64) error {
		removed := false
		err := s.db.Write(ctx, func(tx database.Tx) error {
			removed = false
			if hash != "" {
				var there int
				if err := tx.Row(fileRows, []any{hash}, &there); err != nil || there > 0 {
					return err
				}
			}
			if info, err := os.Stat(path); err == nil && !info.ModTime().Before(before) {
				return nil // recent again: somebody keeps it
			}
			err := os.Remove(path)
			removed = err == nil
			if errors.Is(err, fs.ErrNotExist) {
				return nil
			}
			return err
		})
		if removed {
			total++
		}
		return err
	})
	return total, err
}

// BytesAt reads the bytes of a blob from its file or from the storage.
func (s *Store) BytesAt(ctx context.Context, hash, place string) ([]byte, error) {
	if place != "" {
		return s.getApart(ctx, hash, place)
	}
	return os.ReadFile(s.BlobPath(hash))
}
