package store

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"chorus/internal/blobstorage"
	"chorus/internal/chat"
	"chorus/internal/id"
	"chorus/internal/journal"
)

// This file keeps large blobs in a storage that several machines have: a bucket, or a shared folder. It cannot be part of a
// transaction, so the order of the steps makes up for it:
//
//	put:    the row is written or made young; the bytes are put; the commit that refers to them asks for the row again.
//	remove: the row is deleted and a memo says that the bytes are leaving, in one transaction; they are removed; the memo goes.
//
// A sweep takes only old rows, so none meets bytes that are being put. Whoever wants to put bytes that are leaving keeps them in
// the database instead. A process that dies between two steps leaves bytes without a row, which a sweep finds by listing, or a memo,
// which the next sweep finishes.

// leavingBlobs is the kind of memos for bytes that are about to be removed from the storage, by hash. The value is the storage.
const leavingBlobs = "leaving_blob"

const (
	// claimTime is how long whoever wrote or renewed such a memo may take for the removal. It is far longer than a call of a storage takes.
	claimTime = 10 * time.Minute
	// sendTime is how long after that the removal may begin: a process that was frozen meanwhile leaves it to others.
	sendTime = time.Minute
	// removeTime bounds the removal of what somebody has deleted; what takes longer is left to the next sweep.
	removeTime = 5 * time.Second
)

// apart reports whether bytes of this length are kept in the storage.
func (db *DB) apart(size int) bool { return db.storage != nil && size > maxInline }

// putApart puts bytes into the storage, unless they are in the database or leaving the storage just now: then they are, or will be, in
// the row.
func (db *DB) putApart(ctx context.Context, row blobRow) (blobRow, error) {
	found := rowAbsent
	err := db.write(ctx, func(tx *transaction) (err error) {
		found, err = db.reserve(tx, row)
		return err
	})
	if err != nil || found == rowInline || found == rowLeaving {
		return row, err
	}
	if found == rowApart {
		if size, err := db.storage.Size(ctx, row.hash); err == nil && size == int64(row.size) {
			row.data, row.place = nil, db.storage.Name()
			return row, nil
		}
	}
	if err := db.storage.Put(ctx, row.hash, row.data); err != nil {
		return row, db.storageProblem(err)
	}
	row.data, row.place = nil, db.storage.Name()
	return row, nil
}

// reserved says what was found where bytes are about to be put.
type reserved int

const (
	rowAbsent    reserved = iota
	rowInline             // the bytes are in the database
	rowApart              // they should be in the storage
	rowElsewhere          // they should be in a file, or in another storage
	rowLeaving            // the storage is about to lose them
)

// reserve writes the row of bytes that are about to be put, or makes it young, so that no sweep takes them.
func (db *DB) reserve(tx *transaction, row blobRow) (reserved, error) {
	if err := tx.alone("blob " + row.hash); err != nil {
		return rowAbsent, err
	}
	found, err := db.renew(tx, row.hash)
	if err != nil || found != rowAbsent {
		return found, err
	}
	// Looked at after the row: whoever deletes it writes the memo with it.
	var leaving int
	if err := tx.row(`SELECT count(*) FROM memos WHERE kind = '`+leavingBlobs+`' AND key = ?`, []any{row.hash}, &leaving); err != nil {
		return rowAbsent, err
	}
	if leaving > 0 {
		return rowLeaving, nil
	}
	n, err := tx.change(`INSERT INTO blobs (hash, size, data, place, touched) VALUES (?, ?, NULL, ?, ?) ON CONFLICT (hash) DO NOTHING`,
		row.hash, row.size, db.storage.Name(), micros(db.now()))
	if err == nil && n == 0 { // somebody has just kept them in the database
		return db.renew(tx, row.hash)
	}
	return rowAbsent, err
}

// renew makes a row young, if there is one, and says where its bytes are.
func (db *DB) renew(tx *transaction, hash string) (reserved, error) {
	var inline bool
	var place string
	err := tx.row(`UPDATE blobs SET touched = ? WHERE hash = ? RETURNING data IS NOT NULL, place`, []any{micros(db.now()), hash}, &inline, &place)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return rowAbsent, nil
	case err != nil:
		return rowAbsent, err
	case inline:
		return rowInline, nil
	case place == db.storage.Name():
		return rowApart, nil
	}
	return rowElsewhere, nil
}

// writeApart makes the row of bytes that were put say so.
func writeApart(tx *transaction, b blobRow, now int64) error {
	n, err := tx.change(`UPDATE blobs SET touched = ?, place = CASE WHEN data IS NULL THEN ? ELSE place END WHERE hash = ?`, now, b.place, b.hash)
	if err == nil && n == 0 {
		err = fmt.Errorf("blob %s: %w", b.hash, errSwept)
	}
	return err
}

// getApart reads bytes from the storage that a row names.
func (db *DB) getApart(ctx context.Context, hash, place string) ([]byte, error) {
	if db.storage == nil || db.storage.Name() != place {
		return nil, elsewhere(place)
	}
	data, err := db.storage.Get(ctx, hash)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w: %s has them no more: %w", journal.ErrUnknown, place, chat.ErrLost)
	}
	return data, db.storageProblem(err)
}

