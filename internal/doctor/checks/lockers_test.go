package checks

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

func TestLockers(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "chorus.db-shm")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	var stat syscall.Stat_t
	if err := syscall.Stat(file, &stat); err != nil {
		t.Fatal(err)
	}
	text := fmt.Sprintf("1: POSIX  ADVISORY  READ 41 fd:01:%d 128 128\n2: FLOCK  ADVISORY  WRITE 42 fd:01:1%d 0 EOF\n3: broken\n", stat.Ino, stat.Ino)
	if got := lockers(text, file); len(got) != 1 || !got["41"] {
		t.Errorf("%v", got)
	}
	if got := lockers(text, file+"x"); len(got) != 0 {
		t.Errorf("%v", got)
	}
}
