package blobs

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"chorus/internal/blobstorage"
	"chorus/internal/chat"
	"chorus/internal/database"
	"chorus/internal/digest"
	"chorus/internal/id"
	"chorus/internal/journal"
)

// This file keeps large blobs in a storage shared by several machines: a bucket
// or a shared folder. The storage cannot take part in a transaction, so the
// order of the steps has to ensure consistency:
//
//	put:    write or refresh the row; put the bytes; the commit that refers to them checks the row again.
//	remove: in one transaction, delete the row and write a memo that the bytes are leaving; remove them; delete the memo.
//
// A sweep only takes old rows, so it never meets bytes that are being put. Whoever wants to put
// bytes that are leaving stores them in the database instead. A process that dies between two
// steps leaves either bytes without a row, which a sweep finds by listing, or a memo, which the
// next sweep completes.

// LeavingKind is the kind of memos for bytes that are about to be removed
// from the storage, by hash. The value is the storage.
const LeavingKind = "leaving_blob"

const (
	// claimTime is how long the process that wrote or renewed such a memo may take for
	// the removal. It is far longer than a call of a storage takes.
	claimTime = 10 * time.Minute
	// sendTime is how long after that the removal may begin. A process
	// that was frozen for longer leaves it to others.
	sendTime = time.Minute
	// removeTime limits the removal of what somebody has deleted. What takes longer is left to the next sweep.
	removeTime = 5 * time.Second
)

// KeptApart reports whether bytes of this length are kept in the storage.
func (s *Store) KeptApart(size int) bool { return s.storage != nil && size > MaxInline }

// putApart puts bytes into the storage. If they are in the database or just
// leaving the storage, they are, or will be, in the row instead.
func (s *Store) putApart(ctx context.Context, row Row) (Row, error) {
	found := rowAbsent
	err := s.db.Write(ctx, func(tx database.Tx) (err error) {
		found, err = s.reserve(tx, row)
		return err
	})
	if err != nil || found == rowInline || found == rowLeaving {
		return row, err
	}
	if found == rowApart {
		if size, err := s.storage.Size(ctx, row.Hash); err == nil && size == int64(row.size) {
			row.data, row.place = nil, s.storage.Name()
			return row, nil
		}
	}
	if err := s.storage.Put(ctx, row.Hash, row.data); err != nil {
		return row, s.StorageProblem(err)
	}
	row.data, row.place = nil, s.storage.Name()
	return row, nil
}

// reserved says what was found where bytes are about to be put.
type reserved int

const (
	rowAbsent    reserved = iota
	rowInline             // the bytes are in the database
	rowApart              // they should be in the storage
	rowElsewhere          // they should be in a file, or in another storage
	rowLeaving            // the storage is about to remove them
)

// reserve writes or refreshes the row of bytes that are about to be put, so that no sweep takes them.
func (s *Store) reserve(tx database.Tx, row Row) (reserved, error) {
	if err := tx.Alone("blob " + row.Hash); err != nil {
		return rowAbsent, err
	}
	found, err := s.renew(tx, row.Hash)
	if err != nil || found != rowAbsent {
		return found, err
	}
	// Checked after the row, because the row and the memo are changed together.
	var leaving int
	if err := tx.Row(`SELECT count(*) FROM memos WHERE kind = '`+LeavingKind+`' AND key = ?`, []any{row.Hash}, &leaving); err != nil {
		return rowAbsent, err
	}
	if leaving > 0 {
		return rowLeaving, nil
	}
	n, err := tx.Change(`INSERT INTO blobs (hash, size, data, place, touched) VALUES (?, ?, NULL, ?, ?) ON CONFLICT (hash) DO NOTHING`,
		row.Hash, row.size, s.storage.Name(), database.Micros(s.db.Now()))
	if err == nil && n == 0 { // somebody has just stored them in the database
		return s.renew(tx, row.Hash)
	}
	return rowAbsent, err
}

// renew refreshes a row if there is one, and says where its bytes are.
func (s *Store) renew(tx database.Tx, hash string) (reserved, error) {
	var inline bool
	var place string
	err := tx.Row(`UPDATE blobs SET touched = ? WHERE hash = ? RETURNING data IS NOT NULL, place`, []any{database.Micros(s.db.Now()), hash}, &inline, &place)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return rowAbsent, nil
	case err != nil:
		return rowAbsent, err
	case inline:
		return rowInline, nil
	case place == s.storage.Name():
		return rowApart, nil
	}
	return rowElsewhere, nil
}

// writeApart marks the row of bytes that were put.
func writeApart(tx database.Tx, b Row, now int64) error {
	n, err := tx.Change(`UPDATE blobs SET touched = ?, place = CASE WHEN data IS NULL THEN ? ELSE place END WHERE hash = ?`, now, b.place, b.Hash)
	if err == nil && n == 0 {
		err = fmt.Errorf("blob %s: %w", b.Hash, ErrSwept)
	}
	return err
}

