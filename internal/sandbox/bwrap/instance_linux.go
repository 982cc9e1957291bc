package bwrap

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"chorus/internal/sandbox/bwrap/execgate"
	"chorus/internal/sandbox/bwrap/inside"
	"chorus/internal/sandbox/process"
)

// instance is one running sandbox: bubblewrap, process 1 in it, and the
// connections between both and us. It runs one command at a time.
type instance struct {
	key     string
	cmd     *exec.Cmd // bubblewrap
	init    *os.Process
	socket  *net.UnixConn
	forward *forwarder     // nil without a proxy
	gate    *execgate.Gate // nil if programs are not judged
	leave   func()         // removes it from the cgroup
	stop    *time.Timer
	cleaned chan struct{} // closed once cleaning has finished; nil before the first command
	unclean bool          // no other command may use it; valid once cleaned is closed
	unread  bool          // it ended before it read its command
}

// The descriptors that bubblewrap is started with, in addition to those of package inside.
const (
	argsFD = inside.ProgramFD + 1 // its options: it waits for them, and by then its limits apply
	dataFD = argsFD + 1           // passwd, group, hosts; then the roots
)

// upTime is far more than a sandbox needs to start, even on a busy machine.
const upTime = 20 * time.Second

// start starts a sandbox. If the kernel refuses the gate because we already
// run under one, the executor uses no gate from then on.
func (a *attempt) start() (*instance, error) {
	gated := a.gated()
	i, err := a.putUp()
	if refused := inside.NoGate(""); gated && errors.As(err, &refused) {
		lost := error(refused)
		a.e.noGate.Store(&lost)
		a.key = a.identity()
		return a.putUp()
	}
	return i, err
}

func (a *attempt) putUp() (_ *instance, err error) {
	i := &instance{key: a.key, leave: func() {}}
	defer func() {
		a.close()
		if err != nil {
			i.close()
		}
	}()
	theirs, err := i.connect()
	if err != nil {
		return nil, err
	}
	a.give(theirs) // inside.SocketFD
	_ = i.socket.SetDeadline(time.Now().Add(upTime))
	if a.ctx != nil {
		defer context.AfterFunc(a.ctx, func() { _ = i.socket.SetDeadline(time.Now()) })()
	}
	program, err := unix.FcntlInt(a.m.init.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("open the program that runs inside the sandbox: %w", err)
	}
	a.give(os.NewFile(uintptr(program), "init")) // inside.ProgramFD
	feed, err := a.pipe()                        // argsFD
	if err != nil {
		return nil, err
	}
	defer func() { _ = feed.Close() }()
	if err := a.data(); err != nil {
		return nil, err
	}
	if err := a.openRoots(); err != nil {
		return nil, err
	}
	said, complaints, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("make a pipe for the sandbox: %w", err)
	}
	defer func() { _ = said.Close() }()
	i.cmd = exec.Command(a.m.program, "--args", strconv.Itoa(argsFD), "--", "/proc/self/fd/"+strconv.Itoa(inside.ProgramFD), InitArg)
	i.cmd.Env, i.cmd.ExtraFiles, i.cmd.Stdout, i.cmd.Stderr = []string{}, a.files, complaints, complaints
	process.Lead(i.cmd)
	group, err := a.m.groups.make(a.e.opts.Limits)
	if err == nil {
		i.leave = group.remove
		err = group.start(i.cmd)
	}
	_ = complaints.Close()
	if err != nil {
		i.cmd = nil
		return nil, fmt.Errorf("start bubblewrap: %w", err)
	}
	a.close() // otherwise the socket would not close when the sandbox ends
	if err := a.limit(i.cmd.Process.Pid); err != nil {
		return nil, err
	}
	_ = feed.SetWriteDeadline(time.Now().Add(upTime))
	// If bubblewrap ends before it has read everything, its output says why.
	_, _ = feed.WriteString(strings.Join(a.options(settingArgs()), "\x00") + "\x00")
	_ = feed.Close()
	if err := i.ready(a.setup(), a.e.programs); err != nil {
		_ = i.cmd.Process.Kill()
		_ = said.SetReadDeadline(time.Now().Add(time.Second))
		text, _ := io.ReadAll(io.LimitReader(said, 4096))
		if words := strings.TrimSpace(string(text)); words != "" || !errors.As(err, new(refusedSetup)) && !errors.As(err, new(inside.NoGate)) {
			err = explain(words)
		}
		return nil, fmt.Errorf("put up the sandbox: %w", err)
	}
	if err := errors.Join(a.sameFolder(i.root()), a.mounted(i.root())); err != nil {
		return nil, err
	}
	return i, nil
}

