package files

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"time"

	"chorus/internal/await"
	"chorus/internal/digest"
	"chorus/internal/lockfile"
)

// How often the lock of another process is tried: nothing wakes a waiter across processes.
const (
	firstTry = 2 * time.Millisecond
	lastTry  = 100 * time.Millisecond
)

// waitFile takes the lock of a path, waiting until ctx ends.
func waitFile(ctx context.Context, dir, key string, mine holding) (*lockfile.Lock, error) {
	path := filepath.Join(dir, "file-"+digest.Of(key)[:32]+".lock")
	for wait := firstTry; ; wait = min(2*wait, lastTry) {
		got, err := takeFile(path, mine)
		if err == nil || !errors.Is(err, lockfile.ErrHeld) {
			return got, err
		}
		if !await.For(ctx, wait) {
			return nil, &busyError{key, heldBy(path)}
		}
	}
}

// takeFile takes the lock, or fails at once with lockfile.ErrHeld.
func takeFile(path string, mine holding) (*lockfile.Lock, error) {
	mine.Pid = os.Getpid()
	words, _ := json.Marshal(mine) // a string, a number and a time
	return lockfile.Try(path, words)
}

// heldBy returns who holds a lock, as far as known.
func heldBy(path string) holding {
	var h holding
	if json.Unmarshal(lockfile.Words(path), &h) != nil {
		return holding{}
	}
	return h
}
