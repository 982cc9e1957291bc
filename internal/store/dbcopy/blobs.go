package dbcopy

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"chorus/internal/blobstorage"
	"chorus/internal/chat"
	"chorus/internal/database"
	"chorus/internal/store"
	"chorus/internal/store/blobs"
)

// MovedBlobs is the result of MoveBlobs.
type MovedBlobs struct {
	Moved int      `json:"moved"`
	Bytes int64    `json:"bytes"`
	Lost  []string `json:"lost"` // those that were lost before, and remain so
}

// MoveBlobs moves the large blobs of a database into a storage. If to is nil, it moves them into
// the database, or into files of the home for a file database. Each blob is checked by its hash
// when it is read, written, and read back, before its row is changed; then the old copy is removed.
// An interrupted move has moved some blobs and can be run again to continue. No node may use the
// database meanwhile: one with a different blobUrl would not find what was moved.
func MoveBlobs(ctx context.Context, db *store.DB, to blobstorage.Storage, progress func(done, all int)) (out MovedBlobs, err error) {
	fail := func(err error) (MovedBlobs, error) { return out, fmt.Errorf("move blobs: %w", err) }
	out.Lost = []string{}
	if db.OnServer() {
		if err := (&move{from: db, to: db}).nobody(ctx); err != nil {
			return fail(err)
		}
	}
	owns, err := db.OwnsStorage(ctx)
	if err != nil {
		return fail(err)
	}
	m := blobMove{db: db, to: to, owns: owns}
	todo, err := m.list(ctx)
	if err != nil {
		return fail(err)
	}
	for i, b := range todo {
		moved, err := m.one(ctx, b)
		if err != nil {
			return fail(fmt.Errorf("%s: %w", b.hash, err))
		}
		if moved {
			out.Moved, out.Bytes = out.Moved+1, out.Bytes+b.size
		} else {
			out.Lost = append(out.Lost, b.hash)
		}
		if progress != nil {
			progress(i+1, len(todo))
		}
	}
	return out, nil
}

// blobMove is a move of blobs in progress.
type blobMove struct {
	db   *store.DB
	to   blobstorage.Storage // nil for the database or the home
	owns bool                // it owns the source storage and may remove blobs there
}

type placedBlob struct {
	hash    string
	size    int64
	outside bool
	place   string
}

// list returns the blobs that are not yet where they should be.
func (m blobMove) list(ctx context.Context) (out []placedBlob, err error) {
	query, args := `data IS NULL AND place <> ''`, []any{}
	if m.to != nil {
		query, args = `size > ? AND (data IS NOT NULL OR place <> ?)`, []any{blobs.MaxInline, m.to.Name()}
	}
	err = m.db.Query(ctx, `SELECT hash, size, data IS NULL, place FROM blobs WHERE `+query+` ORDER BY hash`, args, database.Fill(&out, func(rows *sql.Rows, b *placedBlob) error {
		return rows.Scan(&b.hash, &b.size, &b.outside, &b.place)
	}))
	return out, err
}

// one moves a blob. It returns false if the blob is lost.
func (m blobMove) one(ctx context.Context, b placedBlob) (bool, error) {
	data, err := m.db.Blob(ctx, b.hash)
	if errors.Is(err, chat.ErrLost) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	place, inline := "", any(nil)
	switch {
	case m.to != nil:
		place = m.to.Name()
		err = m.to.Put(ctx, b.hash, data)
		if err == nil {
			var there []byte
			if there, err = m.to.Get(ctx, b.hash); err == nil && !bytes.Equal(there, data) {
				err = fmt.Errorf("%s has other bytes than were put", place)
			}
		}
	case m.db.OnServer():
		inline = data
	default:
		err = m.db.WriteBlobFile(b.hash, data)
	}
	if err != nil {
		return false, err
	}
	err = m.db.Write(ctx, func(tx database.Tx) error {
		return tx.Exec(`UPDATE blobs SET data = ?, place = ? WHERE hash = ?`, inline, place, b.hash)
	})
	if err != nil {
		return false, err
	}
	switch {
	case b.place != "" && m.owns && m.db.BlobStorage().Name() == b.place:
		_ = m.db.BlobStorage().Remove(ctx, b.hash) // otherwise a sweep finds it
	case b.place == "" && b.outside:
		if err := os.Remove(m.db.BlobPath(b.hash)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return true, database.Explain(m.db.BlobPath(b.hash), err)
		}
	}
	return true, nil
}
