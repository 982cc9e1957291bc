package text

import (
	"errors"
	"io/fs"
)

// Cause is an error of the file system without its path, for a sentence that names the file already.
func Cause(err error) error {
	if at, ok := errors.AsType[*fs.PathError](err); ok {
		return at.Err
	}
	return err
}