// getApart reads bytes from the storage that a row names.
func (s *Store) getApart(ctx context.Context, hash, place string) ([]byte, error) {
	if s.storage == nil || s.storage.Name() != place {
		return nil, elsewhere(place)
	}
	data, err := s.storage.Get(ctx, hash)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w: %s has them no more: %w", journal.ErrUnknown, place, chat.ErrLost)
	}
	return data, s.StorageProblem(err)
}

// elsewhere is the error for bytes in another storage than this one: somebody has
// changed blobUrl without moving what was stored before.
func elsewhere(place string) error {
	return &database.Problem{What: database.ErrDenied, Path: place, Cause: fmt.Errorf("some are kept in %s, and blobUrl does not say so: put it back, or move them first (chorus migrate --blobs-to)", place)}
}

// StorageProblem turns an error of the storage into a Problem.
func (s *Store) StorageProblem(err error) error {
	switch {
	case err == nil, errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, blobstorage.ErrAway):
		return err
	case errors.Is(err, blobstorage.ErrAway):
		return &database.Problem{What: database.ErrAway, Path: s.storage.Name(), Cause: err}
	}
	return &database.Problem{What: database.ErrDenied, Path: s.storage.Name(), Cause: err}
}

// RenewBlobs refreshes bytes that no event refers to yet, so that no sweep takes them.
func (s *Store) RenewBlobs(ctx context.Context, hashes []string) error {
	list, err := json.Marshal(hashes)
	if err == nil && len(hashes) > 0 {
		err = s.db.Write(ctx, func(tx database.Tx) error {
			return tx.Exec(`UPDATE blobs SET touched = ? WHERE hash IN (`+s.db.Listed()+`)`, database.Micros(s.db.Now()), string(list))
		})
	}
	if err != nil {
		return fmt.Errorf("renew blobs: %w", err)
	}
	return nil
}

// checkApart says what is wrong with bytes in the storage, or returns "".
func (s *Store) checkApart(ctx context.Context, c blobCheck, thorough bool) (string, error) {
	if s.storage == nil || s.storage.Name() != c.Place {
		return "", elsewhere(c.Place)
	}
	size, err := s.storage.Size(ctx, c.Hash)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return BlobMissing, nil
	case err != nil:
		return "", s.StorageProblem(err)
	case size != c.size.Int64:
		return BlobCut, nil
	case !thorough:
		return "", nil
	}
	data, err := s.storage.Get(ctx, c.Hash)
	if err != nil {
		return "", s.StorageProblem(err)
	}
	if digest.Of(data) != c.Hash {
		return BlobChanged, nil
	}
	return "", nil
}

// owner is how the storage identifies this database: by a word that only this database has, and by
// its location. So neither a backup that is tried elsewhere nor a copy of its folder removes what
// it has put since. It returns "" if there is no such word yet.
func (s *Store) owner(ctx context.Context) (string, error) {
	place := s.db.Path()
	word := ""
	err := s.db.Query(ctx, `SELECT value FROM memos WHERE kind = 'store' AND key = '`+ownerMemo+`'`, nil, func(rows *sql.Rows) error { return rows.Scan(&word) })
	if err != nil || word == "" {
		return "", err
	}
	if s.db.OnServer() { // nodes may reach the server by different names
		err = s.db.Query(ctx, `SELECT CAST(oid AS TEXT) FROM pg_database WHERE datname = current_database()`, nil, func(rows *sql.Rows) error { return rows.Scan(&place) })
	}
	return digest.Of(word + "\n" + place), err
}

// ownerMemo is the key under which the word is stored.
const ownerMemo = "blob owner"

// BlobsOfOthers reports whether the storage belongs to another database,
// so that this one must not remove anything there.
func (s *Store) BlobsOfOthers(ctx context.Context) (bool, error) {
	if s.storage == nil {
		return false, nil
	}
	is, err := s.storage.Owner(ctx)
	if err != nil || is == "" {
		return false, s.StorageProblem(err)
	}
	ours, err := s.owner(ctx)
	return is != ours, err
}

// OwnsStorage reports whether this database owns the storage's bytes and may
// therefore remove some. A storage without an owner becomes its own.
func (s *Store) OwnsStorage(ctx context.Context) (bool, error) {
	if s.storage == nil {
		return false, nil
	}
	err := s.db.Write(ctx, func(tx database.Tx) error {
		return tx.Exec(`INSERT INTO memos (kind, key, value, at) VALUES ('store', '`+ownerMemo+`', ?, ?) ON CONFLICT (kind, key) DO NOTHING`, id.New(), database.Micros(s.db.Now()))
	})
	if err != nil {
		return false, err
	}
	ours, err := s.owner(ctx)
	if err != nil {
		return false, err
	}
	is, err := s.storage.Owner(ctx)
	if err == nil && is == "" {
		if err = s.storage.SetOwner(ctx, ours); err == nil {
			is, err = s.storage.Owner(ctx) // another database may have been faster
		}
	}
	return is == ours, s.StorageProblem(err)
}

