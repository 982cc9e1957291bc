package mcp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"chorus/internal/sandbox"
)

const (
	// grace is the time between asking a server to end and killing it.
	grace = 3 * time.Second
	// graceIsolated is the time that a sandboxed server has after the end of its input.
	graceIsolated = 500 * time.Millisecond
	// keptStderr is how much of the end of a server's error output is kept: enough for
	// the last lines of a stack trace, too little to fill a log.
	keptStderr = 4 << 10
)

// process is a server that runs here, in its own process group.
type process struct {
	isolated *sandbox.Prepared // nil: it runs without a sandbox
	child    child
	in       *os.File // its standard input
	out      *os.File // its standard output
	errs     *os.File
	stderr   ring
	dead     chan struct{} // closed when it has ended, and its group with it
	heard    chan struct{} // closed when its standard error was read to the end
	how      string        // how it ended; read after dead
}

// startProcess starts the server's command. It waits for nothing but the start itself.
func startProcess(ctx context.Context, s Server, dir string, opt Options) (*process, error) {
	p := &process{stderr: ring{most: keptStderr}, dead: make(chan struct{}), heard: make(chan struct{})}
	if err := p.command(ctx, s, dir, opt); err != nil {
		return nil, err
	}
	theirs, err := p.pipes()
	if err == nil {
		err = p.start(theirs)
	}
	for _, f := range theirs {
		if f != nil {
			_ = f.Close()
		}
	}
	if err != nil {
		p.closePipes()
		p.release()
		return nil, &configError{fmt.Errorf("%s could not be started: %w", s.Command, err)}
	}
	go func() {
		defer close(p.heard)
		_, _ = io.Copy(&p.stderr, p.errs)
	}()
	go func() {
		defer close(p.dead)
		p.how = p.child.wait()
		p.release()
	}()
	return p, nil
}

// command decides what is started: the server's program, or the sandbox around it.
func (p *process) command(ctx context.Context, s Server, dir string, opt Options) error {
	if opt.Prepare != nil {
		isolated, err := opt.Prepare(ctx, s, dir)
		if err != nil {
			return &configError{err}
		}
		if p.isolated = isolated; isolated != nil {
			return nil
		}
	}
	env := environ(opt.Environ, s.Env)
	program, err := findProgram(s.Command, dir, env)
	if err != nil {
		return err
	}
	cmd := exec.Command(program, s.Args...)
	cmd.Args[0] = s.Command
	cmd.Dir, cmd.Env, cmd.SysProcAttr = dir, env, ownGroup()
	p.child = &group{cmd}
	return nil
}

// start starts what command decided, with the streams.
func (p *process) start(streams [3]*os.File) error {
	if p.isolated == nil {
		cmd := p.child.(*group).cmd
		cmd.Stdin, cmd.Stdout, cmd.Stderr = streams[0], streams[1], streams[2]
		return cmd.Start()
	}
	program, err := p.isolated.Start(streams[0], streams[1], streams[2])
	p.child = &isolated{program}
	return err
}

// child is what runs the server's command.
type child interface {
	wait() (how string) // everything it started has ended then
	terminate()
	kill()
}

// group is a process of ours with its own process group.
type group struct{ cmd *exec.Cmd }

func (g *group) wait() string {
	_ = g.cmd.Wait()
	g.kill() // what it leaves behind has nobody to work for
	return g.cmd.ProcessState.String()
}

func (g *group) terminate() { terminate(g.cmd.Process.Pid) }
func (g *group) kill()      { kill(g.cmd.Process.Pid) }

// isolated is a program in a sandbox. The only way to ask it to end is to end its input.
type isolated struct{ program sandbox.Program }

func (i *isolated) wait() string {
	code, err := i.program.Wait()
	if err != nil {
		return err.Error()
	}
	return fmt.Sprintf("exit status %d", code)
}

func (i *isolated) terminate() { i.program.Kill() }
func (i *isolated) kill()      { i.program.Kill() }

func (p *process) release() {
	if p.isolated != nil {
		p.isolated.Release()
	}
}

// pipes creates the three pipes and returns the child's ends. They are files,
// so nothing waits for a grandchild that holds one open.
func (p *process) pipes() (theirs [3]*os.File, err error) {
	for i, ours := range []**os.File{&p.in, &p.out, &p.errs} {
		r, w, err := os.Pipe()
		if err != nil {
			return theirs, err
		}
		if *ours, theirs[i] = r, w; i == 0 {
			*ours, theirs[i] = w, r
		}
	}
	return theirs, nil
}

func (p *process) closePipes() {
	for _, f := range []*os.File{p.in, p.out, p.errs} {
		if f != nil {
			_ = f.Close()
		}
	}
}

// stop ends the process and everything it started, and returns when they have ended. It may be called twice.
func (p *process) stop() {
	_ = p.in.Close()
	if p.isolated != nil {
		// A signal would end the sandbox at once, so the end of its input
		// is the only notice that the server gets.
		wait(p.dead, graceIsolated)
	}
	select {
	case <-p.dead:
	default:
		p.child.terminate()
		if !wait(p.dead, grace) {
			p.child.kill()
			<-p.dead
		}
	}
	p.closePipes()
	<-p.heard
}

// wait reports whether done was closed in time.
func wait(done <-chan struct{}, most time.Duration) bool {
	select {
	case <-done:
		return true
	case <-time.After(most):
		return false
	}
}

// Program returns the file that a server's command would start from
// dir, or why there is none. It starts nothing.
func Program(s Server, dir string, ours []string) (string, error) {
	if !filepath.IsAbs(s.Dir) {
		s.Dir = filepath.Join(dir, s.Dir)
	}
	return findProgram(s.Command, s.Dir, environ(ours, s.Env))
}

// findProgram looks for a command in the PATH that the server will have.
func findProgram(command, dir string, env []string) (string, error) {
	if filepath.Base(command) != command {
		if !filepath.IsAbs(command) {
			command = filepath.Join(dir, command)
		}
		if err := executable(command); err != nil {
			return "", &configError{fmt.Errorf("%s cannot be run: %w", command, err)}
		}
		return command, nil
	}
	for _, entry := range env {
		if len(entry) < 5 || entry[:5] != "PATH=" {
			continue
		}
		for _, place := range filepath.SplitList(entry[5:]) {
			if file := filepath.Join(place, command); filepath.IsAbs(file) && executable(file) == nil {
				return file, nil
			}
		}
	}
	return "", &configError{fmt.Errorf("the command %s was not found: install it, or give its full path", command)}
}

func executable(file string) error {
	info, err := os.Stat(file)
	switch {
	case err != nil:
		return errors.Unwrap(err)
	case info.IsDir() || info.Mode()&0o111 == 0:
		return fs.ErrPermission
	}
	return nil
}

// configError is a failure that a retry cannot fix.
type configError struct{ error }

func (e *configError) Unwrap() error { return e.error }
