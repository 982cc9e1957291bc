package store

import (
	"bytes"
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"chorus/internal/chat"
	"chorus/internal/journal"
)

// maxInline is the largest blob that lives in the database; larger ones would
// pass through the write-ahead log twice and are files instead.
const maxInline = 64 << 10

// SweepAfter is how long bytes that nothing refers to are kept: long enough for
// whoever put them to write the event that does.
const SweepAfter = 24 * time.Hour

// errSwept: an old file of the same bytes was there when it was looked for, and
// swept before its row was written. The second try writes it.
var errSwept = errors.New("swept while it was being kept; try again")

// blobRow is a blob made ready: a file is on the disk already.
type blobRow struct {
	hash  string
	size  int
	data  []byte // nil: in a file, or in the storage
	place string // the storage; "": none
}

// keepBlob checks the hash and lays a large blob into its file, or puts it into the storage.
func (db *DB) keepBlob(ctx context.Context, b chat.Blob) (blobRow, error) {
	if !db.apart(len(b.Data)) {
		return db.keepHere(b)
	}
	row, err := hashed(b)
	if err != nil {
		return row, err
	}
	return db.putApart(ctx, row)
}

// hashed is a blob whose hash is right.
func hashed(b chat.Blob) (blobRow, error) {
	sum := sha256.Sum256(b.Data)
	hash := hex.EncodeToString(sum[:])
	if b.Hash != "" && b.Hash != hash {
		return blobRow{}, fmt.Errorf("blob %s: its bytes have the hash %s", b.Hash, hash)
	}
	row := blobRow{hash: hash, size: len(b.Data), data: b.Data}
	if row.data == nil {
		row.data = []byte{}
	}
	return row, nil
}

// keepHere is keepBlob for what stays in the database or in the home, whatever storage there is.
func (db *DB) keepHere(b chat.Blob) (blobRow, error) {
	row, err := hashed(b)
	if err != nil || len(b.Data) <= maxInline || db.pg != nil || db.storage != nil {
		return row, err
	}
	hash := row.hash
	row.data = nil
	// A file that nothing refers to becomes young again, so that no sweep takes it before its row is there.
	if err := os.Chtimes(db.blobPath(hash), time.Time{}, db.now()); err == nil {
		// One that was cut or overwritten is mended by whoever has the bytes.
		if kept, err := os.ReadFile(db.blobPath(hash)); err == nil && bytes.Equal(kept, b.Data) {
			return row, nil
		}
	}
	return row, db.writeBlobFile(hash, b.Data)
}

func (db *DB) blobPath(hash string) string {
	return filepath.Join(db.blobDir, hash[:2], hash)
}

// writeBlobFile lays bytes into their file. A clock that jumps ahead makes a sweep take what
// is being written for something old; then it is written again.
func (db *DB) writeBlobFile(hash string, data []byte) error {
	const tries = 3
	for i := 1; ; i++ {
		if err := db.tryBlobFile(hash, data); i == tries || !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
}

// tryBlobFile writes beside the place, syncs and renames, so that a file with
// the right name always has the right bytes.
func (db *DB) tryBlobFile(hash string, data []byte) error {
	path := db.blobPath(hash)
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return explain(dir, fmt.Errorf("keep blob: %w", err))
	}
	f, err := os.CreateTemp(dir, newPrefix+"*")
	if err != nil {
		return explain(dir, fmt.Errorf("keep blob: %w", err))
	}
	_, err = f.Write(data)
	if err == nil {
		err = f.Sync()
	}
	err = errors.Join(err, f.Close())
	if err == nil {
		err = os.Chtimes(f.Name(), time.Time{}, db.now()) // sweeps go by our clock
	}
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		if gone := os.Remove(f.Name()); !errors.Is(gone, fs.ErrNotExist) {
			err = errors.Join(err, gone)
		}
		return explain(path, fmt.Errorf("keep blob: %w", err))
	}
	return syncDir(dir)
}

// syncDir makes the rename last through a loss of power. File systems that
// cannot sync a folder say so, and then there is nothing more to do.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return fmt.Errorf("keep blob: %w", err)
	}
	_ = d.Sync()
	return d.Close()
}

