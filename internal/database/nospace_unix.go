//go:build unix

package database

import (
	"errors"
	"syscall"
)

// isNoSpace reports whether a file system or a quota had no room left, or a file may not grow any more.
func isNoSpace(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) || errors.Is(err, syscall.EFBIG)
}
