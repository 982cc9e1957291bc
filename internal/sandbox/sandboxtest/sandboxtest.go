// Package sandboxtest checks an executor against the contract of package
// sandbox. Call Run first when you write a new executor.
package sandboxtest

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
	"unicode/utf8"

	"chorus/internal/sandbox"
)

// Fixture is what the suite needs of an executor under test.
type Fixture struct {
	// New returns an executor whose server has the environment environ.
	New func(t *testing.T, environ []string) sandbox.Executor
	// OwnPids means that process ids inside differ from those outside. Ids that a command reports
	// mean nothing here, so its processes are identified by their arguments.
	OwnPids bool
}

// Run runs the suite.
func Run(t *testing.T, fix Fixture) {
	t.Helper()
	environ := []string{"PATH=" + os.Getenv("PATH"), "HOME=" + os.Getenv("HOME"), "LANG=C.UTF-8"}
	ex := fix.New(t, environ)
	if ex.Name() == "" {
		t.Error("an executor needs a name")
	}
	t.Run("ends", func(t *testing.T) { t.Parallel(); ends(t, ex) })
	t.Run("cleaned", func(t *testing.T) { t.Parallel(); cleaned(t, ex) })
	t.Run("streams", func(t *testing.T) { t.Parallel(); streams(t, ex) })
	t.Run("timeout", func(t *testing.T) { t.Parallel(); timeout(t, fix, ex) })
	t.Run("abort", func(t *testing.T) { t.Parallel(); abort(t, fix, ex) })
	t.Run("survivors", func(t *testing.T) { t.Parallel(); survivors(t, fix, ex) })
	t.Run("flood", func(t *testing.T) { t.Parallel(); flood(t, ex) })
	t.Run("cannot start", func(t *testing.T) { t.Parallel(); cannotStart(t, ex) })
	t.Run("many at once", func(t *testing.T) { t.Parallel(); many(t, ex) })
	t.Run("reap", func(t *testing.T) { t.Parallel(); reap(t, fix, ex) })
	t.Run("secrets", func(t *testing.T) { t.Parallel(); secrets(t, fix, environ) })
}

func run(t *testing.T, ex sandbox.Executor, command sandbox.Command) sandbox.Result {
	t.Helper()
	if command.Dir == "" {
		command.Dir = t.TempDir()
	}
	res, err := ex.Run(t.Context(), command)
	if err != nil {
		t.Fatalf("run %q: %v", command.Shell, err)
	}
	return res
}

func ends(t *testing.T, ex sandbox.Executor) {
	tests := []struct {
		name    string
		command sandbox.Command
		code    int
		stdout  string
	}{
		{"fine", sandbox.Command{Shell: "echo hi"}, 0, "hi\n"},
		{"exit code", sandbox.Command{Shell: "exit 42"}, 42, ""},
		{"signal", sandbox.Command{Shell: "kill -TERM $$"}, 143, ""},
		{"unknown program", sandbox.Command{Shell: "no-such-program-here 2>/dev/null"}, 127, ""},
		{"argv is not a shell", sandbox.Command{Argv: []string{"printf", "%s", "$HOME;x"}}, 0, "$HOME;x"},
		{"starts with cd", sandbox.Command{Shell: "cd / && pwd"}, 0, "/\n"},
		{"starts with a variable", sandbox.Command{Shell: `X=1 sh -c 'echo $X'`}, 0, "1\n"},
		{"many lines", sandbox.Command{Shell: "a=1\necho $a\necho two"}, 0, "1\ntwo\n"},
		{"stdin is empty", sandbox.Command{Shell: "cat; echo end"}, 0, "end\n"},
		{"stdin", sandbox.Command{Shell: "cat", Stdin: []byte("given")}, 0, "given"},
		{"stdin nobody reads", sandbox.Command{Shell: "true", Stdin: make([]byte, 1<<20)}, 0, ""},
		{"env", sandbox.Command{Shell: "echo $GIVEN", Env: []string{"GIVEN=yes"}}, 0, "yes\n"},
		{"call", sandbox.Command{Shell: "echo $CHORUS_CALL", Call: "c-77"}, 0, "c-77\n"},
		{"no terminal", sandbox.Command{Shell: "echo $TERM; test -t 0 || test -t 1 || echo none"}, 0, "dumb\nnone\n"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			res := run(t, ex, tt.command)
			if res.ExitCode != tt.code || res.Stdout != tt.stdout || res.TimedOut || res.Aborted || res.Left != 0 {
				t.Errorf("got %+v", res)
			}
		})
	}
	dir := t.TempDir()
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		dir = real
	}
	if res := run(t, ex, sandbox.Command{Shell: "pwd", Dir: dir}); res.Stdout != dir+"\n" {
		t.Errorf("ran in %q, want %q", res.Stdout, dir)
	}
}

