// Package documents keeps the texts that all machines on one database share (settings, rules, agents) equal to files in the
// homes of those machines, where people read and edit them.
//
// The database is the truth, a file is a copy. An edited file becomes the next version; a document that was changed elsewhere
// is written into the file. Where both were changed the database wins, and what stood in the file is kept beside it. What a
// copy was made from is noted in the home, so that a file that a person removed can be told from one that was never there:
// nothing is removed from the database because it is missing on a machine that never had it.
package documents

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"time"
)

// ErrMoved: the document is no longer of the version that was to be changed.
var ErrMoved = errors.New("the document was changed by somebody else")

// Head is what is known of a document without its text. Version 0: there never was one.
type Head struct {
	Name    string
	Version int64
	Seq     int64 // its last change among the changes of all documents
	Digest  string
	Deleted bool
}

// There reports whether the document has a text.
func (h Head) There() bool { return h.Version > 0 && !h.Deleted }

// Document is one version of a text.
type Document struct {
	Head
	Body []byte
}

// Version is who changed a document, and when.
type Version struct {
	Version int64
	Digest  string // "": it was removed
	By      string
	At      time.Time
}

// Store keeps documents. A change names the version that it is made on, 0 for a new one, and fails with ErrMoved when there
// is another by now.
type Store interface {
	Head(ctx context.Context, name string) (Head, error)
	Get(ctx context.Context, name string) (Document, error)
	Put(ctx context.Context, name string, body []byte, onVersion int64, by string) (Head, error)
	Delete(ctx context.Context, name string, onVersion int64, by string) (Head, error)
	// List gives the documents whose names begin with prefix, also removed ones, by name.
	List(ctx context.Context, prefix string) ([]Head, error)
	// Changed gives the documents that changed after a number, in the order of their changes.
	Changed(ctx context.Context, after int64) ([]Head, error)
	// Last is the number of the last change.
	Last(ctx context.Context) (int64, error)
	// Identity names the database, so that notes about another one are not believed.
	Identity(ctx context.Context) (string, error)
}

// Digest is what texts are compared by.
func Digest(body []byte) string {
	sum := sha256.Sum256(body)
	return hex.EncodeToString(sum[:])
}
