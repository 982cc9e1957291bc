package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"time"
)

// launched is what one run cost, as its parent sees it.
type launched struct {
	Start int64         `json:"start"` // unix nanoseconds, just before exec
	Wall  time.Duration `json:"wall"`
	CPU   time.Duration `json:"cpu"`   // user and system, the commands it ran included
	Tools time.Duration `json:"tools"` // the commands' share, in ticks of 10 ms; 0: not known here
	Peak  int64         `json:"peak"`  // bytes resident
	// Private is the most private memory that was seen, in bytes; 0: nobody looked.
	Private int64  `json:"private,omitempty"`
	Exit    int    `json:"exit"`   //
	Output  string `json:"output"` // the last of what it printed
}

// launch runs argv and prints a launched. It is a process of its own because a
// child's peak memory begins with what its parent had at the fork: this parent has
// about 9 MB, so that only figures below that are not the child's own.
func launch(argv []string) error {
	out, err := os.CreateTemp("", "bench-output-*")
	if err != nil {
		return err
	}
	defer os.Remove(out.Name())
	defer out.Close()
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Stdout, cmd.Stderr = out, out
	for _, kv := range os.Environ() {
		if !strings.HasPrefix(kv, modeVariable+"=") && !strings.HasPrefix(kv, sampleVariable+"=") {
			cmd.Env = append(cmd.Env, kv)
		}
	}
	start := time.Now()
	if err := cmd.Start(); err != nil {
		return err
	}
	res := launched{Start: start.UnixNano()}
	stop := func() int64 { return 0 }
	if os.Getenv(sampleVariable) != "" {
		stop = watchPrivate(cmd.Process.Pid)
	}
	res.Tools = toolTime(cmd.Process.Pid)
	res.Private = stop()
	_ = cmd.Wait() // how it ended is in the state
	res.Wall = time.Since(start)
	res.Exit = cmd.ProcessState.ExitCode()
	res.CPU = cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	if ru, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage); ok {
		res.Peak = int64(ru.Maxrss)
		if runtime.GOOS == "linux" { // kilobytes there, bytes elsewhere
			res.Peak *= 1024
		}
	}
	text, err := os.ReadFile(out.Name())
	if err != nil {
		return err
	}
	res.Output = string(text[max(0, len(text)-2000):])
	data, err := json.Marshal(res)
	if err != nil {
		return err
	}
	fmt.Println(string(data))
	return nil
}

// sampleEvery is short against the collections of garbage, between which the heap grows.
const sampleEvery = 2 * time.Millisecond

// watchPrivate looks at a process's private memory until stop, which gives the most it saw.
func watchPrivate(pid int) (stop func() int64) {
	done, most := make(chan struct{}), make(chan int64)
	go func() {
		var seen int64
		for tick := time.Tick(sampleEvery); ; {
			select {
			case <-tick:
				seen = max(seen, privateNow(pid))
			case <-done:
				most <- seen
				return
			}
		}
	}()
	return func() int64 {
		close(done)
		return <-most
	}
}
