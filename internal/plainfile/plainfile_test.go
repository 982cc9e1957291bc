package plainfile

import (
	"context"
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func place(t *testing.T) (dir string, root *os.Root) {
	t.Helper()
	dir = t.TempDir()
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = root.Close() })
	return dir, root
}

// Nothing but a regular file of the size that was asked for is read, by whatever way.
func TestOnlyPlainFilesAreRead(t *testing.T) {
	t.Parallel()
	dir, root := place(t)
	at := func(name string) string { return filepath.Join(dir, name) }
	err := errors.Join(os.WriteFile(at("plain"), []byte("four"), 0o644), os.Symlink("plain", at("link")), os.Symlink("/etc/passwd", at("out")),
		syscall.Mkfifo(at("pipe"), 0o644), os.Symlink("pipe", at("to-pipe")), os.Mkdir(at("folder"), 0o755))
	if err != nil {
		t.Fatal(err)
	}
	if sock, err := new(net.ListenConfig).Listen(context.Background(), "unix", at("socket")); err == nil { // a temporary folder's name may be too long for one
		t.Cleanup(func() { _ = sock.Close() })
	}
	ways := map[string]func(name string, most int64) ([]byte, error){
		"read":    func(name string, most int64) ([]byte, error) { return Read(at(name), most) },
		"no link": func(name string, most int64) ([]byte, error) { return ReadNoLink(at(name), most) },
		"in":      func(name string, most int64) ([]byte, error) { return ReadIn(root, name, most) },
	}
	for way, read := range ways {
		if data, err := read("plain", 4); err != nil || string(data) != "four" {
			t.Errorf("%s: %q, %v", way, data, err)
		}
		if _, err := read("plain", 3); !errors.As(err, new(TooLong)) || !strings.Contains(err.Error(), "longer than 3 bytes") {
			t.Errorf("%s of what is too long: %v", way, err)
		}
		if _, err := read("none", 4); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s of what is not there: %v", way, err)
		}
		for _, name := range []string{"pipe", "to-pipe", "folder", "socket"} {
			if data, err := read(name, 100); err == nil {
				t.Errorf("%s: %s was read: %q", way, name, data)
			} else if name != "socket" && !errors.Is(err, ErrNotPlain) {
				t.Errorf("%s of %s: %v", way, name, err)
			}
		}
		_, err := read("link", 4)
		if refused := errors.Is(err, ErrNotPlain); refused != (way == "no link") {
			t.Errorf("%s of a link: %v", way, err)
		}
	}
	if _, err := ReadIn(root, "out", 1<<20); err == nil {
		t.Error("a link out of the root was followed")
	}
}
