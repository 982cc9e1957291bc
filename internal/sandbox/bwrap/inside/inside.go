//go:build linux

package inside

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Main is the whole of process 1. It ends when the server closes the socket
// or dies, and everything in the sandbox ends with it.
func Main() {
	if err := run(); err != nil && !errors.Is(err, errClosed) {
		fmt.Fprintln(os.Stderr, "sandbox: "+err.Error())
		os.Exit(1)
	}
	os.Exit(0)
}

func run() error {
	if os.Getpid() != 1 { // it kills every process it finds
		return errors.New("this is started by the sandbox only")
	}
	// Landlock, seccomp and the session keyring belong to a thread, and commands inherit them from
	// the thread that starts them. Therefore this thread does everything.
	runtime.LockOSThread()
	runtime.GOMAXPROCS(1) // what else there is to do need not wake further threads
	// Allocations are rare, and a waiting sandbox should be small.
	debug.SetGCPercent(25)
	if err := dropSignals(); err != nil {
		return err
	}
	if err := hold(); err != nil {
		return err
	}
	s := &socket{fd: SocketFD}
	var setup Setup
	if _, err := s.receive(&setup); err != nil {
		return err
	}
	fds, err := setup.apply()
	if err != nil {
		answer := Ready{Error: err.Error()}
		if errors.As(err, new(NoGate)) {
			answer = Ready{NoGate: err.Error()}
		}
		return s.send(answer)
	}
	if err := s.send(Ready{}, fds...); err != nil {
		return err
	}
	for _, fd := range fds {
		// Only the server holds them now: when it dies, calls that wait for it fail.
		if err := unix.Close(fd); err != nil {
			return err
		}
	}
	limits := currentLimits()
	for {
		var request Request
		files, err := s.receive(&request)
		if err != nil {
			return err
		}
		ended := request.run(files)
		if err := s.send(ended); err != nil {
			return err
		}
		if ended.Error != "" {
			continue // nobody else sends one
		}
		// The server need not wait for this to report the command's end.
		if err := s.send(Cleaned{Unclean: setup.clean(limits)}); err != nil {
			return err
		}
	}
}

// dropSignals makes the kernel drop the signals that commands send to process 1. Having no handler for a
// signal would be enough, except while the target thread blocks it, as it does around a fork: the kernel then
// gives the signal to another thread, and that ends the whole process. Therefore the signals that Go handles
// are ignored here; commands still get the default, because Go resets those signals between fork and exec.
// Other signals, including those that were ignored when the server started (as with nohup), are set to the
// default. So is SIGCHLD, because otherwise the command's exit status would be lost. Having Go receive and
// drop all signals would cost two hundred thread switches for each sandbox, and some for each command.
//
// Three signals remain with which a command can end its own sandbox, in the microseconds between its start
// and the end of the fork. They cannot be ignored, because commands would inherit that, and cannot be
// blocked, because Go unblocks them for every thread. Landlock's scope keeps commands from signalling the
// other threads, but not this one, which is in the same domain. A command gains nothing by it: everything
// inside dies, as with kill -9 -1, and the next command gets a new sandbox.
func dropSignals() error {
	const (
		last              = 64
		firstOfC, lastOfC = 32, 34 // used by thread libraries; Go does not reset them
	)
	for number := uintptr(1); number <= last; number++ {
		signal := unix.Signal(number)
		if signal == unix.SIGKILL || signal == unix.SIGSTOP {
			continue // these cannot be changed
		}
		var old, action [4]uint64 // the kernel's struct sigaction; zero means no handler, no flags, an empty mask
		if _, _, errno := unix.RawSyscall6(unix.SYS_RT_SIGACTION, number, 0, uintptr(unsafe.Pointer(&old)), 8, 0, 0); errno != 0 {
			return fmt.Errorf("look at signal %d: %w", number, errno)
		}
		if handled := old[0] > ignore; handled && signal != unix.SIGCHLD && (signal < firstOfC || signal > lastOfC) {
			action[0] = ignore
		}
		if _, _, errno := unix.RawSyscall6(unix.SYS_RT_SIGACTION, number, uintptr(unsafe.Pointer(&action)), 0, 8, 0, 0); errno != 0 {
			return fmt.Errorf("drop signal %d: %w", number, errno)
		}
	}
	return nil
}

