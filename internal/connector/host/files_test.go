package host

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"chorus/internal/room/attach"
)

// An agent can leave anything where a file that somebody sends will lie: the file comes to lie beside it, and nobody waits for
// who might write to a pipe.
func TestFilesBesideWhatAnAgentLeft(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	in := filepath.Join(dir, attach.Folder)
	err := errors.Join(os.MkdirAll(filepath.Join(in, "folder.txt"), 0o755), syscall.Mkfifo(filepath.Join(in, "pipe.txt"), 0o644),
		os.WriteFile(filepath.Join(in, "same.txt"), []byte("sent"), 0o644), os.WriteFile(filepath.Join(in, "long.txt"), []byte("sent and more"), 0o644),
		os.Symlink("/etc/passwd", filepath.Join(in, "out.txt")))
	if err != nil {
		t.Fatal(err)
	}
	for name, beside := range map[string]bool{"new.txt": false, "same.txt": false, "long.txt": true, "pipe.txt": true, "folder.txt": true, "out.txt": true} {
		wanted := attach.Folder + "/" + name
		type laid struct {
			at  string
			err error
		}
		done := make(chan laid, 1)
		go func() {
			at, err := Lay(dir, wanted, []byte("sent"))
			done <- laid{at, err}
		}()
		select {
		case got := <-done:
			text, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(got.at)))
			if got.err != nil || err != nil || string(text) != "sent" || (got.at != wanted) != beside {
				t.Errorf("%s: lies at %q with %q, %v, %v", name, got.at, text, got.err, err)
			}
		case <-time.After(2 * time.Minute):
			t.Fatalf("%s is waited for", name)
		}
	}
}