// writeBlob writes a blob's row; one that is there already is young again.
func (db *DB) writeBlob(tx *transaction, b blobRow, now int64) error {
	if b.place != "" {
		return writeApart(tx, b, now)
	}
	if b.data == nil {
		// The sweep deletes files while it holds the write lock, and so do we now:
		// a file that is here stays.
		switch _, err := os.Stat(db.blobPath(b.hash)); {
		case errors.Is(err, fs.ErrNotExist):
			return fmt.Errorf("blob %s: %w", b.hash, errSwept)
		case err != nil:
			return fmt.Errorf("blob %s: %w", b.hash, err)
		}
	}
	// Bytes that the row has not are those that were given now, wherever it said that they were.
	return tx.exec(`INSERT INTO blobs (hash, size, data, touched) VALUES (?, ?, ?, ?)
		ON CONFLICT (hash) DO UPDATE SET touched = excluded.touched, data = coalesce(blobs.data, excluded.data), place = CASE WHEN blobs.data IS NULL THEN '' ELSE blobs.place END`,
		b.hash, b.size, blobData(b.data), now)
}

// blobData keeps nil as NULL and empty bytes as empty bytes.
func blobData(data []byte) any {
	if data == nil {
		return nil
	}
	return data
}

// PutBlob keeps bytes and gives their hash. They are swept after a day unless an
// event refers to them by then.
func (db *DB) PutBlob(ctx context.Context, data []byte) (string, error) {
	hash, err := db.putBlob(ctx, data)
	if errors.Is(err, errSwept) {
		return db.putBlob(ctx, data)
	}
	return hash, err
}

func (db *DB) putBlob(ctx context.Context, data []byte) (string, error) {
	row, err := db.keepBlob(ctx, chat.Blob{Data: data})
	if err != nil {
		return "", err
	}
	err = db.write(ctx, func(tx *transaction) error { return db.writeBlob(tx, row, micros(db.now())) })
	if err != nil {
		return "", fmt.Errorf("keep blob: %w", err)
	}
	return row.hash, nil
}