// ignore is the kernel's SIG_IGN. 0 is the default, and any greater value is a handler.
const ignore = 1

// hold keeps descriptors from commands, and commands from process 1.
func hold() error {
	_ = unix.Close(ProgramFD)
	unix.CloseOnExec(SocketFD)
	if err := unix.CloseRange(ProgramFD, 1<<30, unix.CLOSE_RANGE_CLOEXEC); err != nil && !errors.Is(err, unix.ENOSYS) && !errors.Is(err, unix.EINVAL) {
		return fmt.Errorf("keep descriptors from commands: %w", err)
	}
	return unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0)
}

// apply restricts this thread and returns the descriptors to answer with.
func (s Setup) apply() (fds []int, err error) {
	if s.Processes > 0 {
		limit := unix.Rlimit{Cur: uint64(s.Processes), Max: uint64(s.Processes)}
		var old unix.Rlimit
		if err := unix.Getrlimit(unix.RLIMIT_NPROC, &old); err == nil && old.Max < limit.Max {
			limit = old // the present limit is tighter
		}
		if err := unix.Setrlimit(unix.RLIMIT_NPROC, &limit); err != nil {
			return nil, fmt.Errorf("limit the processes: %w", err)
		}
	}
	if s.Proxy {
		fd, err := listen()
		if err != nil {
			return nil, fmt.Errorf("listen for the proxy: %w", err)
		}
		fds = append(fds, fd)
	}
	if len(s.Write) > 0 {
		if err := s.restrict(); err != nil {
			return nil, fmt.Errorf("apply landlock: %w", err)
		}
	}
	listener, err := filterCalls(s.Gate)
	if err != nil && s.Gate {
		return nil, NoGate("the kernel does not report programs: " + err.Error())
	}
	if err != nil {
		return nil, fmt.Errorf("filter system calls: %w", err)
	}
	if s.Gate {
		fds = append(fds, listener)
	}
	return fds, nil
}

// listen opens the port at which commands look for the proxy.
func listen() (int, error) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return -1, err
	}
	if err := unix.Bind(fd, &unix.SockaddrInet4{Port: proxyPort, Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		return -1, errors.Join(err, unix.Close(fd))
	}
	if err := unix.Listen(fd, 128); err != nil {
		return -1, errors.Join(err, unix.Close(fd))
	}
	return fd, nil
}

// run runs one command until it and everything it started have ended.
func (r Request) run(files []int) Ended {
	if len(files) != 3 {
		closeAll(files)
		return Ended{Error: "a command needs three streams"}
	}
	newKeyring()
	pid, err := syscall.ForkExec(r.Path, r.Argv, &syscall.ProcAttr{
		Dir: r.Dir, Env: r.Env, Sys: &syscall.SysProcAttr{Setsid: true},
		Files: []uintptr{uintptr(files[0]), uintptr(files[1]), uintptr(files[2])},
	})
	closeAll(files) // otherwise the command's output would not end with the command
	if err != nil {
		return Ended{Error: err.Error()}
	}
	var ended Ended
	for {
		var status unix.WaitStatus
		done, err := unix.Wait4(-1, &status, 0, nil)
		if errors.Is(err, unix.EINTR) || err == nil && done != pid {
			continue // an orphan that became our child
		}
		if err != nil {
			return Ended{Error: "wait for the command: " + err.Error()}
		}
		ended.Code = status.ExitStatus()
		if status.Signaled() {
			ended.Code = 128 + int(status.Signal())
		}
		break
	}
	ended.Left = killRest()
	return ended
}

func closeAll(fds []int) {
	for _, fd := range fds {
		_ = unix.Close(fd)
	}
}

// killRest ends what a command left and returns how many processes that were. Everything in
// this sandbox descends from process 1: if it has no child, nothing runs.
func killRest() (left int) {
	for {
		pid, err := unix.Wait4(-1, nil, unix.WNOHANG, nil)
		switch {
		case errors.Is(err, unix.ECHILD):
			return left
		case pid > 0 || errors.Is(err, unix.EINTR):
			continue
		}
		if left == 0 {
			left = countProcesses()
		}
		_ = unix.Kill(-1, unix.SIGKILL) // all but this one; no fork escapes it
		if _, err := unix.Wait4(-1, nil, 0, nil); errors.Is(err, unix.ECHILD) {
			return left
		}
	}
}
