//go:build linux

// Package execgate sees every program that is started inside of a sandbox before it runs. The
// kernel stops the process that starts it (seccomp user notification), the gate reads what is
// to be started, and a judge says whether it may.
//
// What a process passes to the kernel lies in its own memory, where another of its threads
// can change it after it was read. So a program is looked at a second time, when its new image
// has made its first system calls and has one thread: then the kernel says what it took.
package execgate

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"chorus/internal/sandbox"
	"chorus/internal/sandbox/bwrap/inside"
)

// Gate answers for the programs of one sandbox.
type Gate struct {
	file     *os.File
	conn     syscall.RawConn
	programs *Programs
	serving  sync.WaitGroup

	mu      sync.Mutex
	command *command // nil: nothing may be started
}

// command is what the gate knows about the command that runs.
type command struct {
	ctx     context.Context
	judge   func(context.Context, sandbox.Exec) error
	begun   bool               // its first program is the command itself, which was judged before
	seen    map[uint32]*looked // by process: what was allowed, until the second look
	refused []string           // what people are told
	held    sync.WaitGroup     // answers on their way
}

// looked is what was read of a program when it was to be started.
type looked struct {
	id    fileID
	given string
	argv  []string
	free  bool // whatever it is, it was judged before
}

// Works says why there can be no gate on this machine; nil: there can.
func Works() error {
	var sizes [3]uint16
	if _, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_GET_NOTIF_SIZES, 0, uintptr(unsafe.Pointer(&sizes))); errno != 0 {
		return fmt.Errorf("this kernel reports no system calls to other processes: %w", errno)
	}
	if inside.NewImage < 0 {
		return errors.New("it is not known for this kind of machine")
	}
	return nil
}

// New takes the listener of a sandbox over.
func New(listener *os.File, programs *Programs) (*Gate, error) {
	fd, err := unix.FcntlInt(listener.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	if err := unix.SetNonblock(fd, true); err != nil {
		return nil, errors.Join(err, unix.Close(fd))
	}
	g := &Gate{file: os.NewFile(uintptr(fd), "gate"), programs: programs}
	if g.conn, err = g.file.SyscallConn(); err != nil {
		return nil, errors.Join(err, g.file.Close())
	}
	// Whoever waits runs again on the processor that answered: faster, where the kernel has it.
	_, _, _ = unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.SECCOMP_IOCTL_NOTIF_SET_FLAGS, unix.SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP)
	g.serving.Go(g.serve)
	return g, nil
}

// Close ends the gate. Whatever is started in the sandbox afterwards fails.
func (g *Gate) Close() {
	_ = g.file.Close()
	g.serving.Wait()
}

// Judge says who answers for the next command. The result ends that, and gives what was refused.
func (g *Gate) Judge(ctx context.Context, judge func(context.Context, sandbox.Exec) error) (end func() (refused []string)) {
	g.programs.refresh()
	ctx, cancel := context.WithCancel(ctx)
	c := &command{ctx: ctx, judge: judge, seen: map[uint32]*looked{}}
	g.mu.Lock()
	g.command = c
	g.mu.Unlock()
	return func() []string {
		g.mu.Lock()
		g.command = nil
		g.mu.Unlock()
		cancel()
		c.held.Wait()
		return c.refused
	}
}

// The kernel's structures.
type (
	notification struct {
		id    uint64
		pid   uint32
		flags uint32
		call  struct {
			number int32
			arch   uint32
			at     uint64
			args   [6]uint64
		}
	}
	response struct {
		id    uint64
		value int64
		err   int32
		flags uint32
	}
)

// serve takes notifications until the sandbox or the gate ends.
func (g *Gate) serve() {
	for {
		var n notification
		ended := false
		err := g.conn.Read(func(fd uintptr) bool {
			for {
				poll := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
				if _, err := unix.Poll(poll, 0); err != nil && !errors.Is(err, unix.EINTR) {
					ended = true
					return true
				}
				switch {
				case poll[0].Revents&unix.POLLIN != 0:
				case poll[0].Revents&(unix.POLLHUP|unix.POLLERR|unix.POLLNVAL) != 0:
					ended = true
					return true
				default:
					return false
				}
				n = notification{}
				switch _, _, errno := unix.Syscall(unix.SYS_IOCTL, fd, unix.SECCOMP_IOCTL_NOTIF_RECV, uintptr(unsafe.Pointer(&n))); errno {
				case 0:
					return true
				case unix.EINTR, unix.ENOENT: // whoever asked was killed
				default:
					ended = true
					return true
				}
			}
		})
		if err != nil || ended {
			return
		}
		g.mu.Lock()
		c := g.command
		if c != nil {
			c.held.Add(1)
		}
		g.mu.Unlock()
		if c == nil {
			g.answer(n.id, unix.EPERM)
			continue
		}
		go func() {
			defer c.held.Done()
			g.handle(c, &n)
		}()
	}
}