// root returns the path of the sandbox's root directory as seen from outside.
func (i *instance) root() string { return fmt.Sprintf("/proc/%d/root", i.init.Pid) }

// connect creates the socket between us and process 1.
func (i *instance) connect() (theirs *os.File, err error) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("make a socket for the sandbox: %w", err)
	}
	theirs = os.NewFile(uintptr(pair[1]), "sandbox")
	ours := os.NewFile(uintptr(pair[0]), "sandbox")
	defer func() { _ = ours.Close() }() // the connection has its own copy
	// Each message then says which process sent it.
	if err := unix.SetsockoptInt(pair[0], unix.SOL_SOCKET, unix.SO_PASSCRED, 1); err != nil {
		return nil, errors.Join(fmt.Errorf("make a socket for the sandbox: %w", err), theirs.Close())
	}
	conn, err := net.FileConn(ours)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("make a socket for the sandbox: %w", err), theirs.Close())
	}
	i.socket = conn.(*net.UnixConn)
	return theirs, nil
}

// refusedSetup is why process 1 could not apply its setup.
type refusedSetup string

func (r refusedSetup) Error() string { return string(r) }

// ready sends the setup and waits until it is in force.
func (i *instance) ready(setup inside.Setup, programs *execgate.Programs) error {
	if err := i.send(setup); err != nil {
		return err
	}
	var answer inside.Ready
	fds, pid, err := i.receive(&answer)
	files := make([]*os.File, len(fds))
	for n, fd := range fds {
		files[n] = os.NewFile(uintptr(fd), "sandbox")
	}
	defer func() {
		for _, f := range files {
			_ = f.Close()
		}
	}()
	switch {
	case err != nil:
		return err
	case answer.NoGate != "":
		return inside.NoGate(answer.NoGate)
	case answer.Error != "":
		return refusedSetup(answer.Error)
	}
	if i.init, err = os.FindProcess(pid); err != nil {
		return err
	}
	if setup.Proxy {
		if len(files) == 0 {
			return refusedSetup("it has no listener for the proxy")
		}
		if i.forward, err = newForwarder(files[0]); err != nil {
			return err
		}
	}
	if setup.Gate {
		if len(files) == 0 {
			return refusedSetup("it has no listener for the gate")
		}
		if i.gate, err = execgate.New(files[len(files)-1], programs); err != nil {
			return err
		}
	}
	return i.socket.SetDeadline(time.Time{})
}

func (i *instance) send(v any, files ...*os.File) error {
	text, extra, err := inside.Encode(v)
	if err != nil {
		return err
	}
	if extra != nil {
		defer func() { _ = extra.Close() }()
		files = append(files, extra)
	}
	var oob []byte
	if len(files) > 0 {
		fds := make([]int, len(files))
		for n, f := range files {
			fds[n] = int(f.Fd())
		}
		oob = unix.UnixRights(fds...)
	}
	_, _, err = i.socket.WriteMsgUnix(text, oob, nil)
	return err
}

// buffers hold received messages. Most messages are short, so
// allocating one buffer each would mostly create garbage.
var buffers = sync.Pool{New: func() any { return new([inside.BufferSize]byte) }}

