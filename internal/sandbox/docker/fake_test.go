package docker

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"chorus/internal/programtest"
)

// The fake is a docker program for machines without a daemon: this test binary,
// started through a small script. Its container is a session of processes on this
// machine and a mapping of paths; it is as strict about its command line as the real
// one and stricter, and it fails in the ways that real ones do.

// fakeContainer is one container of the fake, as it is stored in its file.
type fakeContainer struct {
	Name, Host, Inside string
	Status             string // running, paused, exited
	Fault              string // see perform
	Network            string // what it is connected to; "" for bridge
}

// fakeDocker is the fake as tests see it.
type fakeDocker struct {
	dir     string
	program string
}

func newFakeDocker(t *testing.T, r fakeContainer) *fakeDocker {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	s := &fakeDocker{dir: t.TempDir()}
	s.program = filepath.Join(s.dir, "docker")
	script := fmt.Sprintf("#!/bin/sh\nGORACE=atexit_sleep_ms=0 CHORUS_STANDIN='%s' exec '%s' \"$@\"\n", s.dir, self)
	programtest.Write(t, s.program, script)
	if r.Status == "" {
		r.Status = "running"
	}
	saveContainer(s.dir, r)
	return s
}

// calls are the command lines it was started with.
func (s *fakeDocker) calls(t *testing.T) [][]string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(s.dir, "log"))
	if err != nil {
		t.Fatal(err)
	}
	var all [][]string
	for line := range bytes.Lines(data) {
		var one []string
		if err := json.Unmarshal(line, &one); err != nil {
			t.Fatal(err)
		}
		all = append(all, one)
	}
	return all
}

func saveContainer(dir string, r fakeContainer) {
	data, _ := json.Marshal(r)
	tmp := filepath.Join(dir, "container."+strconv.Itoa(os.Getpid()))
	if os.WriteFile(tmp, data, 0o600) != nil || os.Rename(tmp, filepath.Join(dir, "container")) != nil {
		panic("the fake has lost its container")
	}
}

func loadContainer(dir string) (r fakeContainer) {
	data, err := os.ReadFile(filepath.Join(dir, "container"))
	if err != nil || json.Unmarshal(data, &r) != nil {
		panic("the fake has no container")
	}
	return r
}