// elsewhere is the error of bytes that are in a storage which is not this one's: somebody has changed blobUrl and not moved what was kept before.
func elsewhere(place string) error {
	return &Problem{What: ErrDenied, Path: place, Cause: fmt.Errorf("some are kept in %s, and blobUrl does not say so: put it back, or move them first (chorus migrate --blobs-to)", place)}
}

// storageProblem makes a Problem of an error of the storage.
func (db *DB) storageProblem(err error) error {
	switch {
	case err == nil, errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, blobstorage.ErrAway):
		return err
	case errors.Is(err, blobstorage.ErrAway):
		return &Problem{What: ErrAway, Path: db.storage.Name(), Cause: err}
	}
	return &Problem{What: ErrDenied, Path: db.storage.Name(), Cause: err}
}

// RenewBlobs makes bytes young that no event refers to yet, so that no sweep takes them.
func (db *DB) RenewBlobs(ctx context.Context, hashes []string) error {
	list, err := json.Marshal(hashes)
	if err == nil && len(hashes) > 0 {
		err = db.write(ctx, func(tx *transaction) error {
			return tx.exec(`UPDATE blobs SET touched = ? WHERE hash IN (`+db.says.listed+`)`, micros(db.now()), string(list))
		})
	}
	if err != nil {
		return fmt.Errorf("renew blobs: %w", err)
	}
	return nil
}

// checkApart says what is wrong with bytes in the storage; "": nothing.
func (db *DB) checkApart(ctx context.Context, c blobCheck, thorough bool) (string, error) {
	if db.storage == nil || db.storage.Name() != c.Place {
		return "", elsewhere(c.Place)
	}
	size, err := db.storage.Size(ctx, c.Hash)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return BlobMissing, nil
	case err != nil:
		return "", db.storageProblem(err)
	case size != c.size.Int64:
		return BlobCut, nil
	case !thorough:
		return "", nil
	}
	data, err := db.storage.Get(ctx, c.Hash)
	if err != nil {
		return "", db.storageProblem(err)
	}
	if sum := sha256.Sum256(data); hex.EncodeToString(sum[:]) != c.Hash {
		return BlobChanged, nil
	}
	return "", nil
}

// owner is how the storage names this database: by a word that only it has, and by where it is, so that neither a backup of it that is
// tried elsewhere nor a copy of its folder removes what it has put since. "": it has no such word yet.
func (db *DB) owner(ctx context.Context) (string, error) {
	place := db.path
	word, err := db.Recall(ctx, "store", ownerMemo)
	if err != nil || word == nil {
		return "", err
	}
	if db.pg != nil { // nodes may know the server by different names
		err = db.query(ctx, `SELECT CAST(oid AS TEXT) FROM pg_database WHERE datname = current_database()`, nil, func(rows *sql.Rows) error { return rows.Scan(&place) })
	}
	sum := sha256.Sum256([]byte(string(word) + "\n" + place))
	return hex.EncodeToString(sum[:]), err
}

// ownerMemo is where the word is.
const ownerMemo = "blob owner"

// BlobsOfOthers reports whether the storage belongs to another database, so that this one must not remove anything there.
func (db *DB) BlobsOfOthers(ctx context.Context) (bool, error) {
	if db.storage == nil {
		return false, nil
	}
	is, err := db.storage.Owner(ctx)
	if err != nil || is == "" {
		return false, db.storageProblem(err)
	}
	ours, err := db.owner(ctx)
	return is != ours, err
}

// ownsStorage reports whether the storage's bytes are this database's, so that it may remove some. A storage that is nobody's becomes its own.
func (db *DB) ownsStorage(ctx context.Context) (bool, error) {
	if db.storage == nil {
		return false, nil
	}
	err := db.write(ctx, func(tx *transaction) error {
		return tx.exec(`INSERT INTO memos (kind, key, value, at) VALUES ('store', '`+ownerMemo+`', ?, ?) ON CONFLICT (kind, key) DO NOTHING`, id.New(), micros(db.now()))
	})
	if err != nil {
		return false, err
	}
	ours, err := db.owner(ctx)
	if err != nil {
		return false, err
	}
	is, err := db.storage.Owner(ctx)
	if err == nil && is == "" {
		if err = db.storage.SetOwner(ctx, ours); err == nil {
			is, err = db.storage.Owner(ctx) // another one may have been faster
		}
	}
	return is == ours, db.storageProblem(err)
}

