package blobs

import (
	"chorus/internal/chat"
	"chorus/internal/database"
)

// HashLength is that of a hash, and ClaimTime how long whoever removes bytes of a storage may take.
const (
	HashLength = hashLength
	ClaimTime  = claimTime
)

// Reserve writes the row of bytes that are about to be put, as a process does that dies before it puts them.
func (s *Store) Reserve(tx database.Tx, b chat.Blob) error {
	row, err := hashed(b)
	if err == nil {
		_, err = s.reserve(tx, row)
	}
	return err
}

// Place is the storage that has the bytes; "": none.
func (r Row) Place() string { return r.place }
