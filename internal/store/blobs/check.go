package blobs

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"chorus/internal/database"
)

// The kinds of blob damage.
const (
	BlobMissing = "missing" // its file is missing
	BlobCut     = "cut off" // its file has a different length
	BlobChanged = "changed" // its bytes are different
)

// BlobFault describes a blob that an event refers to and that can no longer be read.
type BlobFault struct {
	Hash    string
	What    string
	Bytes   int64  // its former size; 0 if not known
	Place   string // the storage that should have it; "" for the database or a file
	Thread  string // one of the threads that refer to it
	Threads int    // how many threads refer to it
}

// lostBlobs is the kind of memo which records that a blob is lost and that somebody has accepted this.
const lostBlobs = "lost_blob"

// CheckBlobs looks for blobs that events refer to and that can no longer be read. With
// thorough it reads all bytes, otherwise it only checks the lengths of files. It returns how
// many it checked. Blobs that are known to be lost are skipped.
func (s *Store) CheckBlobs(ctx context.Context, thorough bool) (faults []BlobFault, looked int, err error) {
	const page = 500
	for after := ""; ; {
		var rows []blobCheck
		err := s.db.Query(ctx, `SELECT r.hash, r.n, r.thread, b.size, b.Hash IS NULL, b.data IS NULL, coalesce(b.place, '') FROM (
				SELECT hash, count(DISTINCT thread_id) AS n, min(thread_id) AS thread FROM event_blobs WHERE hash > ? GROUP BY hash ORDER BY hash LIMIT ?+0) r
			LEFT JOIN blobs b ON b.Hash = r.hash WHERE NOT EXISTS (SELECT 1 FROM memos m WHERE m.kind = '`+lostBlobs+`' AND m.key = r.hash) ORDER BY r.hash`,
			[]any{after, page}, database.Fill(&rows, func(r *sql.Rows, c *blobCheck) error {
				return r.Scan(&c.Hash, &c.Threads, &c.Thread, &c.size, &c.noRow, &c.outside, &c.Place)
			}))
		if err != nil {
			return faults, looked, fmt.Errorf("check blobs: %w", err)
		}
		for _, c := range rows {
			if err := ctx.Err(); err != nil {
				return faults, looked, err
			}
			looked++
			if c.What, err = s.checkBlob(ctx, c, thorough); err != nil {
				return faults, looked, fmt.Errorf("check blob %s: %w", c.Hash, err)
			}
			if c.Bytes = c.size.Int64; c.What != "" {
				faults = append(faults, c.BlobFault)
			}
		}
		next, err := s.hashAfter(ctx, after, page)
		if err != nil || next == "" {
			return faults, looked, err
		}
		after = next
	}
}

// hashAfter returns the last hash of a page that events refer to, or "" after the last page.
func (s *Store) hashAfter(ctx context.Context, after string, page int) (next string, err error) {
	err = s.db.Query(ctx, `SELECT DISTINCT hash FROM event_blobs WHERE hash > ? ORDER BY hash LIMIT 1 OFFSET ?+0`, []any{after, page - 1},
		func(r *sql.Rows) error { return r.Scan(&next) })
	return next, err
}

type blobCheck struct {
	BlobFault
	size           sql.NullInt64
	noRow, outside bool
}

// checkBlob says what is wrong with a blob, or returns "".
func (s *Store) checkBlob(ctx context.Context, c blobCheck, thorough bool) (string, error) {
	switch {
	case c.noRow:
		return BlobMissing, nil
	case c.outside && c.Place != "":
		return s.checkApart(ctx, c, thorough)
	case c.outside:
		info, err := os.Stat(s.BlobPath(c.Hash))
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return BlobMissing, nil
		case err != nil:
			return "", err
		case info.Size() != c.size.Int64:
			return BlobCut, nil
		case !thorough:
			return "", nil
		}
		same, err := fileHasHash(s.BlobPath(c.Hash), c.Hash)
		if err != nil || same {
			return "", err
		}
		return BlobChanged, nil
	case !thorough:
		return "", nil
	}
	_, err := s.Blob(ctx, c.Hash)
	if errors.Is(err, database.ErrBlob) {
		return BlobChanged, nil
	}
	return "", err
}

// fileHasHash reads a file and compares its hash.
func fileHasHash(path, hash string) (bool, error) {
	f, err := os.Open(path)
	if err != nil {
		return false, err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return false, err
	}
	return hex.EncodeToString(h.Sum(nil)) == hash, nil
}

// AcceptLostBlobs records that blobs are lost: they are no longer reported, and reading
// one says that there is none. Files with wrong bytes are moved into a folder next to
// the blobs, which is returned; "" if there were none.
func (s *Store) AcceptLostBlobs(ctx context.Context, faults []BlobFault) (folder string, err error) {
	for _, f := range faults {
		if f.What != BlobMissing && !s.db.OnServer() && f.Place == "" {
			if folder == "" {
				folder = filepath.Join(filepath.Dir(s.dir), "damaged-blobs-"+s.db.Now().UTC().Format("20060102T150405"))
				if err := os.MkdirAll(folder, 0o700); err != nil {
					return "", database.Explain(folder, err)
				}
			}
			if err := os.Rename(s.BlobPath(f.Hash), filepath.Join(folder, f.Hash)); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return folder, database.Explain(folder, err)
			}
		}
		err := s.db.Write(ctx, func(tx database.Tx) error {
			if err := tx.Exec(`DELETE FROM blobs WHERE hash = ?`, f.Hash); err != nil {
				return err
			}
			return tx.Exec(`INSERT INTO memos (kind, key, value, at) VALUES ('`+lostBlobs+`', ?, ?, ?) ON CONFLICT (kind, key) DO NOTHING`,
				f.Hash, f.What+" "+s.db.Now().UTC().Format(time.RFC3339), database.Micros(s.db.Now()))
		})
		if err != nil {
			return folder, fmt.Errorf("take note of lost blob %s: %w", f.Hash, err)
		}
	}
	return folder, nil
}
