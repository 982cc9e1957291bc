package keep

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"chorus/internal/sandbox"
)

// startTime is far longer than starting a keeper with its sandbox takes, even on a busy machine.
const startTime = 60 * time.Second

// Spawn starts a keeper for a command in an existing folder and waits until the command runs. program is the
// command line of our own program. environ is the keeper's environment, from which the keeper removes secrets
// before the command gets it. The command is sent through a pipe, because it contains secrets.
func Spawn(ctx context.Context, program, environ []string, dir string, b sandbox.Background) (Status, error) {
	data, err := json.Marshal(b)
	if err != nil {
		return Status{}, err
	}
	complaints, err := os.OpenFile(filepath.Join(dir, "keeper.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return Status{}, fmt.Errorf("start a process in the background: %w", err)
	}
	defer func() { _ = complaints.Close() }()
	cmd := exec.Command(program[0], append(program[1:len(program):len(program)], Arg, dir)...)
	if program[0] == self {
		cmd.Args[0] = os.Args[0]
	}
	cmd.Dir, cmd.Env, cmd.Stderr = dir, environ, complaints
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	in, err := cmd.StdinPipe()
	if err != nil {
		return Status{}, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return Status{}, err
	}
	if err := cmd.Start(); err != nil {
		return Status{}, fmt.Errorf("start a process in the background: %w", err)
	}
	go func() { // it may outlive us; waiting for it avoids a zombie
		_, _ = in.Write(data)
		_ = in.Close()
	}()
	said := make(chan string, 1)
	go func() {
		text, _ := bufio.NewReader(out).ReadString('\n')
		said <- strings.TrimSpace(text)
		_ = cmd.Wait()
	}()
	late := time.NewTimer(startTime)
	defer late.Stop()
	var text string
	select {
	case text = <-said:
	case <-ctx.Done():
		text = context.Cause(ctx).Error()
	case <-late.C:
		text = "its keeper does not answer"
	}
	if text == ready {
		return ReadStatus(dir)
	}
	_ = cmd.Process.Signal(syscall.SIGTERM)
	text = cmp.Or(text, "its keeper ended at once; "+filepath.Join(dir, "keeper.log")+" may say why")
	return Status{}, errors.New(text)
}

// self is the running program, even if its file was replaced meanwhile.
const self = "/proc/self/exe"

// Self returns the command line of our own program.
func Self() []string {
	if _, err := os.Stat(self); err == nil {
		return []string{self}
	}
	if path, err := os.Executable(); err == nil {
		return []string{path}
	}
	return []string{os.Args[0]}
}
