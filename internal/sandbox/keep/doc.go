// Package keep leaves a command running in the background. A keeper is a separate process (`chorus keep
// DIR`, in its own session). It starts the command in its own sandbox, writes the output to a bounded
// log, ends the command when its time is over, and records how it ended.
//
// The package promises:
//   - the keeper holds a lock in its folder for as long as it lives, so if the lock is free, the command is over;
//   - status.json says how the command ended before the lock is free; if it does not, the keeper was killed or the machine stopped;
//   - the command dies with its keeper: at once in a sandbox; without one, its first process does, and whoever notices ends the rest;
//   - the log never exceeds its limit, and a position in it keeps its meaning for as long as the folder exists;
//   - the keeper outlives the process that started it; its network depends on no other process, but programs that must be judged
//     wait for a judge.
package keep

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"chorus/internal/lockfile"
	"chorus/internal/sandbox/process"
)

// The files in a keeper's folder.
const (
	lockName   = "lock"
	statusName = "status.json"
	judgeName  = "judge" // a socket
	proxyName  = "proxy" // a socket
)

// Status is what a keeper records about its command.
type Status struct {
	Boot    string    `json:"boot"`    // identifies the boot in which the process ids are valid
	Keeper  int       `json:"keeper"`  // its process id
	Started uint64    `json:"started"` // start time of that process, in kernel ticks
	Began   time.Time `json:"began"`

	Ended    time.Time `json:"ended,omitzero"`
	Exit     int       `json:"exit"` // exit status, in the shell's convention
	TimedOut bool      `json:"timedOut,omitempty"`
	Stopped  bool      `json:"stopped,omitempty"` // somebody asked it to end
	Forced   bool      `json:"forced,omitempty"`  // it did not end when asked and was killed
	Error    string    `json:"error,omitempty"`   // why it could not be started
	Notes    []string  `json:"notes,omitempty"`   // the sandbox's remarks
}

// ReadStatus reads what a keeper recorded. The error is fs.ErrNotExist before the keeper has begun.
func ReadStatus(dir string) (Status, error) {
	var s Status
	data, err := os.ReadFile(filepath.Join(dir, statusName))
	if err != nil {
		return s, fmt.Errorf("read the state of a process: %w", err)
	}
	if err := json.Unmarshal(data, &s); err != nil {
		return s, fmt.Errorf("read the state of a process: %s: %w", statusName, err)
	}
	return s, nil
}

func (s Status) write(dir string) error {
	data, err := json.Marshal(s)
	if err != nil {
		return err
	}
	path := filepath.Join(dir, statusName)
	f, err := os.OpenFile(path+".new", os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}

// Alive reports whether a keeper lives, that is, holds its lock. Callers share
// the lock for a moment, so they do not disturb each other.
func Alive(dir string) (bool, error) {
	f, err := os.Open(filepath.Join(dir, lockName))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("check whether a process lives: %w", err)
	}
	defer func() { _ = f.Close() }()
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_SH|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return true, nil
	}
	if err != nil {
		return false, fmt.Errorf("check whether a process lives: %w", err)
	}
	_ = syscall.Flock(int(f.Fd()), syscall.LOCK_UN)
	return false, nil
}

// Claim makes sure that only one process at a time looks after a keeper's
// folder. lockfile.ErrHeld means that another one does.
func Claim(dir string) (*lockfile.Lock, error) { return lockfile.Try(filepath.Join(dir, "watch"), nil) }

// Stop asks the command to end, and has it killed if it does not end in time. It reports whether there was a
// keeper to ask: by now the process id may belong to another process, which is left alone.
func Stop(dir string) (bool, error) {
	s, err := ReadStatus(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	alive, err := Alive(dir)
	if err != nil || !alive {
		return false, err
	}
	return s.signal(syscall.SIGTERM)
}

// signal signals the keeper that wrote the status, and no other process.
func (s Status) signal(sig syscall.Signal) (bool, error) {
	if s.Keeper <= 1 || s.Boot != process.BootID() {
		return false, nil
	}
	p, err := os.FindProcess(s.Keeper) // from here on p is that process, even if its id is reused
	if err != nil {
		return false, nil
	}
	defer func() { _ = p.Release() }()
	if began, ok := process.StartTime(s.Keeper); began != s.Started || !ok && began != 0 {
		return false, nil
	}
	err = p.Signal(sig)
	if errors.Is(err, os.ErrProcessDone) || errors.Is(err, syscall.ESRCH) {
		return false, nil
	}
	return err == nil, err
}
