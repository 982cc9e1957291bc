// Package blobstorage says what a place must promise that keeps attachments and long results outside of the database, and has the one
// that is a folder.
//
// Bytes are named by their SHA-256, so putting them twice, after a crash or from two machines, is the same as once. When Put
// returns they are there for everybody who uses the place; whoever reads them checks them.
package blobstorage

import (
	"context"
	"errors"
	"time"
)

// ErrAway: the place cannot be reached now. It was tried for a while, and may go well later.
var ErrAway = errors.New("the storage for attachments is away")

// Storage is such a place. Every call ends by itself, also when nothing answers. A hash is 64 hexadecimal digits.
type Storage interface {
	// Name is how rows of the database name the place. It is the same on every machine, has no secrets, and does not change when the place
	// is reached another way.
	Name() string
	// Put keeps bytes; those that are there already are replaced, or left where they are surely the same.
	Put(ctx context.Context, hash string, data []byte) error
	// Get gives the bytes as they are there, which may be others; fs.ErrNotExist: there are none.
	Get(ctx context.Context, hash string) ([]byte, error)
	// Size is the number of bytes; fs.ErrNotExist: there are none.
	Size(ctx context.Context, hash string) (int64, error)
	// Remove tries once. Only nil says that they are gone, and that nothing which is still on its way removes them later.
	Remove(ctx context.Context, hash string) error
	// List gives all that were put before an instant, by the clock of the place.
	List(ctx context.Context, before time.Time, found func(hash string, size int64) error) error
	// Owner says which database's bytes these are, and so who may remove some; "": nobody has said so.
	Owner(ctx context.Context) (string, error)
	// SetOwner says so.
	SetOwner(ctx context.Context, owner string) error
	// Check writes, reads, lists and removes something that is not among the blobs.
	Check(ctx context.Context) error
	// Close ends connections that wait for more. The place can be used again.
	Close() error
}

// OwnerFile is where the owner's name is kept.
const OwnerFile = "chorus-owner"

// hashLength is that of a SHA-256 in hexadecimal digits.
const hashLength = 64

// IsHash reports whether a name is that of a blob.
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
