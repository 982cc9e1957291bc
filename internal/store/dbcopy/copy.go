package dbcopy

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"chorus/internal/chat"
	"chorus/internal/database"
	"chorus/internal/store"
	"chorus/internal/store/blobs"
)

// Source is an open database that is copied while others keep reading and writing.
type Source struct{ DB *store.DB }

// CopyTo writes a copy of the whole database, as it is now, to a file
// that does not exist yet. progress may be nil.
func (s Source) CopyTo(ctx context.Context, to string, progress func(done, all int)) error {
	if s.DB.OnServer() {
		return copyServer(ctx, s.DB, to, progress)
	}
	err := s.DB.CopyFile(ctx, to, progress)
	if err == nil && s.DB.BlobStorage() != nil {
		err = database.Explain(to, blobs.MoveBeside(ctx, to))
	}
	return err
}

// BytesOutside reads the bytes of a blob that is not in the database: from its file or
// from the storage. It fails with fs.ErrNotExist if they are lost.
func (s Source) BytesOutside(ctx context.Context, hash string) ([]byte, error) {
	data, err := s.DB.Blob(ctx, hash)
	if errors.Is(err, chat.ErrLost) && !errors.Is(err, database.ErrBlob) {
		err = fmt.Errorf("%w: %w", fs.ErrNotExist, err)
	}
	return data, err
}

// copyServer writes everything in a server's database, as it is at one moment, into a file that
// does not exist yet. `chorus migrate --from sqlite:… --to …` can put it onto a server again.
func copyServer(ctx context.Context, db *store.DB, to string, progress func(done, all int)) error {
	tables, err := movable(ctx, db)
	if err != nil {
		return fmt.Errorf("copy the database: %w", err)
	}
	made, err := store.Open(ctx, store.Options{Path: to})
	if err != nil {
		return err
	}
	m := &move{from: db, to: made, tables: tables, copying: true}
	if progress != nil {
		m.progress = func(MovedTable) { progress(len(m.done), len(tables)) }
	}
	err = errors.Join(m.run(ctx), made.Close())
	if gone := os.Remove(database.GuardPath(to)); !errors.Is(gone, fs.ErrNotExist) { // a copy gets its guard where it is restored
		err = errors.Join(err, gone)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("copy the database: %w", err), os.Remove(to))
	}
	return nil
}

// Copies handles databases that nobody has open, such as those of backups.
type Copies struct{}

// BlobFiles returns the blobs in files of their own, by hash, with their sizes.
func (Copies) BlobFiles(ctx context.Context, path string) (map[string]int64, error) {
	return blobs.Files(ctx, path)
}

// Check reads a whole database and reports damage.
func (Copies) Check(ctx context.Context, path string) error { return database.CheckFile(ctx, path) }

// Guard sets the guard of the database at path to the state of another database,
// which is about to replace it, and returns the guard's file.
func (Copies) Guard(ctx context.Context, path, other string) (string, error) {
	return database.SetGuard(ctx, path, other, store.Schema().Version)
}
