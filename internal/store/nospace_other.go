//go:build !unix

package store

// isNoSpace knows no code here; SQLite's own answer still says when the disk is full.
func isNoSpace(error) bool { return false }