// sweepApart completes removals that have begun, and removes bytes that have had no row since an instant.
func (s *Store) sweepApart(ctx context.Context, before time.Time) (int, error) {
	owns, err := s.OwnsStorage(ctx)
	if err != nil || !owns {
		return 0, err
	}
	var late []string
	err = s.db.Query(ctx, `SELECT key FROM memos WHERE kind = '`+LeavingKind+`' AND value = ? AND at < ?`, []any{s.storage.Name(), database.Micros(s.db.Now().Add(-claimTime))},
		database.Column(&late))
	for i := 0; i < len(late) && err == nil; i++ {
		err = s.removeStray(ctx, late[i])
	}
	if err != nil {
		return 0, err
	}
	total := 0
	var page []string
	look := func() error {
		strays, err := s.withoutRow(ctx, page)
		page = page[:0]
		for i := 0; i < len(strays) && err == nil; i++ {
			if err = s.removeStray(ctx, strays[i]); err == nil {
				total++
			}
		}
		return err
	}
	err = s.storage.List(ctx, before, func(hash string, _ int64) error {
		if page = append(page, hash); len(page) < sweepPage {
			return nil
		}
		return look()
	})
	if err != nil {
		return total, s.StorageProblem(err)
	}
	return total, look()
}

// withoutRow returns the hashes for which no row says that the bytes are in the storage.
func (s *Store) withoutRow(ctx context.Context, hashes []string) (out []string, err error) {
	list, err := json.Marshal(hashes)
	if err != nil || len(hashes) == 0 {
		return nil, err
	}
	err = s.db.Query(ctx, s.db.Listed()+` WHERE value NOT IN (SELECT hash FROM blobs WHERE data IS NULL AND place = ?)`, []any{string(list), s.storage.Name()}, database.Column(&out))
	return out, err
}

// removeStray removes bytes of the storage that have no row, unless somebody else is working on them.
func (s *Store) removeStray(ctx context.Context, hash string) error {
	began := s.db.Now()
	mine := false
	err := s.db.Write(ctx, func(tx database.Tx) error {
		mine = false
		if err := tx.Alone("blob " + hash); err != nil { // like reserve
			return err
		}
		var there int
		if err := tx.Row(`SELECT count(*) FROM blobs WHERE hash = ? AND data IS NULL AND place = ?`, []any{hash, s.storage.Name()}, &there); err != nil {
			return err
		}
		if there > 0 { // put again meanwhile
			return tx.Exec(`DELETE FROM memos WHERE kind = '`+LeavingKind+`' AND key = ?`, hash)
		}
		n, err := tx.Change(`INSERT INTO memos (kind, key, value, at) VALUES ('`+LeavingKind+`', ?, ?, ?)
			ON CONFLICT (kind, key) DO UPDATE SET at = excluded.at WHERE memos.value = excluded.value AND memos.at < ?`,
			hash, s.storage.Name(), database.Micros(began), database.Micros(began.Add(-claimTime)))
		mine = n == 1
		return err
	})
	if err != nil || !mine {
		return err
	}
	return s.remove(ctx, hash, began)
}

// remove removes bytes for which this process wrote a memo at an instant, and then the
// memo. The memo stays if it is not certain that they are gone.
func (s *Store) remove(ctx context.Context, hash string, began time.Time) error {
	if since := s.db.Now().Sub(began); since > sendTime || since < 0 {
		return nil // a later sweep claims it again
	}
	if err := s.storage.Remove(ctx, hash); err != nil {
		return s.StorageProblem(err)
	}
	return s.db.Write(ctx, func(tx database.Tx) error {
		return tx.Exec(`DELETE FROM memos WHERE kind = '`+LeavingKind+`' AND key = ? AND at = ?`, hash, database.Micros(began))
	})
}

// Leaving is a blob without a row whose bytes are still in the storage.
type Leaving struct {
	hash string
	at   int64 // time of the memo that says so
}

// removeLeft removes the bytes whose rows a transaction has removed. If the storage belongs
// to another database or cannot be reached, a later sweep tries again.
func (s *Store) removeLeft(ctx context.Context, left []Leaving) {
	if len(left) == 0 {
		return
	}
	if owns, err := s.OwnsStorage(ctx); err != nil || !owns {
		return
	}
	for _, one := range left {
		if s.remove(ctx, one.hash, database.Time(one.at)) != nil {
			return
		}
	}
}

// RemoveBlobsSoon is removeLeft for callers that wait for a commit.
func (s *Store) RemoveBlobsSoon(ctx context.Context, left []Leaving) {
	if len(left) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), removeTime)
	defer cancel()
	s.removeLeft(ctx, left)
}
