package settings

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

// Place returns a repository's name in thread ids.
func Place(dir string) string {
	sum := sha256.Sum256([]byte(dir))
	return hex.EncodeToString(sum[:6])
}

// PlainID reports whether an id from a file can be a thread's own part.
func PlainID(s string) bool {
	return s != "" && len(s) <= 64 && strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-") == ""
}
