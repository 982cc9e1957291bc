package isolate

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"

	"chorus/internal/datadir"
	"chorus/internal/digest"
	"chorus/internal/sandbox/bwrap"
	"chorus/internal/sandbox/hosttools"
	"chorus/internal/settings"
)

// SandboxProbe is what this process knows about bubblewrap on this machine. The first command
// tries it. A success is stored in the data directory for all processes.
type SandboxProbe struct {
	mu   sync.Mutex
	made *bwrap.Executor
	Err  error // why it does not work
	Done bool
}

// Executor returns bubblewrap, or an error that says why it does not work here and what to do.
func (w *SandboxProbe) Executor(ctx context.Context, a *Isolation) (*bwrap.Executor, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.Done {
		w.try(ctx, a, true)
	}
	return w.made, w.Err
}

// Again tries bubblewrap once more after it failed with a command although it was
// known to work. It returns why it does not work, or nil.
func (w *SandboxProbe) Again(ctx context.Context, a *Isolation) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.try(ctx, a, false)
	return w.Err
}

// close takes down the sandboxes that wait for a command.
func (w *SandboxProbe) close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.made != nil {
		w.made.Close()
	}
}

// Known returns what is known without trying.
func (w *SandboxProbe) Known(a *Isolation) (*bwrap.Executor, error, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.Done && a.Remembered() {
		w.try(context.Background(), a, true)
	}
	return w.made, w.Err, w.Done
}

// try finds out whether bubblewrap works. With believe, it accepts what the
// data directory says. A cancelled try is not stored.
func (w *SandboxProbe) try(ctx context.Context, a *Isolation, believe bool) {
	learned, works := a.remembered()
	if w.made == nil {
		w.made = a.newBwrap(learned)
	}
	if believe && works {
		w.Done, w.Err = true, nil
		return
	}
	limited, cancel := context.WithTimeout(ctx, probeTime)
	defer cancel()
	w.Err = w.made.Probe(limited)
	w.Done = w.Err == nil || ctx.Err() == nil
	a.Remember(w.Err == nil, w.made.Learned())
}

// probeFile returns the path of the file that records that bubblewrap works.
func (i *Isolation) probeFile() string { return filepath.Join(i.Home.Dir(), "cache", "walls") }

// probeKey changes with everything that decides whether bubblewrap works: the program, the
// kernel, its settings, our user. It is "" if there is no program.
func probeKey() string {
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
	return digest.Of(strings.Join(parts, "\n"))
}

// Remembered reports whether it is recorded that bubblewrap works.
func (i *Isolation) Remembered() bool {
	_, works := i.remembered()
	return works
}

// remembered reports whether it is recorded that bubblewrap works, and what was found out about it then.
func (i *Isolation) remembered() (learned string, works bool) {
	data, err := os.ReadFile(i.probeFile())
	key, learned, whole := strings.Cut(string(data), "\n")
	if err != nil || !whole || key == "" || key != probeKey() {
		return "", false
	}
	return learned, true
}

// Remember records that bubblewrap works and what was found out about it. A
// failure is never recorded: somebody may be about to fix it.
func (i *Isolation) Remember(work bool, learned string) {
	var err error
	switch {
	case work:
		if _, err = i.Home.Ensure(filepath.Dir(i.probeFile())); err == nil {
			err = datadir.WriteFile(i.probeFile(), []byte(probeKey()+"\n"+learned), 0o600)
		}
	case i.Remembered():
		err = os.Remove(i.probeFile())
	}
	if err != nil {
		i.Log.Warn("whether the sandbox works is not remembered: "+err.Error(), "component", "sandbox", "event", "walls_not_remembered")
	}
}

// unseen returns what no command may see, wherever it works.
func (i *Isolation) unseen() []string {
	out := append(hosttools.Keys(i.UserHome()), i.Home.Dir())
	if dir := settings.StateDir(i.Env); dir != "" {
		out = append(out, dir) // holds the proof of the audit log
	}
	return out
}

// UserHome returns the home of our user, or "" if it is not known.
func (i *Isolation) UserHome() string {
	dir := i.Env("HOME")
	if !filepath.IsAbs(dir) {
		dir, _ = os.UserHomeDir()
	}
	return dir
}
