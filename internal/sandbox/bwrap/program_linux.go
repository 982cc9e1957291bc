package bwrap

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime"

	"golang.org/x/sys/unix"
)

// built holds process 1 of a sandbox, where it was built before this package was.
//
//go:embed all:built
var built embed.FS

// openInit opens the program that is process 1: the one at the path, or the built-in one
// as a file in memory, which all sandboxes share.
func openInit(path string) (*os.File, error) {
	if path != "" {
		return os.Open(path)
	}
	program, err := built.ReadFile("built/init-linux-" + runtime.GOARCH)
	if errors.Is(err, fs.ErrNotExist) {
		return os.Open("/proc/self/exe")
	}
	if err != nil {
		return nil, err
	}
	fd, err := unix.MemfdCreate("sandbox", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		return nil, fmt.Errorf("make a file in memory: %w", err)
	}
	file := os.NewFile(uintptr(fd), "sandbox")
	if _, err := file.Write(program); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	if _, err := unix.FcntlInt(file.Fd(), unix.F_ADD_SEALS, unix.F_SEAL_SEAL|unix.F_SEAL_SHRINK|unix.F_SEAL_GROW|unix.F_SEAL_WRITE); err != nil {
		return nil, errors.Join(fmt.Errorf("seal a file in memory: %w", err), file.Close())
	}
	return file, nil
}
