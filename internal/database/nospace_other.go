//go:build !unix

package database

// isNoSpace knows no code here; SQLite's own answer still says when the disk is full.
func isNoSpace(error) bool { return false }
