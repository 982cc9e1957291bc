//go:build linux

package bwrap_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"chorus/internal/polltest"
	"chorus/internal/sandbox"
	"chorus/internal/sandbox/bwrap"
)

// TestOrdinaryWork: what people do all day works as without a sandbox.
func TestOrdinaryWork(t *testing.T) {
	t.Parallel()
	ex := with(t, options(t))
	tests := []struct{ name, needs, shell, want string }{
		{"git", "git", `git init -q . && git config user.email a@example.com && git config user.name a && echo x > f && git add f && git commit -q -m one && git log --format=%s`, "one\n"},
		{"go", "go", `go version | cut -d' ' -f1-2`, "go version\n"},
		{"python", "/usr/bin/python3", `/usr/bin/python3 -c 'import tempfile, os; f = tempfile.NamedTemporaryFile(); print(os.path.dirname(f.name))'`, "/tmp\n"},
		{"pipes", "", `printf 'b\na\n' | sort | head -1`, "a\n"},
		{"here-document", "", "cat <<EOF\none $((1+1))\nEOF", "one 2\n"},
		{"process substitution", "", `cat <(echo x) <(echo y)`, "x\ny\n"},
		{"background", "", `sleep 0.01 & wait; echo done`, "done\n"},
		{"a server of its own", "", `(exec 3<>/dev/tcp/127.0.0.1/1) 2>/dev/null || echo refused`, "refused\n"},
		{"temporary files", "", `f=$(mktemp) && echo t > $f && cat $f && touch /dev/shm/x && echo > /dev/null`, "t\n"},
		{"home", "", `cd && pwd && mkdir -p .cache/x && echo ok > ~/.cache/x/y && cat ~/.cache/x/y`, "/home/chorus\nok\n"},
		{"who", "", `whoami; id -un; hostname`, "chorus\nchorus\nsandbox\n"},
		{"moving between directories", "", `mkdir a b && echo x > a/f && mv a/f b/ && ln b/f b/g && cat b/g`, "x\n"},
		{"scripts", "", `printf '#!/bin/sh\necho "$1"\n' > s && chmod +x s && ./s 'a b'`, "a b\n"},
		{"tar", "tar", `mkdir d && touch d/f && tar cf x.tar d && rm -r d && tar xf x.tar && ls d`, "f\n"},
		{"the terminal's absence", "", `test -t 0 || echo none`, "none\n"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if tt.needs != "" {
				if path, err := exec.LookPath(tt.needs); err != nil || !strings.HasPrefix(path, "/usr") {
					t.Skip("not in /usr: " + tt.needs)
				}
			}
			if res := run(t, ex, sandbox.Command{Shell: tt.shell}); res.Stdout != tt.want || res.ExitCode != 0 {
				t.Errorf("got %+v", res)
			}
		})
	}
}

// TestWorktree: a worktree's commits end up in the main repository, which lies
// outside of the workspace.
func TestWorktree(t *testing.T) {
	t.Parallel()
	ex := with(t, options(t))
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	script := `set -e; mkdir main; cd main; git init -q .; git config user.email a@example.com; git config user.name a
		git commit -q --allow-empty -m first; echo secret > untracked; git worktree add -q ../tree`
	cmd := exec.Command("sh", "-c", script)
	cmd.Dir = base
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	res := run(t, ex, sandbox.Command{Shell: "git commit -q --allow-empty -m second && git log --format=%s; cat ../main/untracked", Dir: filepath.Join(base, "tree")})
	if res.Stdout != "second\nfirst\n" {
		t.Errorf("got %+v", res)
	}
}

// TestHomeIsKept: a home that was given survives, one in memory does not; a command's
// own comes before the executor's.
func TestHomeIsKept(t *testing.T) {
	t.Parallel()
	opts := options(t)
	opts.Home = t.TempDir()
	own := t.TempDir()
	for _, tt := range []struct{ name, general, own, want string }{
		{"the executor's", opts.Home, "", "/home/chorus kept\n"}, {"its own", opts.Home, own, "/home/chorus kept\n"},
		{"its own alone", "", own, "/home/chorus kept\n"}, {"none", "", "", "/home/chorus "},
	} {
		opts.Home = tt.general
		ex := with(t, opts)
		run(t, ex, sandbox.Command{Shell: "test ! -e ~/file && echo kept > ~/file", Home: tt.own})
		if res := run(t, ex, sandbox.Command{Shell: `printf '%s ' ~; cat ~/file 2>/dev/null`, Home: tt.own}); res.Stdout != tt.want {
			t.Errorf("%s: %+v", tt.name, res)
		}
		for _, dir := range []string{tt.general, tt.own} {
			if dir != "" {
				_ = os.Remove(filepath.Join(dir, "file"))
			}
		}
	}
}

