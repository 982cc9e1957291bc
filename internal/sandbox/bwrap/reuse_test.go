//go:build linux

package bwrap_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"chorus/internal/polltest"
	"chorus/internal/sandbox"
	"chorus/internal/sandbox/bwrap"
)

// which prints something that every sandbox has to itself.
const which = "echo $(readlink /proc/self/ns/mnt) $(cut -d' ' -f22 /proc/1/stat)" // its number, which may be given again, and its start

// TestReuse: the next command gets the same sandbox, and finds nothing of the last one.
func TestReuse(t *testing.T) {
	t.Parallel()
	ex := with(t, options(t))
	dir := t.TempDir()
	say := func(shell string) string { return run(t, ex, sandbox.Command{Shell: shell, Dir: dir}).Stdout }
	first := say(which)
	const look = `find /tmp /dev/shm ~ -mindepth 1 2>/dev/null; grep -l sleep /proc/[0-9]*/comm`
	clean := say(look)
	for name, leave := range map[string]string{
		"files":             `echo x > /tmp/a; mkdir -p /tmp/d/e; touch /tmp/d/e/f; chmod 0 /tmp/d/e; ln -s / /tmp/l; mkfifo /dev/shm/p`,
		"a home in memory":  `mkdir -p ~/.cache/x; echo y > ~/.profile; touch ~/.cache/x/y`,
		"processes":         `sleep 100 & setsid sleep 100 & (trap '' TERM HUP; sleep 100) & true`,
		"a working folder":  `mkdir /tmp/w; cd /tmp/w; sleep 100 &`,
		"nothing, but fail": `exit 3`,
	} {
		run(t, ex, sandbox.Command{Shell: leave, Dir: dir})
		if got := say(look); got != clean {
			t.Errorf("%s: the next command finds %q, and not %q", name, got, clean)
		}
		if now := say(which); now != first {
			t.Errorf("%s: another sandbox", name)
		}
	}
	// Another directory of the same workspace is no reason for another one.
	sub := filepath.Join(dir, "sub")
	if err := os.Mkdir(sub, 0o755); err != nil {
		t.Fatal(err)
	}
	if res := run(t, ex, sandbox.Command{Shell: which + "; pwd", Dir: sub, Roots: []sandbox.Root{{Path: dir, Writable: true}}}); res.Stdout == "" {
		t.Errorf("%+v", res)
	}
}

// TestNotReused: what cannot be cleaned is not used again.
func TestNotReused(t *testing.T) {
	t.Parallel()
	ex := with(t, options(t))
	dir := t.TempDir()
	for name, leave := range map[string]string{
		"a deep tree":     `cd /tmp; i=0; while [ $i -lt 150 ]; do mkdir d; cd d; i=$((i+1)); done`,
		"very many files": `cd /tmp; seq 6000 | xargs touch`,
		"limits":          `command -v prlimit >/dev/null && prlimit --pid 1 --nofile=64:64; true`,
		"System V memory": `command -v ipcmk >/dev/null && ipcmk -M 100; true`,
	} {
		before := run(t, ex, sandbox.Command{Shell: which, Dir: dir}).Stdout
		run(t, ex, sandbox.Command{Shell: leave, Dir: dir})
		res := run(t, ex, sandbox.Command{Shell: which + "; find /tmp -name d -o -name 4000; ulimit -n; tail -n +2 /proc/sysvipc/shm", Dir: dir})
		if strings.HasPrefix(res.Stdout, before) || strings.Contains(res.Stdout, "/tmp/d") || strings.Contains(res.Stdout, "/tmp/4000") || strings.Contains(res.Stdout, "\n64\n") {
			t.Errorf("%s: %s, and before %s", name, res.Stdout, before)
		}
	}
}

// TestUncleanGoes: what cannot be cleaned is taken down without another command, with the memory that its files take.
func TestUncleanGoes(t *testing.T) {
	t.Parallel()
	ex := with(t, options(t))
	dir := t.TempDir()
	run(t, ex, sandbox.Command{Shell: "true", Dir: dir})
	with := ex.Waiting()
	run(t, ex, sandbox.Command{Shell: "cd /tmp; seq 6000 | xargs touch", Dir: dir})
	polltest.Until(t, "one sandbox less", func() bool { return ex.Waiting() == with-1 })
}

