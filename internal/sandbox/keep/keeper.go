package keep

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"time"

	"chorus/internal/await"
	"chorus/internal/lockfile"
	"chorus/internal/sandbox"
	"chorus/internal/sandbox/bwrap"
	"chorus/internal/sandbox/host"
	"chorus/internal/sandbox/process"
)

// Arg is the subcommand of our own program that runs a keeper: `chorus keep DIR`.
const Arg = "keep"

// graceTime is how long a command has to end after it was asked to.
const graceTime = 5 * time.Second

// unseenTime is how long a command gets to end if none of its processes
// can be found: it is ending, or cannot be asked.
const unseenTime = 100 * time.Millisecond

// Main is the whole of a keeper. It reads what to run from in, reports on out that it runs or why not, and
// returns when the command is over. own judges programs while no server is there; it may be nil.
func Main(dir string, in io.Reader, out io.Writer, own Own) error {
	signal.Ignore(syscall.SIGHUP, syscall.SIGINT, syscall.SIGPIPE) // those are meant for whoever started us
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGTERM)
	k := &keeper{dir: dir, stop: stop, own: own, log: newLog(dir, LogLimit)}
	err := k.begin(in)
	if err != nil {
		fmt.Fprintln(out, err.Error())
		return err
	}
	fmt.Fprintln(out, ready)
	if closer, ok := out.(io.Closer); ok {
		_ = closer.Close() // nobody reads further
	}
	return k.run()
}

// ready is what a keeper reports once its command runs.
const ready = "ready"

// keeper looks after one command.
type keeper struct {
	dir     string
	stop    <-chan os.Signal
	own     Own
	log     *logWriter
	lock    *lockfile.Lock
	status  Status
	timeout time.Duration
	program sandbox.Kept
	output  *os.File // our end
	release func()
	forced  atomic.Bool
}

// begin takes the lock and starts the command.
func (k *keeper) begin(in io.Reader) (err error) {
	if k.lock, err = lockSoon(filepath.Join(k.dir, lockName)); err != nil {
		return err
	}
	var b sandbox.Background
	if err := json.NewDecoder(in).Decode(&b); err != nil {
		return fmt.Errorf("read what to run: %w", err)
	}
	k.timeout = b.Timeout
	pid := os.Getpid()
	k.status = Status{Boot: process.BootID(), Keeper: pid, Began: time.Now()}
	k.status.Started, _ = process.StartTime(pid)
	if err := k.start(b); err != nil {
		k.status.Ended, k.status.Exit, k.status.Error = time.Now(), -1, err.Error()
		return errors.Join(err, k.status.write(k.dir))
	}
	if err := k.status.write(k.dir); err != nil {
		k.program.Kill()
		_, waited := k.program.Wait()
		return errors.Join(fmt.Errorf("write the state of the process: %w", err), waited)
	}
	return nil
}

// lockSoon takes the lock. A process that checks whether we live may hold it for a moment.
func lockSoon(path string) (*lockfile.Lock, error) {
	for deadline := time.Now().Add(5 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		lock, err := lockfile.Try(path, nil)
		if !errors.Is(err, lockfile.ErrHeld) || time.Now().After(deadline) {
			return lock, err
		}
	}
}

// start starts the command.
func (k *keeper) start(b sandbox.Background) error {
	command := sandbox.Command{Shell: b.Shell, Dir: b.Dir, Env: b.Env, Call: b.Call, Roots: b.Roots, Home: b.Home, OpenGit: b.OpenGit, Folder: b.Folder}
	undo := func() {}
	var prepared *sandbox.Prepared
	var err error
	if b.Isolated {
		var executor *bwrap.Executor
		executor, undo, err = k.isolate(b, &command)
		if err == nil {
			prepared, err = executor.Keep(command)
		}
	} else {
		prepared, err = host.New(os.Environ()).Keep(command)
	}
	if err != nil {
		undo()
		return err
	}
	k.release = func() { prepared.Release(); undo() }
	if err := k.connect(prepared); err != nil {
		k.release()
		return err
	}
	return nil
}

// connect starts the prepared command with a pipe for its output.
func (k *keeper) connect(prepared *sandbox.Prepared) error {
	none, err := os.Open(os.DevNull)
	if err != nil {
		return err
	}
	defer func() { _ = none.Close() }()
	ours, theirs, err := os.Pipe()
	if err != nil {
		return fmt.Errorf("make a pipe for the command: %w", err)
	}
	defer func() { _ = theirs.Close() }()
	program, err := prepared.Start(none, theirs, theirs)
	if err != nil {
		_ = ours.Close()
		return err
	}
	k.program, k.output = program.(sandbox.Kept), ours
	return nil
}

// run looks after the command until it is over.
func (k *keeper) run() error {
	read := make(chan error, 1)
	go func() { read <- k.read() }()
	type end struct {
		code int
		err  error
	}
	ended := make(chan end, 1)
	go func() {
		code, err := k.program.Wait()
		ended <- end{code, err}
	}()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var late <-chan time.Time
	if k.timeout > 0 {
		timer := time.NewTimer(k.timeout)
		defer timer.Stop()
		late = timer.C
	}
	var e end
	for over := false; !over; {
		select {
		case e = <-ended:
			over = true
		case <-k.stop:
			if !k.status.Stopped && !k.status.TimedOut {
				k.status.Stopped = true
				go k.terminate(ctx)
			}
		case <-late:
			if !k.status.Stopped {
				k.status.TimedOut = true
				go k.terminate(ctx)
			}
		}
	}
	// All output so far is read. A process that could not be reached may still hold the pipe open.
	_ = k.output.SetReadDeadline(time.Now().Add(time.Second))
	failed := <-read
	k.status.Ended, k.status.Exit, k.status.Notes, k.status.Forced = time.Now(), e.code, k.program.Notes(), k.forced.Load()
	for _, note := range k.status.Notes {
		_, _ = io.WriteString(k.log, note+"\n")
	}
	k.release()
	return errors.Join(e.err, failed, k.log.Close(), k.status.write(k.dir)) // the lock ends with this process
}

// terminate asks the command to end, then has it killed. Once its processes were found, the command
// has all of graceTime, even if none of them runs any more: then only the sandbox's report is
// missing, which takes long on a busy machine, and nothing is left to kill.
func (k *keeper) terminate(ctx context.Context) {
	began, found := time.Now(), false
	for grace := graceTime; time.Since(began) < grace; {
		if k.program.Terminate() > 0 {
			found = true
		} else if !found {
			grace = unseenTime
		}
		if !await.For(ctx, 50*time.Millisecond) {
			return
		}
	}
	k.forced.Store(true)
	k.program.Kill()
}

// read writes the command's output to the log. A full disk loses output
// but does not stop the command: reading continues.
func (k *keeper) read() error {
	var clean process.Cleaner
	var text []byte
	var failed error
	buf := make([]byte, 64<<10)
	for {
		n, err := k.output.Read(buf)
		text = clean.Clean(text[:0], buf[:n])
		if err != nil {
			text = clean.Flush(text)
		}
		if _, wrong := k.log.Write(text); wrong != nil && failed == nil {
			failed = fmt.Errorf("write the log: %w", wrong)
		}
		if err != nil {
			return errors.Join(failed, k.output.Close())
		}
	}
}
