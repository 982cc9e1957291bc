//go:build linux

// Package execgate sees every program that is started inside a sandbox before it runs. The
// kernel stops the process that starts the program (seccomp user notification), the gate reads
// what is to be started, and a judge decides whether it may run.
//
// The arguments that a process passes to the kernel are in its own memory, where another of its threads can
// change them after they were read. Therefore the gate checks the program a second time, when its new image
// has made its first system calls and has only one thread: then the kernel reports what it actually loaded.
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
	listener int // receives the kernel's notifications
	stop     int // an event that ends serve
	programs *Programs
	serving  sync.WaitGroup
	root     int          // root of the sandbox, once known; only serve uses it
	memory   memoryReader // only serve uses it

	mu      sync.Mutex
	command *command // nil: nothing may be started
}

// command is what the gate knows about the running command.
type command struct {
	ctx     context.Context
	judge   sandbox.Judge
	begun   bool              // its first program was started; that is the command itself, which was judged before
	current bool              // the program names have been refreshed for it
	seen    map[uint32]looked // what was allowed until the second check, by process
	refused []string          // what people are told
	held    sync.WaitGroup    // answers still pending
}

// looked is what was read about a program before it started.
type looked struct {
	id    fileID
	given string
	argv  []string
	free  bool // whatever it is, it was judged before
}

// Works returns why there can be no gate on this machine, or nil.
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

// New listens to a sandbox. The caller keeps the listener.
func New(listener *os.File, programs *Programs) (*Gate, error) {
	fd, err := unix.FcntlInt(listener.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	stop, err := unix.Eventfd(0, unix.EFD_CLOEXEC)
	if err != nil {
		return nil, errors.Join(err, unix.Close(fd))
	}
	g := &Gate{listener: fd, stop: stop, root: -1, programs: programs}
	// The waiting process then resumes on the processor that answered,
	// which is faster where the kernel supports it.
	_, _, _ = unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.SECCOMP_IOCTL_NOTIF_SET_FLAGS, unix.SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP)
	g.serving.Go(g.serve)
	return g, nil
}

// Close ends the gate. It must be called once, when no command runs any more.
// Anything that is started in the sandbox afterwards fails.
func (g *Gate) Close() {
	_, _ = unix.Write(g.stop, []byte{1, 0, 0, 0, 0, 0, 0, 0})
	g.serving.Wait()
	for _, fd := range []int{g.listener, g.stop, g.root} {
		if fd >= 0 {
			_ = unix.Close(fd)
		}
	}
}

// Judge sets who answers for the next command. end stops that and returns what was refused.
func (g *Gate) Judge(ctx context.Context, judge sandbox.Judge) (end func() (refused []string)) {
	ctx, cancel := context.WithCancel(ctx)
	c := &command{ctx: ctx, judge: judge, seen: map[uint32]looked{}}
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

// serve takes notifications until the sandbox or the gate ends. It answers itself whatever can be answered at
// once: handing each notification to another goroutine, or waiting by the runtime's poller, takes longer than
// the answer. A program that a person is asked about waits in its own goroutine.
func (g *Gate) serve() {
	// The kernel rejects a structure that is not zeroed.
	var n notification
	poll := []unix.PollFd{{Fd: int32(g.listener), Events: unix.POLLIN}, {Fd: int32(g.stop), Events: unix.POLLIN}}
	for {
		if _, err := unix.Poll(poll, -1); err != nil {
			if errors.Is(err, unix.EINTR) {
				continue
			}
			return
		}
		if poll[1].Revents != 0 || poll[0].Revents&unix.POLLIN == 0 {
			return
		}
		n = notification{}
		switch err := g.control(unix.SECCOMP_IOCTL_NOTIF_RECV, unsafe.Pointer(&n)); err {
		case 0:
		case unix.EINTR, unix.ENOENT: // the asking process was killed
			continue
		default:
			return
		}
		g.mu.Lock()
		c := g.command
		if c != nil {
			c.held.Add(1)
		}
		g.mu.Unlock()
		switch {
		case c == nil:
			g.answer(n.id, unix.EPERM)
			continue
		case int(n.call.number) == inside.NewImage:
			g.second(c, &n)
		default:
			g.first(c, &n)
		}
		c.held.Done()
	}
}

func (g *Gate) control(request uintptr, arg unsafe.Pointer) syscall.Errno {
	_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(g.listener), request, uintptr(arg))
	return errno
}

// answer lets the call go on (errno 0) or makes it fail.
func (g *Gate) answer(id uint64, errno syscall.Errno) {
	r := response{id: id, flags: unix.SECCOMP_USER_NOTIF_FLAG_CONTINUE}
	if errno != 0 {
		r.flags, r.err = 0, -int32(errno)
	}
	_ = g.control(unix.SECCOMP_IOCTL_NOTIF_SEND, unsafe.Pointer(&r))
}

