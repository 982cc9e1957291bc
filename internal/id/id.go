// Package id makes the ids that Chorus gives to things of its own: ULIDs in lower
// case, so that they sort by time and are safe as file names everywhere.
package id

import (
	"crypto/sha256"
	"fmt"
	"strings"

	"github.com/oklog/ulid/v2"
)

// New is a new id, larger than any made earlier in this process.
func New() string { return strings.ToLower(ulid.Make().String()) }

// Of is the id that always belongs to these texts, for what must be made once however
// often it is asked for. It does not sort by time.
func Of(texts ...string) string {
	h := sha256.New()
	for _, t := range texts {
		fmt.Fprintf(h, "%d:%s", len(t), t)
	}
	var u ulid.ULID
	copy(u[:], h.Sum(nil))
	return strings.ToLower(u.String())
}