func (g *Gate) control(request uintptr, arg unsafe.Pointer) error {
	var errno syscall.Errno
	err := g.conn.Control(func(fd uintptr) {
		_, _, errno = unix.Syscall(unix.SYS_IOCTL, fd, request, uintptr(arg))
	})
	if err != nil {
		return err
	}
	if errno != 0 {
		return errno
	}
	return nil
}

// answer lets the call go on (0), or has it fail.
func (g *Gate) answer(id uint64, errno syscall.Errno) {
	r := response{id: id, flags: unix.SECCOMP_USER_NOTIF_FLAG_CONTINUE}
	if errno != 0 {
		r.flags, r.err = 0, -int32(errno)
	}
	_ = g.control(unix.SECCOMP_IOCTL_NOTIF_SEND, unsafe.Pointer(&r))
}

// waits says whether the process still waits for the answer. When it does not, what was
// read may be another's.
func (g *Gate) waits(id uint64) bool {
	return g.control(unix.SECCOMP_IOCTL_NOTIF_ID_VALID, unsafe.Pointer(&id)) == nil
}

func (g *Gate) handle(c *command, n *notification) {
	if int(n.call.number) == inside.NewImage {
		g.second(c, n)
		return
	}
	p, err := look(n)
	defer p.close()
	if !g.waits(n.id) {
		return
	}
	first := false
	c.lock(g, func() {
		if first = !c.begun; first { // the command itself
			c.begun = true
			c.seen[n.pid] = &looked{free: true}
		}
	})
	switch {
	case first:
		g.answer(n.id, 0)
		return
	case errors.Is(err, unix.ENOENT), errors.Is(err, unix.ENOTDIR), errors.Is(err, unix.EACCES), errors.Is(err, unix.ELOOP):
		g.answer(n.id, 0) // there is no such program, and the kernel says so
		return
	case err != nil: // what cannot be read is not run
		c.refuse(g, fmt.Sprintf("a program was not started: it could not be read (%v)", err))
		g.answer(n.id, unix.EPERM)
		return
	}
	if err := g.judge(c, p); err != nil {
		c.refuse(g, refusal(p, err))
		g.answer(n.id, unix.EPERM)
		return
	}
	c.lock(g, func() {
		if len(c.seen) > 4096 { // of programs that did not start after all
			clear(c.seen)
		}
		c.seen[n.pid] = &looked{id: p.id, given: p.given, argv: p.argv}
	})
	g.answer(n.id, 0)
}

// second looks at what the kernel took.
func (g *Gate) second(c *command, n *notification) {
	p, err := lookAgain(n)
	if !g.waits(n.id) {
		return
	}
	var before *looked
	c.lock(g, func() {
		before = c.seen[n.pid]
		delete(c.seen, n.pid)
	})
	if err == nil && before != nil && (before.free || before.id == p.id && slices.Equal(before.argv, p.argv)) {
		err = foreignLibrary(p)
	} else if err == nil {
		if before == nil { // a program that loads another one by itself
			p.mapped = true
		} else {
			p.script = before.isScriptOf(p)
		}
		if err = foreignLibrary(p); err == nil {
			err = g.judge(c, p)
		}
	}
	if err != nil {
		c.refuse(g, refusal(p, err))
		_ = unix.Kill(int(n.pid), unix.SIGKILL) // it waits for the answer, so it is this process
	}
	g.answer(n.id, 0)
}

func (c *command) lock(g *Gate, f func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	f()
}

// maxRefused is enough for a model to act on.
const maxRefused = 10

func (c *command) refuse(g *Gate, text string) {
	c.lock(g, func() {
		if !slices.Contains(c.refused, text) && len(c.refused) < maxRefused {
			c.refused = append(c.refused, text)
		}
	})
}

// judge asks about a program, and about the one that a loader would run.
func (g *Gate) judge(c *command, p *program) error {
	if err := c.judge(c.ctx, sandbox.Exec{Names: g.programs.names(p), Path: p.given, System: ofMachine(p.path), Script: p.script, Argv: p.argv, Dir: p.dir, By: p.parent}); err != nil {
		return err
	}
	if inner := p.loaded(); inner != nil {
		defer inner.close()
		return g.judge(c, inner)
	}
	return nil
}

func refusal(p *program, why error) string {
	text := fmt.Sprintf("`%s` was not started: %v", Line(p.argv), why)
	if by := p.parent(); len(by) > 0 {
		text += fmt.Sprintf(" (started by `%s`)", Line(by))
	}
	return text
}

// Line is an argument vector for people.
func Line(argv []string) string {
	const most = 200
	text := strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r == '`' {
			return ' '
		}
		return r
	}, strings.Join(argv, " "))
	if len(text) > most {
		text = strings.ToValidUTF8(text[:most], "") + "…"
	}
	return text
}