// Blob reads bytes by their hash and checks them; ErrUnknown if there are none. It is
// chat.ErrLost that they are gone or others.
func (db *DB) Blob(ctx context.Context, hash string) ([]byte, error) {
	var data []byte
	found, outside, place := false, false, ""
	err := db.query(ctx, `SELECT data, data IS NULL, place FROM blobs WHERE hash = ?`, []any{hash}, func(rows *sql.Rows) error {
		found = true
		return rows.Scan(&data, &outside, &place)
	})
	if err == nil && !found {
		err = fmt.Errorf("%w: %w", journal.ErrUnknown, chat.ErrLost)
	}
	switch {
	case err != nil || !outside:
	case place != "":
		data, err = db.getApart(ctx, hash, place)
	default:
		data, err = os.ReadFile(db.blobPath(hash))
		if errors.Is(err, fs.ErrNotExist) {
			err = fmt.Errorf("%w: its file is gone: %w", journal.ErrUnknown, chat.ErrLost)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("blob %s: %w", hash, err)
	}
	if sum := sha256.Sum256(data); hex.EncodeToString(sum[:]) != hash {
		path := db.path
		switch {
		case outside && place != "":
			path = place
		case outside:
			path = db.blobPath(hash)
		}
		return nil, &Problem{What: ErrBlob, Path: path, Cause: fmt.Errorf("blob %s has other bytes than it had: %w", hash, chat.ErrLost)}
	}
	return bytes.Clone(data), nil
}

// newPrefix begins the names of files that are being written.
const newPrefix = ".new-"

// sweepPage bounds how long one step of a sweep holds the writer.
const sweepPage = 200

// unusedHashes are those that no event refers to. It reads two indexes and no bytes.
const unusedHashes = `SELECT hash FROM blobs EXCEPT SELECT hash FROM event_blobs`

// SweepBlobs removes bytes that no event refers to and nobody has put since
// olderThan ago, and files and objects of the storage that belong to nothing since then. It gives the number
// removed. What can go is looked for by a reader; the writer is held only to look again
// and remove, a page at a time, so others go on meanwhile. Ending ctx ends it between pages.
func (db *DB) SweepBlobs(ctx context.Context, olderThan time.Duration) (int, error) {
	before := db.now().Add(-olderThan)
	total, err := db.sweepRows(ctx, before)
	if err == nil {
		var files int
		files, err = db.sweepFiles(ctx, before)
		total += files
	}
	if err == nil && db.storage != nil {
		var objects int
		objects, err = db.sweepApart(ctx, before)
		total += objects
	}
	if err != nil {
		return total, fmt.Errorf("sweep blobs: %w", err)
	}
	return total, nil
}

func (db *DB) sweepRows(ctx context.Context, before time.Time) (int, error) {
	var hashes []string
	err := db.query(ctx, unusedHashes, nil, func(rows *sql.Rows) error {
		var hash string
		err := rows.Scan(&hash)
		hashes = append(hashes, hash)
		return err
	})
	if err != nil {
		return 0, err
	}
	total := 0
	for page := range slices.Chunk(hashes, sweepPage) {
		var done swept
		now := db.now()
		err := db.write(ctx, func(tx *transaction) (err error) {
			done, err = db.sweepPage(tx, page, micros(before), micros(now))
			return err
		})
		if err != nil {
			return total, err
		}
		total += done.rows
		db.removeLeft(ctx, done.left)
	}
	return total, nil
}

// lockBlob keeps bytes from being swept until the transaction that refers to them is over.
const lockBlob = `SELECT hash FROM blobs WHERE hash = ? FOR KEY SHARE`

const deleteUnused = `DELETE FROM blobs WHERE hash = ? AND touched < ?
	AND NOT EXISTS (SELECT 1 FROM event_blobs e WHERE e.hash = blobs.hash) AND (data IS NOT NULL OR place = '' OR place = ?) RETURNING data IS NULL, place`

// swept is what a step of a sweep has done.
type swept struct {
	rows int       // removed
	left []leaving // those whose bytes are in the storage: to be removed once the transaction is true
}

// sweepPage removes those of the page that are still unused now that nobody else writes. What is in a storage that is
// not this one's stays.
func (db *DB) sweepPage(tx *transaction, page []string, before, now int64) (n swept, err error) {
	storage := ""
	if db.storage != nil {
		storage = db.storage.Name()
	}
	for _, hash := range page {
		var outside bool
		var place string
		// First, so that what others refer to them by is seen.
		if err := tx.lock(`SELECT hash FROM blobs WHERE hash = ? FOR UPDATE`, hash); err != nil {
			return n, err
		}
		err := tx.row(deleteUnused, []any{hash, before, storage}, &outside, &place)
		switch {
		case errors.Is(err, sql.ErrNoRows):
			continue
		case err != nil:
			return n, err
		}
		n.rows++
		switch {
		case outside && place != "":
			n.left = append(n.left, leaving{hash, now})
			err = tx.exec(`INSERT INTO memos (kind, key, value, at) VALUES ('`+leavingBlobs+`', ?, ?, ?)
				ON CONFLICT (kind, key) DO UPDATE SET at = excluded.at`, hash, place, now)
			if err != nil {
				return n, err
			}
		case outside:
			if err := os.Remove(db.blobPath(hash)); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return n, err
			}
		}
	}
	return n, nil
}

// fileRows counts the rows that have their bytes in the file of a hash.
const fileRows = `SELECT count(*) FROM blobs WHERE hash = ? AND data IS NULL AND place = ''`

// sweepFiles removes files without a row. It looks again while it holds the writer: who
// found such a file and wants to keep it writes its row there, and is told to try again.
func (db *DB) sweepFiles(ctx context.Context, before time.Time) (int, error) {
	total := 0
	err := db.strayFiles(ctx, before, func(path, hash string, _ int64) error {
		removed := false
		err := db.write(ctx, func(tx *transaction) error {
			removed = false
			if hash != "" {
				var there int
				if err := tx.row(fileRows, []any{hash}, &there); err != nil || there > 0 {
					return err
				}
			}
			if info, err := os.Stat(path); err == nil && !info.ModTime().Before(before) {
				return nil // young again: somebody keeps it
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
