package text

import (
	"errors"
	"io/fs"
)

// Cause returns a file system error without its path, for a sentence that already names the file.
func Cause(err error) error {
	if at, ok := errors.AsType[*fs.PathError](err); ok {
		return at.Err
	}
	return err
}
