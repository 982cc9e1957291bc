package pgtest

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
)

// initFlags are the flags of initdb.
var initFlags = []string{"-N", "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C.UTF-8"}

// makeData creates the data folder of a cluster. initdb takes seconds on a busy
// machine and always produces the same, so its first result is kept in the user's
// cache, one per version of PostgreSQL, and copied from there.
func makeData(data string, as *syscall.Credential) error {
	ctx, cancel := context.WithTimeout(context.Background(), maxWait)
	defer cancel()
	initdb, err := program("initdb")
	if err != nil {
		return err
	}
	version, err := exec.CommandContext(ctx, initdb, "--version").Output()
	if err != nil {
		return fmt.Errorf("initdb: %w", err)
	}
	kept := ""
	if cache, err := os.UserCacheDir(); err == nil {
		sum := sha256.Sum256([]byte(initdb + string(version) + strings.Join(initFlags, " ")))
		kept = filepath.Join(cache, "chorus-test", "postgres-"+hex.EncodeToString(sum[:6]))
		if _, err := os.Stat(kept); err == nil {
			return copyData(data, kept, as)
		}
	}
	cmd := exec.CommandContext(ctx, initdb, append([]string{"-D", data}, initFlags...)...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: as}
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("initdb: %w: %s", err, out)
	}
	keepData(data, kept)
	return nil
}

// keepData copies initdb's result to where others look for it. If it is
// there already or cannot be written, it stays as it is.
func keepData(data, kept string) {
	if kept == "" || os.MkdirAll(filepath.Dir(kept), 0o755) != nil {
		return
	}
	own, err := os.MkdirTemp(filepath.Dir(kept), "making-")
	if err != nil {
		return
	}
	defer func() { _ = os.RemoveAll(own) }()
	if os.CopyFS(own, os.DirFS(data)) == nil {
		_ = os.Rename(own, kept) // completely or not at all
	}
}

// copyData copies a data folder for the user that the server runs as.
func copyData(data, kept string, as *syscall.Credential) error {
	if err := os.CopyFS(data, os.DirFS(kept)); err != nil {
		return err
	}
	if err := os.Chmod(data, 0o700); err != nil { // PostgreSQL refuses a folder that others can read
		return err
	}
	if as == nil {
		return nil
	}
	return filepath.WalkDir(data, func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return os.Lchown(path, int(as.Uid), int(as.Gid))
	})
}
