//go:build !unix

package database

// isNoSpace knows no error codes on this system. SQLite itself still reports a full disk.
func isNoSpace(error) bool { return false }
