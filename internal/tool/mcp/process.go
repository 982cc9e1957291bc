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
	// grace is what a server has between being asked to end and being killed.
	grace = 3 * time.Second
	// graceIsolated is what one in a sandbox has after the end of its input.
	graceIsolated = 500 * time.Millisecond
	// keptStderr is the end of a server's complaints: enough for a stack trace's last
	// lines, too little to fill a log with.
	keptStderr = 4 << 10
)

// process is a server that runs here, in a process group of its own.
type process struct {
	isolated *sandbox.Prepared // nil: it runs without a sandbox
	cmd      *exec.Cmd
	in       *os.File // its standard input
	out      *os.File // its standard output
	errs     *os.File
	stderr   ring
	dead     chan struct{} // closed when it has ended, and its group with it
	heard    chan struct{} // closed when its standard error is read to the end
	how      string        // how it ended; read after dead
}

// startProcess starts the server's command. Nothing but the command is waited for.
func startProcess(ctx context.Context, s Server, dir string, opt Options) (*process, error) {
	p := &process{stderr: ring{most: keptStderr}, dead: make(chan struct{}), heard: make(chan struct{})}
	if err := p.command(ctx, s, dir, opt); err != nil {
		return nil, err
	}
	theirs, err := p.pipes()
	if err == nil {
		err = p.cmd.Start()
	}
	for _, f := range theirs {
		_ = f.Close()
	}
	if err == nil && p.isolated != nil {
		if err = p.isolated.Started(p.cmd.Process.Pid); err != nil {
			kill(p.cmd.Process.Pid)
			_ = p.cmd.Wait()
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
		_ = p.cmd.Wait()
		kill(p.cmd.Process.Pid) // what it leaves behind has nobody to work for
		p.release()
		p.how = p.cmd.ProcessState.String()
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
			p.cmd = exec.Command(isolated.Argv[0], isolated.Argv[1:]...)
			p.cmd.Env, p.cmd.ExtraFiles, p.cmd.SysProcAttr = isolated.Env, isolated.Files, ownGroup()
			return nil
		}
	}
	env := environ(opt.Environ, s.Env)
	program, err := findProgram(s.Command, dir, env)
	if err != nil {
		return err
	}
	p.cmd = exec.Command(program, s.Args...)
	p.cmd.Args[0] = s.Command
	p.cmd.Dir, p.cmd.Env, p.cmd.SysProcAttr = dir, env, ownGroup()
	return nil
}

func (p *process) release() {
	if p.isolated != nil {
		p.isolated.Release()
	}
}

// pipes makes the three of them, and returns the ends that are the child's. They
// are files, so Wait does not wait for a grandchild that holds one open.
func (p *process) pipes() (theirs []*os.File, err error) {
	make := func(ours, child **os.File, reads bool) {
		r, w, perr := os.Pipe()
		if perr != nil {
			err = errors.Join(err, perr)
			return
		}
		if *ours, *child = w, r; reads {
			*ours, *child = r, w
		}
		theirs = append(theirs, *child)
	}
	var in, out, errs *os.File
	make(&p.in, &in, false)
	make(&p.out, &out, true)
	make(&p.errs, &errs, true)
	if err == nil {
		p.cmd.Stdin, p.cmd.Stdout, p.cmd.Stderr = in, out, errs
	}
	return theirs, err
}

func (p *process) closePipes() {
	for _, f := range []*os.File{p.in, p.out, p.errs} {
		if f != nil {
			_ = f.Close()
		}
	}
}

// stop ends the process and all it started, and returns when they are gone. May be
// called twice.
func (p *process) stop() {
	_ = p.in.Close()
	if p.isolated != nil {
		// A signal would end the sandbox at once: the end of its input is all that the server hears.
		wait(p.dead, graceIsolated)
	}
	select {
	case <-p.dead:
	default:
		terminate(p.cmd.Process.Pid)
		if !wait(p.dead, grace) {
			kill(p.cmd.Process.Pid)
			<-p.dead
		}
	}
	p.closePipes()
	<-p.heard
}

// wait reports whether done was closed in time.
func wait(done <-chan struct{}, most time.Duration) bool {
	late := time.NewTimer(most)
	defer late.Stop()
	select {
	case <-done:
		return true
	case <-late.C:
		return false
	}
}

// Program is the file that the server's command would start from dir, or why none
// would. Nothing is started.
func (s Server) Program(dir string, ours []string) (string, error) {
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
	return "", &configError{fmt.Errorf("the command %s is not there: install it, or give its whole path", command)}
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

// configError is a failure that trying again does not mend.
type configError struct{ error }

func (e *configError) Unwrap() error { return e.error }
