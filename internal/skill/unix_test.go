package skill

import (
	"errors"
	"syscall"
)

func mkfifo(path string) error { return syscall.Mkfifo(path, 0o600) }

func errorsOf(errs ...error) error { return errors.Join(errs...) }
