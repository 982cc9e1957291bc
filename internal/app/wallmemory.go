package app

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"

	"chorus/internal/datadir"
	"chorus/internal/sandbox/bwrap"
	"chorus/internal/sandbox/hosttools"
)

// walls are what this process knows about bubblewrap on this machine. It is tried by
// the first command, and once for all processes where it works: the home remembers.
type walls struct {
	mu   sync.Mutex
	made *bwrap.Executor
	err  error // why it does not work
	done bool
}

// executor gives bubblewrap, or says why it does not work here and what to do.
func (w *walls) executor(ctx context.Context, a *App) (*bwrap.Executor, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.done {
		w.try(ctx, a, true)
	}
	return w.made, w.err
}

// again tries it once more, after it had failed with a command although it was known to
// work. It reports whether it does.
func (w *walls) again(ctx context.Context, a *App) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.try(ctx, a, false)
	return w.err
}

// known is what is known without trying.
func (w *walls) known(a *App) (*bwrap.Executor, error, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.done && a.wallsRemembered() {
		w.try(context.Background(), a, true)
	}
	return w.made, w.err, w.done
}

// try finds out; believe takes the home's word. A cancelled try is no answer.
func (w *walls) try(ctx context.Context, a *App, believe bool) {
	if w.made == nil {
		if w.made, w.err = a.newBwrap(); w.err != nil {
			w.done = true
			return
		}
	}
	if believe && a.wallsRemembered() {
		w.done, w.err = true, nil
		return
	}
	limited, cancel := context.WithTimeout(ctx, probeTime)
	defer cancel()
	w.err = w.made.Probe(limited)
	w.done = w.err == nil || ctx.Err() == nil
	a.rememberWalls(w.err == nil)
}

// wallFile remembers that walls could be put up.
func (a *App) wallFile() string { return filepath.Join(a.Home.Dir(), "cache", "walls") }

// wallKey changes with everything on which it depends whether walls can be put up: the
// program, the kernel, its settings, who we are. "": there is no program.
func wallKey() string {
	path, err := exec.LookPath("bwrap")
	if err != nil {
		return ""
	}
	info, err := os.Stat(path)
	if err != nil {
		return ""
	}
	parts := []string{path, info.ModTime().UTC().String(), fmt.Sprint(info.Size(), os.Getuid())}
	for _, name := range []string{"kernel/osrelease", "user/max_user_namespaces", "kernel/unprivileged_userns_clone", "kernel/apparmor_restrict_unprivileged_userns"} {
		text, _ := os.ReadFile("/proc/sys/" + name)
		parts = append(parts, string(text))
	}
	sum := sha256.Sum256([]byte(strings.Join(parts, "\n")))
	return hex.EncodeToString(sum[:])
}

func (a *App) wallsRemembered() bool {
	data, err := os.ReadFile(a.wallFile())
	return err == nil && len(data) > 0 && string(data) == wallKey()
}

// rememberWalls writes down that they work. That they do not is found out anew each time: somebody
// may be about to mend it.
func (a *App) rememberWalls(work bool) {
	var err error
	switch {
	case work:
		if _, err = a.Home.Ensure(filepath.Dir(a.wallFile())); err == nil {
			err = datadir.WriteFile(a.wallFile(), []byte(wallKey()), 0o600)
		}
	case a.wallsRemembered():
		err = os.Remove(a.wallFile())
	}
	if err != nil {
		a.Log.Warn("whether the sandbox works is not remembered: "+err.Error(), "component", "sandbox", "event", "walls_not_remembered")
	}
}

// unseen is what no command may see, wherever it works.
func (a *App) unseen() []string { return append(hosttools.Keys(a.userHome()), a.Home.Dir()) }

// userHome is the home of whoever runs us; "" when nobody knows.
func (a *App) userHome() string {
	dir := a.Env("HOME")
	if !filepath.IsAbs(dir) {
		dir, _ = os.UserHomeDir()
	}
	return dir
}
