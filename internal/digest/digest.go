// Package digest identifies contents by their SHA-256.
package digest

import (
	"crypto/sha256"
	"encoding/hex"
)

// Of returns the SHA-256 of a text or of bytes as 64 hexadecimal digits. Where fewer are enough, callers cut it.
func Of[T ~string | ~[]byte](content T) string {
	sum := sha256.Sum256([]byte(content))
	return hex.EncodeToString(sum[:])
}
