package settings

import (
	"strings"

	"chorus/internal/digest"
)

// Place returns a repository's name in thread ids.
func Place(dir string) string {
	return digest.Of(dir)[:12]
}

// PlainID reports whether an id from a file can be a thread's own part.
func PlainID(s string) bool {
	return s != "" && len(s) <= 64 && strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-") == ""
}