// TestKeyring: what a command keeps in the kernel is neither the server's nor the next one's.
func TestKeyring(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("python3"); err != nil {
		t.Skip("no python3")
	}
	ex := with(t, options(t))
	dir := t.TempDir()
	// add_key and request_key of a key of type user, in the session's and in the user's keyring.
	script := `import ctypes, sys
c = ctypes.CDLL(None, use_errno=True)
if sys.argv[1] == 'add':
    for ring in (-3, -4): print(c.syscall(248, b'user', b'planted', b'secret', 6, ring) > 0)
else:
    for ring in (-3, -4): print(c.syscall(250, 10, ring, b'user', b'planted', 0) > 0)
`
	file := filepath.Join(dir, "k.py")
	if err := os.WriteFile(file, []byte(script), 0o644); err != nil {
		t.Fatal(err)
	}
	if res := run(t, ex, sandbox.Command{Shell: "/usr/bin/python3 k.py add && /usr/bin/python3 k.py find", Dir: dir}); !strings.HasPrefix(res.Stdout, "True\nTrue\nTrue") {
		t.Skipf("no keyrings here: %+v", res)
	}
	if res := run(t, ex, sandbox.Command{Shell: "/usr/bin/python3 k.py find", Dir: dir}); res.Stdout != "False\nFalse\n" {
		t.Errorf("%+v", res)
	}
}

// TestNewSandbox: whatever a sandbox depends on, a change of it means another one.
func TestNewSandbox(t *testing.T) {
	t.Parallel()
	ex := with(t, options(t))
	base := t.TempDir()
	work, other, home := filepath.Join(base, "work"), filepath.Join(base, "other"), filepath.Join(base, "home")
	for _, dir := range []string{work, other, home} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	sh := func(script string) {
		cmd := exec.Command("sh", "-ec", script)
		cmd.Dir = work
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v %s", script, err, out)
		}
	}
	sh("git init -q .")
	command := sandbox.Command{Shell: which, Dir: work}
	seen := map[string]bool{}
	for _, change := range []func(){
		func() {},
		func() { sh("git config user.name x") }, // a new file takes the mount of the old one with it
		func() { sh("rm -rf .git/hooks; mkdir .git/hooks") },
		func() { sh("mv .git x; mv x .git; mkdir -p h; git config core.hooksPath h") },
		func() { sh("cd ..; mv work x; mkdir work; mv x/.git work") },
		func() { command.Roots = []sandbox.Root{{Path: work, Writable: true}, {Path: other}} },
		func() { command.Roots[1].Writable = true },
		func() { command.Home = home },
		func() { command.OpenGit = true },
		func() { command.Network = &sandbox.Network{Open: true} },
		func() { command.Network = &sandbox.Network{Proxy: "/none"} },
	} {
		change()
		res := run(t, ex, command)
		if again := run(t, ex, command); seen[res.Stdout] || again.Stdout != res.Stdout {
			t.Errorf("%d changes: %q, then %q", len(seen), res.Stdout, again.Stdout)
		}
		seen[res.Stdout] = true
	}
}

// TestGuardSurvivesRenames: git outside replaces its settings, which takes the mount on them
// away inside. A command that runs then, and the next one, still leave nothing for git to start.
func TestGuardSurvivesRenames(t *testing.T) {
	t.Parallel()
	ex := with(t, options(t))
	dir := t.TempDir()
	git := func(args ...string) string {
		cmd := exec.Command("git", args...)
		cmd.Dir = dir
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%q: %v %s", args, err, out)
		}
		return string(out)
	}
	git("init", "-q", ".")
	git("config", "alias.y", "log")
	attack := `git config core.fsmonitor "touch escaped"; echo '[core] fsmonitor = "touch escaped"' >> .git/config; true`
	run(t, ex, sandbox.Command{Shell: "true", Dir: dir})
	git("config", "user.name", "somebody")
	run(t, ex, sandbox.Command{Shell: attack, Dir: dir})
	res := run(t, ex, sandbox.Command{
		Shell: "echo up; while ! test -e go; do sleep 0.01; done; " + attack, Dir: dir,
		OnOutput: func(string) {
			git("config", "user.email", "a@example.com")
			git("config", "alias.x", "status")
			if err := os.WriteFile(filepath.Join(dir, "go"), nil, 0o600); err != nil {
				t.Error(err)
			}
		},
	})
	git("status")
	if _, err := os.Stat(filepath.Join(dir, "escaped")); err == nil {
		t.Errorf("git outside started what a command left: %+v", res)
	}
	got := git("config", "--list", "--local")
	if strings.Contains(got, "fsmonitor") || !strings.Contains(got, "alias.y=log\nuser.name=somebody\nuser.email=a@example.com\n") {
		t.Errorf("%s\n%+v", got, res)
	}
	// Who wrote the alias is not known. It is said, and not lost.
	aside, err := os.ReadFile(filepath.Join(dir, ".git", "config.from-sandbox-1"))
	if err != nil || !strings.Contains(string(aside), "x = status") || !strings.Contains(strings.Join(res.Notes, ""), "config.from-sandbox-1") {
		t.Errorf("%s %v %+v", aside, err, res)
	}
}