// sweepApart finishes removals that were begun, and removes bytes that have no row since an instant.
func (db *DB) sweepApart(ctx context.Context, before time.Time) (int, error) {
	owns, err := db.ownsStorage(ctx)
	if err != nil || !owns {
		return 0, err
	}
	var late []string
	err = db.query(ctx, `SELECT key FROM memos WHERE kind = '`+leavingBlobs+`' AND value = ? AND at < ?`, []any{db.storage.Name(), micros(db.now().Add(-claimTime))},
		func(rows *sql.Rows) error {
			var hash string
			err := rows.Scan(&hash)
			late = append(late, hash)
			return err
		})
	for i := 0; i < len(late) && err == nil; i++ {
		err = db.removeStray(ctx, late[i])
	}
	if err != nil {
		return 0, err
	}
	total := 0
	var page []string
	look := func() error {
		strays, err := db.withoutRow(ctx, page)
		page = page[:0]
		for i := 0; i < len(strays) && err == nil; i++ {
			if err = db.removeStray(ctx, strays[i]); err == nil {
				total++
			}
		}
		return err
	}
	err = db.storage.List(ctx, before, func(hash string, _ int64) error {
		if page = append(page, hash); len(page) < sweepPage {
			return nil
		}
		return look()
	})
	if err != nil {
		return total, db.storageProblem(err)
	}
	return total, look()
}

// withoutRow are those hashes whose bytes no row says to be in the storage.
func (db *DB) withoutRow(ctx context.Context, hashes []string) (out []string, err error) {
	list, err := json.Marshal(hashes)
	if err != nil || len(hashes) == 0 {
		return nil, err
	}
	err = db.query(ctx, db.says.listed+` WHERE value NOT IN (SELECT hash FROM blobs WHERE data IS NULL AND place = ?)`, []any{string(list), db.storage.Name()}, func(rows *sql.Rows) error {
		var hash string
		err := rows.Scan(&hash)
		out = append(out, hash)
		return err
	})
	return out, err
}

// removeStray removes bytes of the storage that no row has, unless somebody else is at it.
func (db *DB) removeStray(ctx context.Context, hash string) error {
	began := db.now()
	mine := false
	err := db.write(ctx, func(tx *transaction) error {
		mine = false
		if err := tx.alone("blob " + hash); err != nil { // as reserve does
			return err
		}
		var there int
		if err := tx.row(`SELECT count(*) FROM blobs WHERE hash = ? AND data IS NULL AND place = ?`, []any{hash, db.storage.Name()}, &there); err != nil {
			return err
		}
		if there > 0 { // put again meanwhile
			return tx.exec(`DELETE FROM memos WHERE kind = '`+leavingBlobs+`' AND key = ?`, hash)
		}
		n, err := tx.change(`INSERT INTO memos (kind, key, value, at) VALUES ('`+leavingBlobs+`', ?, ?, ?)
			ON CONFLICT (kind, key) DO UPDATE SET at = excluded.at WHERE memos.value = excluded.value AND memos.at < ?`,
			hash, db.storage.Name(), micros(began), micros(began.Add(-claimTime)))
		mine = n == 1
		return err
	})
	if err != nil || !mine {
		return err
	}
	return db.remove(ctx, hash, began)
}

// remove removes bytes for which this process has written a memo at an instant, and then the memo. The memo stays when it is not
// certain that they are gone.
func (db *DB) remove(ctx context.Context, hash string, began time.Time) error {
	if since := db.now().Sub(began); since > sendTime || since < 0 {
		return nil // a later sweep claims it anew
	}
	if err := db.storage.Remove(ctx, hash); err != nil {
		return db.storageProblem(err)
	}
	return db.write(ctx, func(tx *transaction) error {
		return tx.exec(`DELETE FROM memos WHERE kind = '`+leavingBlobs+`' AND key = ? AND at = ?`, hash, micros(began))
	})
}

// leaving is a blob whose row is gone and whose bytes are still in the storage.
type leaving struct {
	hash string
	at   int64 // of the memo that says so
}

// removeLeft removes what a transaction has taken the rows of. A storage that is another database's, or away, keeps them; a later
// sweep tries again.
func (db *DB) removeLeft(ctx context.Context, left []leaving) {
	if len(left) == 0 {
		return
	}
	if owns, err := db.ownsStorage(ctx); err != nil || !owns {
		return
	}
	for _, one := range left {
		if db.remove(ctx, one.hash, instant(one.at)) != nil {
			return
		}
	}
}

// removeSoon is removeLeft for somebody who waits for a commit.
func (db *DB) removeSoon(ctx context.Context, left []leaving) {
	if len(left) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), removeTime)
	defer cancel()
	db.removeLeft(ctx, left)
}

// needsBlob is why a transaction is taken back: it needs bytes of the storage, which are not fetched while it is open.
type needsBlob struct {
	in   *intent
	hash string
}

func (n *needsBlob) Error() string { return "blob " + n.hash + " must be fetched first" }

// doFetching is do for work that may need bytes of the storage.
func (db *DB) doFetching(ctx context.Context, j *job) error {
	for {
		err := db.do(ctx, j)
		var need *needsBlob
		if !errors.As(err, &need) {
			return err
		}
		data, err := db.Blob(ctx, need.hash)
		if err != nil && !errors.Is(err, chat.ErrLost) {
			return err
		}
		if need.in.fetched == nil {
			need.in.fetched = map[string][]byte{}
		}
		need.in.fetched[need.hash] = data // nil: lost
		*j = job{work: j.work}
	}
}
