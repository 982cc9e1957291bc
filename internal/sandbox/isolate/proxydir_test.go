package isolate_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"chorus/internal/app"
	"chorus/internal/doctor/checks"
	"chorus/internal/sandbox/isolate"
)

// A folder of a killed process goes with the next sweep, one that is in use does not.
func TestOwnDirsOfTheKilled(t *testing.T) {
	t.Parallel()
	above := t.TempDir()
	var made []*isolate.OwnDir
	for range 3 {
		dir, err := isolate.MakeOwnDir(above, "x-")
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir.Path, "proxy"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		made = append(made, dir)
	}
	pattern := filepath.Join(above, "*")
	if n := isolate.SweepOwnDirs(pattern); n != 0 {
		t.Fatalf("%d were removed while somebody had them", n)
	}
	// As the system does for a killed process; closing alone leaves it to children that are being started.
	if err := errors.Join(syscall.Flock(int(made[1].Lock.Fd()), syscall.LOCK_UN), made[1].Lock.Close()); err != nil {
		t.Fatal(err)
	}
	if n := isolate.SweepOwnDirs(pattern); n != 1 {
		t.Errorf("%d were removed", n)
	}
	for i, dir := range made {
		if _, err := os.Stat(filepath.Join(dir.Path, "proxy")); (err == nil) != (i != 1) {
			t.Errorf("%d: %v", i, err)
		}
		if i != 1 {
			if err := dir.Close(); err != nil {
				t.Error(err)
			}
		}
	}
	if left, _ := filepath.Glob(pattern); len(left) != 0 {
		t.Errorf("left: %q", left)
	}
}

// Many make folders while others sweep: nobody loses theirs.
func TestOwnDirsAtOnce(t *testing.T) {
	t.Parallel()
	above := t.TempDir()
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for range 50 {
				dir, err := isolate.MakeOwnDir(above, "x-")
				if err != nil {
					t.Error(err)
					return
				}
				isolate.SweepOwnDirs(filepath.Join(above, "*"))
				if err := os.WriteFile(filepath.Join(dir.Path, "proxy"), nil, 0o600); err != nil {
					t.Errorf("somebody took it: %v", err)
				}
				if err := dir.Close(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
}

// What a killed process left in the home goes with the first command of the next, or
// when somebody runs doctor --fix; the directory of a running proxy stays.
func TestProxyDirsAreSwept(t *testing.T) {
	t.Parallel()
	a, work, _ := newApp(t)
	left := filepath.Join(a.Home.Dir(), "run", "0badc0de-1")
	leave := func() {
		if err := errors.Join(os.MkdirAll(left, 0o700), os.WriteFile(filepath.Join(left, "trust.pem"), nil, 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	leave()
	if _, err := a.Home.Ensure(a.Home.PeerSockets()); err != nil {
		t.Fatal(err)
	}
	if dirs := proxyDirsAfterCommand(t, a, work); len(dirs) != 1 || dirs[0] == left {
		t.Errorf("after a command: %q", dirs)
	}
	leave()
	var said []string
	for _, f := range checks.Fix(t.Context(), checks.Options{Home: a.Home.Dir(), Env: func(string) string { return "" }}, false) {
		said = append(said, f.Name)
	}
	if dirs := proxyDirsAfterCommand(t, a, work); !strings.Contains(strings.Join(said, " "), "left folders") || len(dirs) != 1 {
		t.Errorf("%q, %q", said, dirs)
	}
	if _, err := os.Stat(a.Home.PeerSockets()); err != nil {
		t.Errorf("what else lies there: %v", err)
	}
}

// proxyDirsAfterCommand runs a command, and gives the directories of proxies that there are then.
func proxyDirsAfterCommand(t *testing.T, a *app.App, work string) []string {
	t.Helper()
	if res := inSandbox(t, a, work, isolate.Plan{})("echo ran"); res.Output != "ran\n" {
		t.Fatalf("%+v", res)
	}
	dirs, err := filepath.Glob(filepath.Join(a.Home.Dir(), "run", "*-*"))
	if err != nil {
		t.Fatal(err)
	}
	return dirs
}