func cleaned(t *testing.T, ex sandbox.Executor) {
	tests := []struct{ print, want string }{
		{`\033[31mred\033[0m`, "red"},
		{`\033]0;title\007x`, "x"},
		{`a\r\nb\rc`, "a\nb\nc"},
		{`\000\001a\tb\010`, "a\tb"},
		{`\342\200\213x\357\273\277`, "x"},
		{`\377ok`, "\uFFFDok"},
	}
	for _, tt := range tests {
		res := run(t, ex, sandbox.Command{Shell: "printf '" + tt.print + "'"})
		if res.Stdout != tt.want || res.Output != tt.want {
			t.Errorf("%s: %q, want %q", tt.print, res.Stdout, tt.want)
		}
	}
}

func streams(t *testing.T, ex sandbox.Executor) {
	res := run(t, ex, sandbox.Command{Shell: "echo out; echo err >&2"})
	if res.Stdout != "out\n" || res.Stderr != "err\n" || len(res.Output) != len("out\nerr\n") {
		t.Errorf("apart: %+v", res)
	}
	var seen strings.Builder
	res = run(t, ex, sandbox.Command{
		Shell: "for i in 1 2 3; do echo o$i; echo e$i >&2; done", Merge: true,
		OnOutput: func(text string) { seen.WriteString(text) },
	})
	const want = "o1\ne1\no2\ne2\no3\ne3\n"
	if res.Output != want || res.Stdout != want || res.Stderr != "" || seen.String() != want {
		t.Errorf("merged: %+v, seen %q", res, seen.String())
	}
	// Output comes while the command still runs: it waits for our answer to it.
	dir := t.TempDir()
	res = run(t, ex, sandbox.Command{
		Shell: "echo ready; while ! test -e go; do sleep 0.02; done; echo done", Dir: dir, Timeout: time.Minute,
		OnOutput: func(text string) {
			if strings.Contains(text, "ready") {
				_ = os.WriteFile(filepath.Join(dir, "go"), nil, 0o600)
			}
		},
	})
	if res.Stdout != "ready\ndone\n" || res.TimedOut {
		t.Errorf("live: %+v", res)
	}
}

// naps counts the calls of nap, so that no two results are equal.
var naps atomic.Int64

// nap returns a long sleep duration that no other process here uses.
func nap() string { return fmt.Sprintf("300.%07d%06d", os.Getpid(), naps.Add(1)) }

// treeText is a command that stores its process ids in files and then waits: a child in the
// group, one in its own session, and one of those without an environment.
const treeText = `sleep NAP & echo $! > child
if command -v setsid >/dev/null; then
  setsid sh -c 'echo $$ > session; exec sleep NAP' &
  env -i PATH="$PATH" setsid sh -c 'echo $$ > bare; exec sleep NAP' &
else echo $! > session; echo $! > bare; fi
while ! test -s session || ! test -s bare; do sleep 0.01; done
echo started
`

func tree(nap string) string { return strings.ReplaceAll(treeText, "NAP", nap) }

func timeout(t *testing.T, fix Fixture, ex sandbox.Executor) {
	dir, nap := t.TempDir(), nap()
	start := time.Now()
	const within = 5 * time.Second // even a busy machine must have started the tree by then
	res := run(t, ex, sandbox.Command{Shell: tree(nap) + "sleep 300", Dir: dir, Timeout: within, Call: "timeout-" + filepath.Base(dir)})
	if !res.TimedOut || res.Aborted || res.ExitCode != -1 || res.Stdout != "started\n" {
		t.Errorf("got %+v", res)
	}
	if took := time.Since(start); took > time.Minute { // the naps take five minutes
		t.Errorf("took %s", took)
	}
	gone(t, fix, dir, nap)
}

func abort(t *testing.T, fix Fixture, ex sandbox.Executor) {
	dir, nap := t.TempDir(), nap()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	res, err := ex.Run(ctx, sandbox.Command{
		Shell: tree(nap) + "wait", Dir: dir,
		OnOutput: func(text string) {
			if strings.Contains(text, "started") {
				cancel()
			}
		},
	})
	if err != nil || !res.Aborted || res.TimedOut || res.ExitCode != -1 || res.Stdout != "started\n" {
		t.Errorf("got %+v, %v", res, err)
	}
	gone(t, fix, dir, nap)
	if res, err := ex.Run(ctx, sandbox.Command{Shell: "touch ran", Dir: dir}); err != nil || !res.Aborted {
		t.Errorf("already cancelled: %+v, %v", res, err)
	}
	if _, err := os.Stat(filepath.Join(dir, "ran")); err == nil {
		t.Error("an aborted call ran")
	}
}

func survivors(t *testing.T, fix Fixture, ex sandbox.Executor) {
	for name, quiet := range map[string]string{"holding the pipe": "", "silent": " >/dev/null 2>&1"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir, nap := t.TempDir(), nap()
			start := time.Now()
			res := run(t, ex, sandbox.Command{Shell: "sleep " + nap + quiet + " & echo $! > child; echo before; exit 3", Dir: dir})
			if res.ExitCode != 3 || res.Stdout != "before\n" || res.TimedOut || res.Left != 1 {
				t.Errorf("got %+v", res)
			}
			if took := time.Since(start); took > time.Minute {
				t.Errorf("took %s", took)
			}
			gone(t, fix, dir, nap)
		})
	}
}

