package blobs

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"chorus/internal/database"
)

// Unused describes what a sweep would remove.
type Unused struct {
	Count int
	Bytes int64
}

// UnusedBlobs counts the bytes that no event refers to and nobody has put since olderThan
// ago, and the unfinished files that belong to nothing. It does not count storage objects
// that belong to nothing, because listing them takes long.
func (s *Store) UnusedBlobs(ctx context.Context, olderThan time.Duration) (Unused, error) {
	var out Unused
	before := s.db.Now().Add(-olderThan)
	err := s.db.Query(ctx, `SELECT count(*), coalesce(sum(size), 0) FROM blobs WHERE touched < ? AND hash IN (`+unusedHashes+`)`,
		[]any{database.Micros(before)}, func(rows *sql.Rows) error { return rows.Scan(&out.Count, &out.Bytes) })
	if err != nil {
		return out, fmt.Errorf("count unused blobs: %w", err)
	}
	err = s.strayFiles(ctx, before, func(_, _ string, size int64) error {
		out.Count, out.Bytes = out.Count+1, out.Bytes+size
		return nil
	})
	if err != nil {
		return out, fmt.Errorf("count unused blobs: %w", err)
	}
	return out, nil
}

// strayFiles passes to found each file below the blobs' folder that was last written before an
// instant and has no row, because its writer died before the commit. hash is "" for an unfinished
// file.
func (s *Store) strayFiles(ctx context.Context, before time.Time, found func(path, hash string, size int64) error) error {
	if s.db.OnServer() {
		return nil
	}
	folders, err := os.ReadDir(s.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, folder := range folders {
		if !folder.IsDir() || len(folder.Name()) != 2 {
			continue
		}
		files, err := os.ReadDir(filepath.Join(s.dir, folder.Name()))
		if err != nil {
			return err
		}
		for _, f := range files {
			hash, ours := strayName(folder.Name(), f.Name())
			info, err := f.Info()
			if err != nil || !ours || !info.Mode().IsRegular() || !info.ModTime().Before(before) {
				continue // gone meanwhile, not ours, or recent
			}
			if hash != "" {
				n, err := s.db.Count(ctx, fileRows, hash)
				if err != nil {
					return err
				}
				if n > 0 {
					continue
				}
			}
			if err := found(filepath.Join(s.dir, folder.Name(), f.Name()), hash, info.Size()); err != nil {
				return err
			}
		}
	}
	return nil
}

// hashLength is the length of a SHA-256 in hexadecimal digits.
const hashLength = 64

// strayName recognises our files. The hash is "" for an unfinished one.
func strayName(folder, name string) (hash string, ours bool) {
	if len(name) > len(newPrefix) && name[:len(newPrefix)] == newPrefix {
		return "", true
	}
	if len(name) != hashLength || name[:2] != folder {
		return "", false
	}
	for _, r := range name {
		if (r < '0' || r > '9') && (r < 'a' || r > 'f') {
			return "", false
		}
	}
	return name, true
}

// InFolder reports whether a folder has at least one blob.
func InFolder(dir string) bool {
	folders, err := os.ReadDir(dir)
	if err != nil {
		return false
	}
	for _, folder := range folders {
		files, err := os.ReadDir(filepath.Join(dir, folder.Name()))
		if err != nil {
			continue
		}
		for _, f := range files {
			if hash, ours := strayName(folder.Name(), f.Name()); ours && hash != "" {
				return true
			}
		}
	}
	return false
}

// Files returns the blobs of a database file that are in files of their own, by
// hash, with their sizes. Nobody may have the database open.
func Files(ctx context.Context, path string) (map[string]int64, error) {
	db, err := database.OpenToRead(path)
	if err != nil {
		return nil, database.Explain(path, err)
	}
	defer db.Close()
	rows, err := db.QueryContext(ctx, `SELECT hash, size FROM blobs WHERE data IS NULL`)
	if err != nil {
		return nil, database.Explain(path, err)
	}
	defer rows.Close()
	out := map[string]int64{}
	for rows.Next() {
		var hash string
		var size int64
		if err := rows.Scan(&hash, &size); err != nil {
			return nil, database.Explain(path, err)
		}
		if len(hash) == hashLength {
			out[hash] = size
		}
	}
	return out, database.Explain(path, rows.Err())
}

// MoveBeside marks a copy as having its large blobs next to it, as in a backup,
// and as not owning the storage. If the copy is tried while the original is
// still in use, it must not remove anything there.
func MoveBeside(ctx context.Context, path string) error {
	db, err := database.OpenFile(path, []string{database.BusyTimeout})
	if err != nil {
		return err
	}
	defer db.Close()
	for _, change := range []string{`UPDATE blobs SET place = '' WHERE place <> ''`, `DELETE FROM memos WHERE kind = '` + LeavingKind + `' OR kind = 'store' AND key = '` + ownerMemo + `'`} {
		if _, err := db.ExecContext(ctx, change); err != nil {
			return err
		}
	}
	return nil
}
