package bwrap

import (
	"embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"runtime"

	"golang.org/x/sys/unix"
)

// built contains process 1 of a sandbox if it was built before this package.
//
//go:embed all:built
var built embed.FS

// openInit opens the program that is process 1: the one at the path, or the
// embedded one as a memory file that all sandboxes share.
func openInit(path string) (*os.File, error) {
	if path != "" {
		return os.Open(path)
	}
	program, err := built.Open("built/init-linux-" + runtime.GOARCH)
	if errors.Is(err, fs.ErrNotExist) {
		return os.Open("/proc/self/exe")
	}
	if err != nil {
		return nil, err
	}
	defer func() { _ = program.Close() }()
	fd, err := unix.MemfdCreate("sandbox", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		return nil, fmt.Errorf("make a file in memory: %w", err)
	}
	file := os.NewFile(uintptr(fd), "sandbox")
	if _, err := io.Copy(file, program); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	if err := seal(file); err != nil {
		return nil, errors.Join(fmt.Errorf("seal a file in memory: %w", err), file.Close())
	}
	return file, nil
}

// seal makes a memory file immutable. Nothing has mapped it, so forbidding future writes is enough;
// forbidding all writes waits until no processor holds one of its pages, some ten milliseconds.
func seal(file *os.File) error {
	const size = unix.F_SEAL_SEAL | unix.F_SEAL_SHRINK | unix.F_SEAL_GROW
	_, err := unix.FcntlInt(file.Fd(), unix.F_ADD_SEALS, size|unix.F_SEAL_FUTURE_WRITE)
	if errors.Is(err, unix.EINVAL) { // before Linux 5.1
		_, err = unix.FcntlInt(file.Fd(), unix.F_ADD_SEALS, size|unix.F_SEAL_WRITE)
	}
	return err
}