// waits reports whether the process still waits for the answer. If it does
// not, what was read may belong to another process.
func (g *Gate) waits(id uint64) bool {
	return g.control(unix.SECCOMP_IOCTL_NOTIF_ID_VALID, unsafe.Pointer(&id)) == 0
}

// first checks what is to be started.
func (g *Gate) first(c *command, n *notification) {
	if !c.begun { // the command itself
		c.begun = true
		c.seen[n.pid] = looked{free: true}
		g.answer(n.id, 0)
		return
	}
	p, err := g.look(n)
	if !g.waits(n.id) {
		p.close()
		return
	}
	switch {
	case errors.Is(err, unix.ENOENT), errors.Is(err, unix.ENOTDIR), errors.Is(err, unix.EACCES), errors.Is(err, unix.ELOOP):
		g.answer(n.id, 0) // there is no such program; the kernel will report that
		return
	case err != nil: // what cannot be read does not run
		p.close()
		c.refuse(g, fmt.Sprintf("a program was not started: it could not be read (%v)", err))
		g.answer(n.id, unix.EPERM)
		return
	}
	id, pid := n.id, n.pid
	g.judge(c, p, func(err error) {
		if err != nil {
			c.refuse(g, refusal(p, err))
			g.answer(id, unix.EPERM)
			return
		}
		g.mu.Lock()
		if len(c.seen) > 4096 { // left over from programs that did not start after all
			clear(c.seen)
		}
		c.seen[pid] = looked{id: p.id, given: p.given, argv: p.argv}
		g.mu.Unlock()
		g.answer(id, 0)
	})
}

// second checks what the kernel loaded.
func (g *Gate) second(c *command, n *notification) {
	g.mu.Lock()
	before, known := c.seen[n.pid]
	delete(c.seen, n.pid)
	g.mu.Unlock()
	p := &program{pid: int(n.pid), root: g.root}
	id, pid := n.id, n.pid
	end := func(err error) {
		if err != nil {
			c.refuse(g, refusal(p, err))
			_ = unix.Kill(int(pid), unix.SIGKILL) // it waits for the answer, so the pid still means this process
		}
		g.answer(id, 0)
	}
	if before.free { // nothing but the loader has run in it, so its root is the sandbox's
		if g.root < 0 {
			g.root, _ = unix.Open(p.proc("root"), unix.O_PATH|unix.O_CLOEXEC, 0)
		}
		if err := g.writableLibrary(p); g.waits(id) {
			end(err)
		}
		return
	}
	err := g.lookAgain(p)
	same := err == nil && known && before.id == p.id && slices.Equal(before.argv, p.argv)
	if err == nil && !same {
		if err = p.named(); known {
			p.script = before.isScriptOf(p)
		} else { // a program that loads another one by itself
			p.mapped = true
		}
	}
	if err == nil {
		err = g.writableLibrary(p)
	}
	switch {
	case !g.waits(id):
	case same || err != nil:
		end(err)
	default:
		g.judge(c, p, end)
	}
}

// maxRefused is enough for a model to act on.
const maxRefused = 10

func (c *command) refuse(g *Gate, text string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !slices.Contains(c.refused, text) && len(c.refused) < maxRefused {
		c.refused = append(c.refused, text)
	}
}

// judge judges a program, and the one that a loader would run, and passes the answer to
// end: at once, or later if a person is asked. It closes the program.
func (g *Gate) judge(c *command, p *program, end func(error)) {
	if !c.current { // many commands start no program and need no names
		g.programs.refresh()
		c.current = true
	}
	all := []*program{p}
	for inner := p.loaded(g.programs.known(p)); inner != nil; inner = inner.loaded(g.programs.known(inner)) {
		all = append(all, inner)
	}
	done := func(err error) {
		end(err)
		for _, p := range all {
			p.close()
		}
	}
	var asks []func(context.Context) error
	for _, p := range all {
		ask, err := c.judge(sandbox.Exec{Names: g.programs.names(p), Path: p.given, System: ofMachine(p.path), Script: p.script, Argv: p.argv, Dir: p.dir, By: p.parent})
		if err != nil {
			done(err)
			return
		}
		if ask != nil {
			asks = append(asks, ask)
		}
	}
	if len(asks) == 0 {
		done(nil)
		return
	}
	c.held.Go(func() {
		for _, ask := range asks {
			if err := ask(c.ctx); err != nil {
				done(err)
				return
			}
		}
		done(nil)
	})
}

func refusal(p *program, why error) string {
	text := fmt.Sprintf("`%s` was not started: %v", Line(p.argv), why)
	if by := p.parent(); len(by) > 0 {
		text += fmt.Sprintf(" (started by `%s`)", Line(by))
	}
	return text
}

// Line formats an argument vector for people.
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
