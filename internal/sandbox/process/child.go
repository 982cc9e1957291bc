package process

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"time"

	"chorus/internal/sandbox"
)

// Child is a process of ours that runs a command.
type Child struct {
	Argv []string
	Dir  string
	Env  []string // the whole environment; it must contain Mark
	Mark string   // a variable that only this process tree has; see the function Mark
}

// StartChild starts a child for the command, with its own group and pipes and without a terminal.
func StartChild(command sandbox.Command, child Child) (*Running, error) {
	return Start(command, func(_ *Running, streams Streams) (Process, error) {
		cmd := exec.Command(child.Argv[0], child.Argv[1:]...)
		cmd.Dir, cmd.Env = child.Dir, child.Env
		cmd.Stdin, cmd.Stdout, cmd.Stderr = streams.In, streams.Out, streams.Err
		Lead(cmd)
		if err := cmd.Start(); err != nil {
			return nil, startError(cmd, err)
		}
		return &started{cmd: cmd, mark: child.Mark}, nil
	})
}

// started implements Process for a child of ours.
type started struct {
	cmd  *exec.Cmd
	mark string
}

func (s *started) Wait() (int, error) {
	state, err := s.cmd.Process.Wait()
	if err != nil {
		return 0, fmt.Errorf("wait for the command: %w", err)
	}
	return exitCode(state), nil
}

func (s *started) Kill() { s.killTree() }

func (s *started) Sweep(held bool) int {
	if !held && !groupAlive(s.cmd.Process.Pid) {
		return 0
	}
	return s.killTree()
}

func (s *started) killTree() int {
	// This does not use the command's context, which may have been cancelled.
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	n, _ := killTree(ctx, s.cmd.Process.Pid, s.mark)
	return n
}

// startError names the directory if that is the problem: the system's error names the program.
func startError(cmd *exec.Cmd, err error) error {
	if cmd.Dir != "" {
		info, statErr := os.Stat(cmd.Dir)
		if statErr != nil {
			return fmt.Errorf("start the command in %s: %w", cmd.Dir, errors.Unwrap(statErr))
		}
		if !info.IsDir() {
			return fmt.Errorf("start the command in %s: not a directory", cmd.Dir)
		}
	}
	return fmt.Errorf("start the command: %w", err)
}