// perform is the fake's main program.
func perform(dir string, args []string) int {
	line, _ := json.Marshal(args)
	if f, err := os.OpenFile(filepath.Join(dir, "log"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600); err == nil {
		_, _ = f.Write(append(line, '\n'))
		_ = f.Close()
	}
	r := loadContainer(dir)
	switch r.Fault {
	case "down":
		fmt.Fprintln(os.Stderr, "Cannot connect to the Docker daemon at unix:///var/run/docker.sock. Is the docker daemon running?")
		return 1
	case "hang":
		forever()
	case "slow":
		time.Sleep(200 * time.Millisecond)
	}
	switch {
	case len(args) == 3 && args[0] == "version" && args[1] == "--format":
		fmt.Println("28.0.0-fakeDocker")
	case len(args) == 3 && args[0] == "container" && args[1] == "inspect":
		return r.inspect(args[2])
	case len(args) > 0 && args[0] == "exec":
		return r.exec(dir, args[1:])
	default:
		fmt.Fprintf(os.Stderr, "docker: unknown command: %q\n", args)
		return 125
	}
	return 0
}

func forever() { time.Sleep(time.Hour) }

func (r fakeContainer) inspect(name string) int {
	if name != r.Name {
		fmt.Println("[]")
		fmt.Fprintln(os.Stderr, "Error response from daemon: No such container: "+name)
		return 1
	}
	c := container{}
	c.State.Status, c.State.Running, c.State.Paused = r.Status, r.Status != "exited", r.Status == "paused"
	c.HostConfig.NetworkMode = cmp.Or(r.Network, "bridge")
	if !shares(r.Network) {
		c.NetworkSettings.Networks = map[string]struct{}{c.HostConfig.NetworkMode: {}}
	}
	data, _ := json.Marshal([]container{c})
	fmt.Println(string(data))
	return 0
}

// execution is one `docker exec`.
type execution struct {
	interactive bool
	dir         string
	env         []string
	argv        []string
}

func (r fakeContainer) parse(args []string) (x execution, code int) {
	bad := func(code int, format string, a ...any) (execution, int) {
		fmt.Fprintf(os.Stderr, format+"\n", a...)
		return x, code
	}
	for len(args) > 0 && strings.HasPrefix(args[0], "-") {
		switch {
		case args[0] == "--interactive":
			x.interactive = true
			args = args[1:]
			continue
		case len(args) < 2:
			return bad(125, "flag needs an argument: %s", args[0])
		case args[0] == "--workdir":
			x.dir = args[1]
		case args[0] == "--env" && !strings.Contains(args[1], "="):
			x.env = append(x.env, args[1]+"="+os.Getenv(args[1]))
		case args[0] == "--user" && args[1] == "0":
		default:
			return bad(125, "unknown flag: %s %s", args[0], args[1])
		}
		args = args[2:]
	}
	switch {
	case len(args) < 2:
		return bad(1, `"docker exec" requires at least 2 arguments.`)
	case args[0] != r.Name:
		return bad(1, "Error response from daemon: No such container: %s", args[0])
	case r.Status == "exited":
		return bad(1, "Error response from daemon: container 0123 is not running")
	case r.Status == "paused":
		return bad(1, "Error response from daemon: Container 0123 is paused, unpause the container before exec")
	}
	x.argv = args[1:]
	// The one directory that it shares has another name outside.
	rest, shared := strings.CutPrefix(x.dir, r.Inside)
	switch {
	case shared && (rest == "" || rest[0] == '/'):
		x.dir = r.Host + rest
	case x.dir != "/":
		return bad(126, "OCI runtime exec failed: chdir to cwd (%q) failed: no such file or directory", x.dir)
	}
	if info, err := os.Stat(x.dir); err != nil || !info.IsDir() {
		return bad(126, "OCI runtime exec failed: exec failed: chdir to cwd (%q) set in config.json failed", x.dir)
	}
	return x, 0
}

func (r fakeContainer) exec(dir string, args []string) int {
	x, code := r.parse(args)
	if code != 0 {
		return code
	}
	if r.Fault == "deaf" && !x.interactive {
		forever() // it takes no new work any more
	}
	if !x.interactive || r.Fault == "ghost" {
		x.argv = r.translate(x.argv)
	}
	cmd := exec.Command(x.argv[0], x.argv[1:]...)
	cmd.Dir = x.dir
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=/"}, x.env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if r.Fault == "ghost" && x.interactive {
		// The daemon is late: the client is not there any more when the command begins.
		out, _ := cmd.CombinedOutput()
		_ = os.WriteFile(filepath.Join(dir, "ghost"), out, 0o600)
		forever()
	}
	var stdout, stderr io.Writer = os.Stdout, os.Stderr
	if x.interactive && r.Fault != "" {
		stdout = &faultyWriter{to: os.Stdout, fault: r.Fault, container: r, dir: dir, cmd: cmd}
	}
	cmd.Stdout, cmd.Stderr = struct{ io.Writer }{stdout}, struct{ io.Writer }{stderr}
	if x.interactive {
		in, err := cmd.StdinPipe()
		if err != nil {
			return 125
		}
		go func() {
			_, _ = io.Copy(in, os.Stdin)
			_ = in.Close()
		}()
	}
	err := cmd.Start()
	if err == nil {
		err = cmd.Wait()
	}
	if cmd.ProcessState == nil {
		fmt.Fprintf(os.Stderr, "OCI runtime exec failed: %v\n", err)
		return 127
	}
	if ws, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		return 128 + int(ws.Signal())
	}
	return cmd.ProcessState.ExitCode()
}

// translate gives the container's names of shared files back their own, for want of a
// mount: Probe asks for one by its name inside.
func (r fakeContainer) translate(argv []string) []string {
	var out []string
	for _, a := range argv {
		if rest, ok := strings.CutPrefix(a, r.Inside+"/"); ok {
			a = r.Host + "/" + rest
		}
		out = append(out, a)
	}
	return out
}

// faultyWriter breaks the stream out of the container in the way of its fault.
type faultyWriter struct {
	to        io.Writer
	fault     string
	container fakeContainer
	dir       string
	cmd       *exec.Cmd
	begun     bool
}

func (m *faultyWriter) Write(p []byte) (int, error) {
	switch {
	case m.fault == "swallow": // not even the beginning comes out
		return len(p), nil
	case m.fault == "mute" && m.begun: // the output is lost, the exit code is not
		return len(p), nil
	case m.fault == "cut" && bytes.Contains(p, []byte("NOW")): // the connection breaks, the command goes on
		_, _ = m.to.Write(p)
		fmt.Fprintln(os.Stderr, "error during connect: unexpected EOF")
		os.Exit(1)
	case m.fault == "stop" && bytes.Contains(p, []byte("NOW")): // somebody stops the container
		_, _ = m.to.Write(p)
		m.container.Status = "exited"
		saveContainer(m.dir, m.container)
		_ = syscall.Kill(-m.cmd.Process.Pid, syscall.SIGKILL)
		os.Exit(137)
	}
	m.begun = true
	return m.to.Write(p)
}