// TestWorktreeFromBelow: the workspace is a directory of a worktree that is shown
// read-only; commits still find the main repository.
func TestWorktreeFromBelow(t *testing.T) {
	t.Parallel()
	ex := with(t, options(t))
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("sh", "-c", `set -e; mkdir main; cd main; git init -q .; git config user.email a@example.com; git config user.name a
		mkdir sub; touch sub/f other; git add .; git commit -q -m first; git worktree add -q ../tree`)
	cmd.Dir = base
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	tree := filepath.Join(base, "tree")
	roots := []sandbox.Root{{Path: tree}, {Path: filepath.Join(tree, "sub"), Writable: true}}
	res := run(t, ex, sandbox.Command{Shell: "echo x > f; git commit -q -a -m second; git log --format=%s; git status --short; touch ../other2",
		Dir: filepath.Join(tree, "sub"), Roots: roots, Merge: true})
	if !strings.HasPrefix(res.Output, "second\nfirst\n") || !strings.Contains(res.Output, "Read-only") || strings.Contains(res.Output, " D ") {
		t.Errorf("got %+v", res)
	}
}

func TestLimits(t *testing.T) {
	t.Parallel()
	opts := options(t)
	opts.Limits = bwrap.Limits{FileSize: 1 << 20, Tmp: 2 << 20, Memory: 96 << 20, Processes: 48}
	ex := with(t, opts)
	holds := map[string]bool{}
	for _, fact := range ex.Facts() {
		holds[fact.Name] = fact.Holds
	}
	tests := []struct {
		fact, shell string
		ok          func(sandbox.Result) bool
	}{
		{"file size", `head -c 3000000 /dev/zero > big; stat -c %s big`, func(r sandbox.Result) bool { return strings.Contains(r.Stdout, "1048576") }},
		{"tmp", `for i in 1 2 3 4 5; do head -c 1000000 /dev/zero > /tmp/$i; done; df -k /tmp | tail -1 | awk '{print $4}'`, func(r sandbox.Result) bool {
			return strings.Contains(r.Stderr, "No space left") && r.Stdout == "0\n"
		}},
		{"core dumps", `ulimit -c`, func(r sandbox.Result) bool { return r.Stdout == "0\n" }},
		// Bounded by itself too: at most 400 sleeping children. (bash would try again for a long time.)
		{"processes", `exec sh -c 'n=0; while [ $n -lt 400 ]; do sleep 20 & n=$((n+1)); done'`, func(r sandbox.Result) bool {
			return r.Left > 10 && r.Left < 48 && r.ExitCode != 0
		}},
		{"memory", `head -c 300000000 /dev/zero | tail -c 299999999 | wc -c; echo end`, func(r sandbox.Result) bool {
			return !strings.Contains(r.Stdout, "299999999")
		}},
	}
	for _, tt := range tests {
		t.Run(tt.fact, func(t *testing.T) {
			t.Parallel()
			if !holds[tt.fact] {
				t.Skipf("!!! the limit does not hold on this machine and is NOT TESTED: %+v", ex.Facts())
			}
			if res := run(t, ex, sandbox.Command{Argv: []string{"bash", "-c", tt.shell}, Timeout: 30 * time.Second}); !tt.ok(res) {
				t.Errorf("got %+v", res)
			}
		})
	}
}

// TestForkBomb: a bomb neither takes the machine nor outlives its time.
func TestForkBomb(t *testing.T) {
	t.Parallel()
	opts := options(t)
	opts.Limits = bwrap.Limits{Processes: 32}
	ex := with(t, opts)
	if !slices.ContainsFunc(ex.Facts(), func(f bwrap.Fact) bool { return f.Name == "processes" && f.Holds }) {
		t.Skipf("!!! processes are not limited on this machine, so no bomb is set off: %+v", ex.Facts())
	}
	nap := fmt.Sprintf("302.%09d", os.Getpid())
	began := time.Now()
	// Each turns into two; those that cannot, sleep.
	res := run(t, ex, sandbox.Command{Argv: []string{"sh", "-c", `b() { b & b & sleep ` + nap + `; }; b`}, Timeout: time.Second})
	if !res.TimedOut && res.Left == 0 {
		t.Errorf("it did not go off: %+v", res)
	}
	if took := time.Since(began); took > time.Minute { // the naps are five
		t.Errorf("it took %s", took)
	}
	polltest.Until(t, "the fire goes out", func() bool { return !running(nap) }) // nothing signals the end of a process that is no child
}

