// Package documents keeps the texts that all machines on one database share (settings, rules,
// agents) equal to files in the homes of those machines, where people read and edit them.
//
// The database is authoritative and a file is a copy. An edited file becomes the next version. A
// document that was changed elsewhere is written into the file. If both were changed, the database
// wins, and the file's text is kept next to it. The home records what a copy was made from, so that
// a file that a person removed can be distinguished from one that never existed: nothing is removed
// from the database because it is missing on a machine that never had it.
package documents

import (
	"context"
	"errors"
	"time"
)

// ErrMoved means that the document no longer has the version that was to be changed.
var ErrMoved = errors.New("the document was changed by somebody else")

// Head describes a document without its text. Version 0 means that there never was one.
type Head struct {
	Name    string
	Version int64
	Seq     int64 // its last change, numbered among the changes of all documents
	Digest  string
	Deleted bool
}

// There reports whether the document exists.
func (h Head) There() bool { return h.Version > 0 && !h.Deleted }

// Document is one version of a text.
type Document struct {
	Head
	Body []byte
}

// Version says who changed a document, and when.
type Version struct {
	Version int64
	Digest  string // "" if it was removed
	By      string
	At      time.Time
}

// Store keeps documents. A change names the version it is based on, 0 for a new
// document, and fails with ErrMoved if there is a newer one.
type Store interface {
	Head(ctx context.Context, name string) (Head, error)
	Get(ctx context.Context, name string) (Document, error)
	Put(ctx context.Context, name string, body []byte, onVersion int64, by string) (Head, error)
	Delete(ctx context.Context, name string, onVersion int64, by string) (Head, error)
	// List returns the documents whose names begin with prefix, by name, including removed ones.
	List(ctx context.Context, prefix string) ([]Head, error)
	// Changed returns the documents that changed after a number, in the order of their changes.
	Changed(ctx context.Context, after int64) ([]Head, error)
	// Last returns the number of the last change.
	Last(ctx context.Context) (int64, error)
	// Identity identifies the database, so that notes about another one are ignored.
	Identity(ctx context.Context) (string, error)
}
