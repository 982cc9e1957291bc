package engine

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"chorus/internal/chat"
	"chorus/internal/lockfile"
)

func lockPath(dir string, thread chat.ThreadID) string {
	sum := sha256.Sum256([]byte(thread))
	return filepath.Join(dir, hex.EncodeToString(sum[:16])+".lock")
}

// takeLock takes a thread's lock on this machine, or fails at once with lockfile.ErrHeld:
// whoever has it may take the thread.
func takeLock(dir string, thread chat.ThreadID) (*lockfile.Lock, error) {
	path := lockPath(dir, thread)
	l, err := lockfile.Try(path, []byte(strconv.Itoa(os.Getpid())))
	switch {
	case errors.Is(err, lockfile.ErrHeld):
		return nil, fmt.Errorf("%w (process %s)", err, strings.TrimSpace(string(lockfile.Words(path))))
	case err != nil:
		return nil, fmt.Errorf("the conversation %s: %w", thread, err)
	}
	return l, nil
}