// TestKilled: whichever part of a sandbox is killed, nothing of it is left, and the next
// command works.
func TestKilled(t *testing.T) {
	t.Parallel()
	opts := own(t)
	ex := with(t, opts)
	mounts := mountCount(t)
	t.Cleanup(func() {
		if now := mountCount(t); now != mounts {
			t.Errorf("%d mounts, before there were %d", now, mounts)
		}
	})
	for name, arg := range map[string]string{"process 1": bwrap.InitArg, "bubblewrap": "--args"} {
		dir := t.TempDir()
		nap := fmt.Sprintf("303.%09d%d", os.Getpid(), len(name))
		// Between two commands.
		run(t, ex, sandbox.Command{Shell: "true", Dir: dir})
		before := processes(t, opts, arg)
		for _, pid := range before {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
		polltest.Until(t, "they are gone", func() bool { return !overlap(before, processes(t, opts, arg)) })
		if res := run(t, ex, sandbox.Command{Shell: "echo works", Dir: dir}); res.Stdout != "works\n" {
			t.Errorf("%s, then: %+v", name, res)
		}
		// While one runs.
		done := make(chan sandbox.Result, 1)
		var once sync.Once
		up := make(chan struct{})
		go func() {
			res, err := ex.Run(context.WithoutCancel(t.Context()), sandbox.Command{
				Shell: "echo up; sleep " + nap + " & sleep " + nap, Dir: dir, Timeout: time.Minute, OnOutput: func(string) { once.Do(func() { close(up) }) },
			})
			if err != nil {
				t.Error(err)
			}
			done <- res
		}()
		<-up
		for _, pid := range processes(t, opts, arg) {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
		if res := <-done; res.ExitCode != 137 || res.Stdout != "up\n" || res.TimedOut {
			t.Errorf("%s, while it runs: %+v", name, res)
		}
		polltest.Until(t, "nothing is left", func() bool { return !running(nap) })
		if res := run(t, ex, sandbox.Command{Shell: "echo works", Dir: dir}); res.Stdout != "works\n" {
			t.Errorf("%s, after it ran: %+v", name, res)
		}
	}
}

// mountCount is how many mounts this machine shows outside of all sandboxes.
func mountCount(t *testing.T) int {
	t.Helper()
	data, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		t.Fatal(err)
	}
	return strings.Count(string(data), "\n")
}

// TestHangs: process 1 that does not answer any more ends with the command's time.
func TestHangs(t *testing.T) {
	t.Parallel()
	opts := own(t)
	ex := with(t, opts)
	dir := t.TempDir()
	run(t, ex, sandbox.Command{Shell: "true", Dir: dir})
	for _, pid := range processes(t, opts, bwrap.InitArg) {
		_ = syscall.Kill(pid, syscall.SIGSTOP)
	}
	if res := run(t, ex, sandbox.Command{Shell: "echo works", Dir: dir, Timeout: 500 * time.Millisecond}); !res.TimedOut {
		t.Errorf("%+v", res)
	}
	if res := run(t, ex, sandbox.Command{Shell: "echo works", Dir: dir}); res.Stdout != "works\n" {
		t.Errorf("%+v", res)
	}
}

// TestFull: a command that filled what is in memory, or forked without end, leaves an empty
// sandbox to the next.
func TestFull(t *testing.T) {
	t.Parallel()
	opts := options(t)
	opts.Limits = bwrap.Limits{Tmp: 2 << 20, Processes: 64}
	ex := with(t, opts)
	dir := t.TempDir()
	for name, shell := range map[string]string{
		"/tmp":   `head -c 5000000 /dev/zero > /tmp/full; head -c 5000000 /dev/zero > /dev/shm/full`,
		"a bomb": `b() { b & b & sleep 300; }; b & exit 0`,
	} {
		run(t, ex, sandbox.Command{Argv: []string{"sh", "-c", shell}, Dir: dir, Timeout: 20 * time.Second})
		if res := run(t, ex, sandbox.Command{Shell: `echo x > /tmp/a && cat /tmp/a && ls /proc | grep -c '^[0-9]*$'`, Dir: dir}); !strings.HasPrefix(res.Stdout, "x\n") || res.ExitCode != 0 {
			t.Errorf("%s, then: %+v", name, res)
		}
	}
}

// TestSignals: whatever signal a command sends to process 1, that goes on, also without landlock, which keeps signals from its other threads; and no command finds a signal ignored or held back.
func TestSignals(t *testing.T) {
	t.Parallel()
	signal.Ignore(syscall.SIGHUP) // as under nohup
	ex := with(t, options(t))
	ex.WithoutLandlock()
	dir := t.TempDir()
	before := run(t, ex, sandbox.Command{Shell: which, Dir: dir})
	// Around the fork process 1 holds all signals back, and then three of them end it: what the libraries of threads use.
	res := run(t, ex, sandbox.Command{Shell: `until grep -q '^SigBlk:.0*$' /proc/1/status; do :; done; for n in $(seq 64); do kill -$n 1 2>/dev/null; done; grep -E '^Sig(Ign|Blk)' /proc/self/status`, Dir: dir})
	if fields := strings.Fields(res.Stdout); len(fields) != 4 || strings.Trim(fields[1]+fields[3], "0") != "" {
		t.Errorf("%+v", res)
	}
	if after := run(t, ex, sandbox.Command{Shell: which, Dir: dir}); after.Stdout != before.Stdout {
		t.Errorf("another sandbox: %q, and before %q", after.Stdout, before.Stdout)
	}
	if res := run(t, ex, sandbox.Command{Shell: "kill -TERM $$", Dir: dir}); res.ExitCode != 143 {
		t.Errorf("a command that a signal ends: %+v", res)
	}
}

// TestClose: nothing is left of an executor that was closed.
func TestClose(t *testing.T) {
	t.Parallel()
	opts := own(t)
	ex := with(t, opts)
	dir := t.TempDir()
	var group sync.WaitGroup
	for n := range 6 {
		group.Go(func() {
			_, _ = ex.Run(t.Context(), sandbox.Command{Shell: "sleep 0." + strconv.Itoa(n), Dir: dir})
		})
	}
	group.Wait()
	if len(processes(t, opts, "--args")) == 0 {
		t.Error("no sandbox waits")
	}
	ex.Close()
	// It still runs commands, and keeps nothing.
	if res := run(t, ex, sandbox.Command{Shell: "echo works", Dir: dir}); res.Stdout != "works\n" {
		t.Errorf("%+v", res)
	}
	for _, arg := range []string{"--args", bwrap.InitArg} {
		if left := processes(t, opts, arg); len(left) > 0 {
			t.Errorf("%s: %v", arg, left)
		}
	}
}

// own are options with a bubblewrap that no other test here uses.
func own(t *testing.T) bwrap.Options {
	t.Helper()
	opts := options(t)
	path, err := exec.LookPath("bwrap")
	if err != nil {
		return opts
	}
	opts.Program = filepath.Join(t.TempDir(), "bwrap")
	if err := os.Symlink(path, opts.Program); err != nil {
		t.Fatal(err)
	}
	return opts
}

// processes are those of the executor's sandboxes that have the argument: bubblewrap itself
// or process 1.
func processes(t *testing.T, opts bwrap.Options, arg string) (found []int) {
	t.Helper()
	type proc struct {
		parent int
		args   []string
	}
	all := map[int]proc{}
	files, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, file := range files {
		stat, err := os.ReadFile(file)
		line, err2 := os.ReadFile(filepath.Join(filepath.Dir(file), "cmdline"))
		fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
		if err != nil || err2 != nil || len(fields) < 2 || fields[0] == "Z" {
			continue
		}
		pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(file)))
		parent, _ := strconv.Atoi(fields[1])
		all[pid] = proc{parent, strings.Split(string(line), "\x00")}
	}
	of := func(p proc) bool { return len(p.args) > 1 && p.args[0] == opts.Program }
	for pid, p := range all {
		if len(p.args) > 1 && p.args[1] == arg && (of(p) || of(all[p.parent])) {
			found = append(found, pid)
		}
	}
	return found
}

func overlap(a, b []int) bool {
	for _, x := range a {
		for _, y := range b {
			if x == y {
				return true
			}
		}
	}
	return false
}
