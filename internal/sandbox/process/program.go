package process

import "os/exec"

// Program is a child of ours that is left running, with everything it starts.
type Program struct {
	started
	asked map[int]bool
}

// StartProgram starts a child with these streams, which the caller keeps. The child dies with us.
func StartProgram(child Child, streams Streams) (*Program, error) {
	cmd := exec.Command(child.Argv[0], child.Argv[1:]...)
	cmd.Dir, cmd.Env = child.Dir, child.Env
	cmd.Stdin, cmd.Stdout, cmd.Stderr = streams.In, streams.Out, streams.Err
	Lead(cmd)
	if err := cmd.Start(); err != nil {
		return nil, startError(cmd, err)
	}
	return &Program{started: started{cmd: cmd, mark: child.Mark}}, nil
}

// Wait waits for the program and then ends what it left.
func (p *Program) Wait() (int, error) {
	code, err := p.started.Wait()
	p.Sweep(true)
	return code, err
}

// Terminate implements sandbox.Kept.
func (p *Program) Terminate() int {
	if p.asked == nil {
		p.asked = map[int]bool{}
	}
	return Terminate(p.mark, p.asked)
}

// Notes implements sandbox.Kept.
func (p *Program) Notes() []string { return nil }