// TestProxy: with a proxy the command reaches that and nothing else.
func TestProxy(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("curl"); err != nil {
		t.Skip("no curl")
	}
	answer := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, "proxied "+r.URL.String()) })
	byAddress := httptest.NewServer(answer)
	defer byAddress.Close()
	socket := filepath.Join(t.TempDir(), "proxy")
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	bySocket := &httptest.Server{Listener: listener, Config: &http.Server{Handler: answer}}
	bySocket.Start()
	defer bySocket.Close()
	ex := with(t, options(t))
	address := byAddress.Listener.Addr().String()
	for _, proxy := range []string{address, socket} {
		res := run(t, ex, sandbox.Command{
			Shell:   "curl -sS http://example.com/a; echo; curl -sS http://example.com/b; echo; curl -sS --noproxy '*' -m 2 http://" + address,
			Network: &sandbox.Network{Proxy: proxy},
		})
		if res.Stdout != "proxied http://example.com/a\nproxied http://example.com/b\n" || !strings.Contains(res.Stderr, "onnect") {
			t.Errorf("through %s: %+v", proxy, res)
		}
	}
	res := run(t, ex, sandbox.Command{Shell: "curl -s -o /dev/null -w '%{http_code}' http://example.com", Network: &sandbox.Network{Proxy: "/no/such/socket"}})
	if res.Stdout != "502" {
		t.Errorf("a proxy that is not there: %+v", res)
	}
	res = run(t, ex, sandbox.Command{Shell: "curl -s http://" + address, Network: &sandbox.Network{Open: true}})
	if !strings.HasPrefix(res.Stdout, "proxied") {
		t.Errorf("an open network: %+v", res)
	}
}

// TestReapAfterACrash: another server, which knows nothing but the call, finds the
// processes of one that was cut off.
func TestReapAfterACrash(t *testing.T) {
	t.Parallel()
	ex := with(t, options(t))
	call := "crash-" + filepath.Base(filepath.Dir(t.TempDir()))
	started, done := make(chan struct{}), make(chan sandbox.Result, 1)
	dir := t.TempDir()
	go func() {
		res, _ := ex.Run(context.WithoutCancel(t.Context()), sandbox.Command{
			Shell: "sleep 300 & echo up; wait", Dir: dir, Call: call, Timeout: time.Minute, OnOutput: func(string) { close(started) },
		})
		done <- res
	}()
	<-started
	if n, err := bwrap.New(bwrap.Options{}).Reap(t.Context(), call); n < 2 || err != nil {
		t.Errorf("reaped %d, %v", n, err)
	}
	if res := <-done; res.ExitCode != 137 || res.Stdout != "up\n" {
		t.Errorf("the reaped command: %+v", res)
	}
}

// TestDiesWithTheServer: a command does not outlive the process that started it.
func TestDiesWithTheServer(t *testing.T) {
	t.Parallel()
	with(t, options(t))
	nap := fmt.Sprintf("301.%09d", os.Getpid())
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	server := exec.Command(self, serverArg, nap, t.TempDir())
	out, err := server.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := out.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	if err := server.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = server.Wait()
	polltest.Until(t, "the command ends too", func() bool { return !running(nap) }) // nothing signals the end of a process that is no child
}

// serverArg makes this test a server with one command that sleeps.
const serverArg = "test-server"

func serve(nap, dir string) int {
	ex := bwrap.New(bwrap.Options{Environ: os.Environ(), Init: "/proc/self/exe"})
	_, err := ex.Run(context.Background(), sandbox.Command{
		Shell: "echo up; sleep " + nap + " & wait", Dir: dir, OnOutput: func(text string) { fmt.Print(text) },
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	return 1
}

// running says whether any process has the text as an argument.
func running(text string) bool {
	files, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, file := range files {
		data, err := os.ReadFile(file)
		if args := strings.Split(string(data), "\x00"); err == nil && args[0] == "sleep" && slices.Contains(args, text) {
			return true
		}
	}
	return false
}
