// Package blobstorage defines what a storage for attachments and long results outside of
// the database must provide, and implements one that is a folder.
//
// Bytes are named by their SHA-256, so putting them twice, after a crash or from two
// machines, has the same effect as once. When Put returns, they are available to
// everybody who uses the storage; readers verify them.
package blobstorage

import (
	"context"
	"errors"
	"time"
)

// ErrAway means that the storage cannot be reached now. It was retried for a while, and may work later.
var ErrAway = errors.New("the storage for attachments is away")

// Storage is such a storage. Every call returns after a limited time, even
// if nothing answers. A hash is 64 hexadecimal digits.
type Storage interface {
	// Name is how rows of the database name the storage. It is the same on every machine, contains
	// no secrets, and does not change if the storage is reached in another way.
	Name() string
	// Put stores bytes. Existing ones are replaced, or left if they are certainly the same.
	Put(ctx context.Context, hash string, data []byte) error
	// Get returns the stored bytes, which may have changed, or fails with fs.ErrNotExist.
	Get(ctx context.Context, hash string) ([]byte, error)
	// Size returns the number of bytes, or fails with fs.ErrNotExist.
	Size(ctx context.Context, hash string) (int64, error)
	// Remove tries once. Only nil means that they are gone and that no pending request can remove them later.
	Remove(ctx context.Context, hash string) error
	// List returns everything that was put before an instant, according to the storage's clock.
	List(ctx context.Context, before time.Time, found func(hash string, size int64) error) error
	// Owner returns the database that owns the bytes, and may therefore remove some, or "" if none is set.
	Owner(ctx context.Context) (string, error)
	// SetOwner sets the owner.
	SetOwner(ctx context.Context, owner string) error
	// Check writes, reads, lists and removes something other than a blob.
	Check(ctx context.Context) error
	// Close closes idle connections. The storage can be used again.
	Close() error
}

// OwnerFile is where the owner's name is stored.
const OwnerFile = "chorus-owner"

// hashLength is the length of a SHA-256 in hexadecimal digits.
const hashLength = 64

// IsHash reports whether a name is a blob's.
func IsHash(name string) bool {
	if len(name) != hashLength {
		return false
	}
	for _, r := range name {
		if (r < '0' || r > '9') && (r < 'a' || r > 'f') {
			return false
		}
	}
	return true
}