func flood(t *testing.T, ex sandbox.Executor) {
	res := run(t, ex, sandbox.Command{Shell: "head -c 11000000 /dev/zero | tr '\\0' x; echo err >&2"})
	if len(res.Stdout) != sandbox.MaxStream || res.Dropped != 11000000-sandbox.MaxStream || res.Stderr != "err\n" {
		t.Errorf("kept %d, dropped %d, stderr %q", len(res.Stdout), res.Dropped, res.Stderr)
	}
	if !utf8.ValidString(res.Output) {
		t.Error("output is not UTF-8")
	}
}

func cannotStart(t *testing.T, ex sandbox.Executor) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, command := range map[string]sandbox.Command{
		"no directory":    {Shell: "true", Dir: filepath.Join(dir, "none")},
		"not a directory": {Shell: "true", Dir: file},
		"no program":      {Argv: []string{"no-such-program-here"}, Dir: dir},
		"NUL":             {Shell: "echo \x00", Dir: dir},
	} {
		if res, err := ex.Run(t.Context(), command); err == nil {
			t.Errorf("%s: %+v", name, res)
		}
	}
}

func many(t *testing.T, ex sandbox.Executor) {
	dir := t.TempDir()
	var group sync.WaitGroup
	for i := range 12 {
		group.Go(func() {
			res, err := ex.Run(t.Context(), sandbox.Command{Shell: fmt.Sprintf("echo %d; exit %d", i, i), Dir: dir})
			if err != nil || res.ExitCode != i || res.Stdout != strconv.Itoa(i)+"\n" {
				t.Errorf("%d: %+v, %v", i, res, err)
			}
		})
	}
	group.Wait()
}

func reap(t *testing.T, fix Fixture, ex sandbox.Executor) {
	dir, nap := t.TempDir(), nap()
	call := "reap-" + filepath.Base(filepath.Dir(dir))
	started := make(chan struct{})
	var once sync.Once
	done := make(chan sandbox.Result, 1)
	go func() {
		res, _ := ex.Run(context.WithoutCancel(t.Context()), sandbox.Command{
			Shell: tree(nap) + "wait", Dir: dir, Call: call, Timeout: time.Minute,
			OnOutput: func(string) { once.Do(func() { close(started) }) },
		})
		done <- res
	}()
	<-started
	if n, err := ex.Reap(t.Context(), call+"x"); n != 0 || err != nil {
		t.Errorf("another call: %d, %v", n, err)
	}
	if n, err := ex.Reap(t.Context(), call); n < 3 || err != nil {
		t.Errorf("reaped %d, %v", n, err)
	}
	gone(t, fix, dir, nap)
	if res := <-done; res.ExitCode != 137 {
		t.Errorf("the reaped command: %+v", res)
	}
	if n, err := ex.Reap(t.Context(), ""); n != 0 || err != nil {
		t.Errorf("no call: %d, %v", n, err)
	}
}

func secrets(t *testing.T, fix Fixture, environ []string) {
	planted := []string{
		"ANTHROPIC_API_KEY=planted", "DISCORD_TOKEN=planted", "AWS_SECRET_ACCESS_KEY=planted", "DB_PASSWORD=planted",
		"MY_CREDENTIAL=planted", "SSH_AUTH_SOCK=/planted", "CHORUS_DATABASE_URL=planted", "HTTPS_PROXY=http://u:planted@proxy",
		"GOPROXY=https://u:planted@proxy,direct", "PLAIN=planted", "BASH_ENV=/planted", "LD_PRELOAD=/planted",
	}
	ex := fix.New(t, append(planted, environ...))
	res := run(t, ex, sandbox.Command{Shell: "env; cat /proc/$$/environ 2>/dev/null | tr '\\0' '\\n'"})
	if strings.Contains(res.Output, "planted") || !strings.Contains(res.Stdout, "PATH=") {
		t.Errorf("environment of the child:\n%s", res.Output)
	}
}

// gone waits until the processes whose ids are in dir, or that have the nap as an argument, are dead.
func gone(t *testing.T, fix Fixture, dir, nap string) {
	t.Helper()
	deadline := time.Now().Add(time.Minute)
	for _, name := range []string{"child", "session", "bare"} {
		data, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			continue
		}
		pid, err := strconv.Atoi(strings.TrimSpace(string(data)))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		runs := func() bool { return alive(pid) }
		if fix.OwnPids {
			runs = func() bool { return napping(nap) }
		}
		for runs() {
			if time.Now().After(deadline) {
				t.Errorf("%s (%d) still runs", name, pid)
				break
			}
			time.Sleep(5 * time.Millisecond) // nothing signals the end of a process that is no child of ours
		}
	}
}

// napping reports whether any process has the nap as an argument.
func napping(nap string) bool {
	files, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err == nil && slices.Contains(strings.Split(string(data), "\x00"), nap) {
			return true
		}
	}
	return false
}

// alive reports whether pid runs. A zombie does not count.
func alive(pid int) bool {
	if syscall.Kill(pid, 0) != nil {
		return false
	}
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	_, rest, _ := strings.Cut(string(data), ") ")
	return !strings.HasPrefix(rest, "Z")
}
