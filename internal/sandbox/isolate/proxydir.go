package isolate

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"chorus/internal/chat"
	"chorus/internal/settings"
)

// OwnDir is a directory of this process alone. Close removes it. A killed process leaves the
// directory behind, but not its lock, so the next process removes it.
type OwnDir struct {
	Path string
	Lock *os.File
}

// strayProxies is the name prefix of proxy directories in the temporary directory. They are
// kept there if the path of the data directory is too long for a socket.
const strayProxies = "chorus-proxy-"

// MakeOwnDir makes a folder below above. Its name begins with prefix.
func MakeOwnDir(above, prefix string) (*OwnDir, error) {
	for range 100 { // somebody may remove it before we lock it
		path, err := os.MkdirTemp(above, prefix)
		if err != nil {
			return nil, err
		}
		file, err := lockDir(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, errors.Join(err, os.Remove(path))
		}
		if file != nil {
			return &OwnDir{path, file}, nil
		}
	}
	return nil, fmt.Errorf("make a folder in %s: other processes keep removing it", above)
}

// lockDir takes the lock of a folder. It returns nil if somebody else holds it.
func lockDir(path string) (*os.File, error) {
	file, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_DIRECTORY, 0)
	if err != nil {
		return nil, err
	}
	err = syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if err == nil {
		var mine, now fs.FileInfo
		if mine, err = file.Stat(); err == nil {
			if now, err = os.Lstat(path); err == nil && os.SameFile(mine, now) {
				return file, nil
			}
		}
		if err == nil {
			err = fs.ErrNotExist // replaced by another folder meanwhile
		}
	}
	_ = file.Close()
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return nil, nil
	}
	return nil, err
}

// Close removes the directory and releases the lock last, so that
// nobody else removes the directory meanwhile.
func (d *OwnDir) Close() error { return errors.Join(os.RemoveAll(d.Path), d.Lock.Close()) }

// SweepOwnDirs removes the directories of processes that have ended, and returns how
// many. It leaves what it cannot lock or remove, which does no harm.
func SweepOwnDirs(pattern string) (removed int) {
	paths, _ := filepath.Glob(pattern)
	for _, path := range paths {
		file, err := lockDir(path)
		if err != nil || file == nil {
			continue
		}
		if (&OwnDir{path, file}).Close() == nil {
			removed++
		}
	}
	return removed
}

// SweepProxyDirs removes only the proxy directories that killed processes left behind.
func (i *Isolation) SweepProxyDirs() int {
	return SweepOwnDirs(filepath.Join(i.Home.Dir(), "run", strings.Repeat("[0-9a-f]", 8)+"*")) + SweepOwnDirs(filepath.Join(os.TempDir(), strayProxies+"*"))
}

// proxyDir makes the directory of a thread's proxy. Only the first call removes leftovers,
// because trying all locks takes longer the more directories there are.
func (i *Isolation) proxyDir(thread chat.ThreadID) (*OwnDir, error) {
	i.swept.Do(func() {
		if n := i.SweepProxyDirs(); n > 0 {
			i.Log.Info("removed folders of killed processes", "component", "sandbox", "event", "doors_swept", "removed", n)
		}
	})
	above, err := i.Home.Ensure(filepath.Join(i.Home.Dir(), "run"))
	if err != nil {
		return nil, err
	}
	dir, err := MakeOwnDir(above, settings.Place(string(thread))[:8]+"-")
	if err != nil || len(dir.Path) <= longestSocket-len("/"+socketName) {
		return dir, err
	}
	return elsewhere(dir)
}

// elsewhere makes the directory again where paths are short.
func elsewhere(dir *OwnDir) (*OwnDir, error) {
	if err := dir.Close(); err != nil {
		return nil, err
	}
	return MakeOwnDir("", strayProxies)
}
