// Package id makes the ids of things that Chorus creates: ULIDs in lower case,
// which sort by time and are safe as file names everywhere.
package id

import (
	"crypto/sha256"
	"fmt"
	"strings"

	"github.com/oklog/ulid/v2"
)

// New returns a new id, larger than any made earlier in this process.
func New() string { return strings.ToLower(ulid.Make().String()) }

// Of returns the same id whenever it is given the same texts, for things that
// must be created only once. It does not sort by time.
func Of(texts ...string) string {
	h := sha256.New()
	for _, t := range texts {
		fmt.Fprintf(h, "%d:%s", len(t), t)
	}
	var u ulid.ULID
	copy(u[:], h.Sum(nil))
	return strings.ToLower(u.String())
}
