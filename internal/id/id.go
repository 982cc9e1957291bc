// Package id makes the ids that Chorus gives to things of its own: ULIDs in lower
// case, so that they sort by time and are safe as file names everywhere.
package id

import (
	"strings"

	"github.com/oklog/ulid/v2"
)

// New is a new id, larger than any made earlier in this process.
func New() string { return strings.ToLower(ulid.Make().String()) }