// receive reads a message, its descriptors and the sender's process id.
func (i *instance) receive(v any) (fds []int, pid int, err error) {
	whole := buffers.Get().(*[inside.BufferSize]byte)
	defer buffers.Put(whole)
	buf := whole[:]
	oob := make([]byte, unix.CmsgSpace(inside.MaxFiles*4)+unix.CmsgSpace(unix.SizeofUcred))
	n, oobn, _, _, err := i.socket.ReadMsgUnix(buf, oob)
	if err != nil {
		return nil, 0, err
	}
	if fds, err = inside.Files(oob[:oobn]); err != nil {
		return fds, 0, err
	}
	for _, fd := range fds {
		unix.CloseOnExec(fd)
	}
	if messages, err := unix.ParseSocketControlMessage(oob[:oobn]); err == nil {
		for _, m := range messages {
			if who, err := unix.ParseUnixCredentials(&m); err == nil {
				pid = int(who.Pid)
			}
		}
	}
	if n == 0 {
		return fds, pid, io.EOF
	}
	fds, err = inside.Decode(buf[:n], fds, v)
	return fds, pid, err
}

// close takes the sandbox down and waits for it: everything inside
// dies with process 1, and then bubblewrap does.
func (i *instance) close() {
	if i.stop != nil {
		i.stop.Stop()
	}
	if i.init != nil {
		_ = i.init.Kill()
	}
	if i.socket != nil {
		_ = i.socket.Close()
	}
	if i.cmd != nil {
		if i.init == nil {
			_ = i.cmd.Process.Kill()
		}
		late := time.AfterFunc(5*time.Second, func() { _ = i.cmd.Process.Kill() })
		_ = i.cmd.Wait()
		late.Stop()
	}
	if i.forward != nil {
		i.forward.close()
	}
	if i.gate != nil {
		i.gate.Close()
	}
	i.leave()
}

// waitCleaned reads the report that process 1 sends when it has cleaned up, after it has
// reported the command's end. From then on another command may use the sandbox.
func (i *instance) waitCleaned() (clean bool) {
	var answer inside.Cleaned
	_, _, err := i.receive(&answer)
	clean = err == nil && answer.Unclean == ""
	i.unclean = !clean
	close(i.cleaned)
	return clean
}

// cleanTime is far more than cleaning needs: anything that would take long is not removed.
const cleanTime = 5 * time.Second

// usable reports whether the sandbox can take the next command.
func (i *instance) usable() bool {
	select {
	case <-i.cleaned:
		return !i.unclean && i.alive()
	case <-time.After(cleanTime):
		return false
	}
}

// alive reports whether bubblewrap, on which everything depends, still runs and process 1 still listens.
func (i *instance) alive() bool {
	var ended unix.Siginfo
	if err := unix.Waitid(unix.P_PID, i.cmd.Process.Pid, &ended, unix.WEXITED|unix.WNOHANG|unix.WNOWAIT, nil); err != nil || ended.Signo != 0 {
		return false
	}
	conn, err := i.socket.SyscallConn()
	if err != nil {
		return false
	}
	gone := true
	err = conn.Control(func(fd uintptr) {
		_, _, err := unix.Recvfrom(int(fd), make([]byte, 1), unix.MSG_PEEK|unix.MSG_DONTWAIT)
		gone = !errors.Is(err, unix.EAGAIN) // process 1 sends nothing unasked, so anything else means that it has ended
	})
	return err == nil && !gone
}

// running is a command in a sandbox.
type running struct {
	i    *instance
	left int
}

var _ process.Process = (*running)(nil)

// begin starts a command. The sandbox belongs to the command until Wait has returned.
func (i *instance) begin(request inside.Request, streams process.Streams) (*running, error) {
	if err := i.send(request, streams.In, streams.Out, streams.Err); err != nil {
		i.unread = true
		return nil, fmt.Errorf("start the command: %w", err)
	}
	return &running{i: i}, nil
}

func (r *running) Wait() (int, error) {
	var ended inside.Ended
	_, _, err := r.i.receive(&ended)
	if err != nil { // the sandbox is gone, and the command with it
		// A reset means that the sandbox was gone before it read the command.
		r.i.unclean, r.i.unread = true, errors.Is(err, unix.ECONNRESET)
		return 128 + int(unix.SIGKILL), nil
	}
	if ended.Error != "" {
		r.i.unclean = true
		return 0, fmt.Errorf("start the command: %s", ended.Error)
	}
	r.left = ended.Left
	return ended.Code, nil
}

// Kill kills the whole sandbox. Nothing in it can prevent that.
func (r *running) Kill() { _ = r.i.init.Kill() }

func (r *running) Sweep(bool) int { return r.left }
