//go:build linux

package bwrap_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"chorus/internal/sandbox"
	"chorus/internal/sandbox/bwrap"
)

// gated is an executor with a gate, or the end of the test.
func gated(t testing.TB) *bwrap.Executor {
	t.Helper()
	ex := with(t, options(t))
	for _, f := range ex.Facts() {
		if f.Name == "exec gate" && !f.Holds {
			t.Skipf("!!! the gate is NOT TESTED here: %s", f.Words)
		}
	}
	return ex
}

var errForbidden = errors.New("no tags")

// noTag forbids `git tag`, a stand-in for what leaves a trace anywhere else.
func noTag(e sandbox.Exec) (ask func(context.Context) error, err error) {
	if slices.Contains(e.Names, "git") && slices.Contains(e.Argv[min(1, len(e.Argv)):], "tag") || slices.Contains(e.Names, "git-tag") {
		return nil, errForbidden
	}
	return nil, nil
}

// asking asks about `expr`, and lets everything else run.
func asking(ask func(context.Context, sandbox.Exec) error) sandbox.Judge {
	return func(e sandbox.Exec) (func(context.Context) error, error) {
		if !slices.Contains(e.Names, "expr") {
			return nil, nil
		}
		return func(ctx context.Context) error { return ask(ctx, e) }, nil
	}
}

// ways are how a forbidden program may be started. Each must leave no tag, and "tried" shows
// that it ran to its end.
var ways = map[string]string{
	"plain":                 `git tag got`,
	"a shell":               `sh -c 'sh -c "git tag got"'`,
	"wrappers":              `env nice timeout 5 git tag got; nohup git tag got; setsid -w git tag got; stdbuf -o0 git tag got`,
	"xargs":                 `echo got | xargs git tag; find . -maxdepth 0 -exec git tag got \;`,
	"make":                  "printf 'all:\\n\\tgit tag got\\n' > Makefile; command -v make >/dev/null && make; true",
	"a script":              `printf '#!/bin/sh\ngit tag got\n' > s; chmod +x s; ./s; sh s; . ./s`,
	"an alias of git":       `git -c alias.x='!git tag got' x; git -c alias.t=tag t got; git -c core.fsmonitor='git tag got' status`,
	"a copy":                `cp "$(command -v git)" ls; ./ls tag got`,
	"a longer copy":         `cp "$(command -v git)" cc; echo more >> cc; ./cc tag got`,
	"a changed copy":        `command -v perl >/dev/null && perl -0777 -pe 's/(\x14\0\0\0\x03\0\0\0GNU\0).{20}/$1 . "x" x 20/se' "$(command -v git)" > cc; chmod +x cc; ./cc tag got`,
	"a symlink":             `ln -s "$(command -v git)" pwd; ./pwd tag got`,
	"a hard link":           `ln "$(command -v git)" hard 2>/dev/null && ./hard tag got; true`,
	"another first word":    `bash -c 'exec -a ls git tag got'`,
	"its own folder":        `"$(git --exec-path)"/git tag got; "$(git --exec-path)"/git-tag got`,
	"a copy of the loader":  `for l in /lib64/ld-linux-x86-64.so.2 /lib/ld-linux-aarch64.so.1; do test -e $l && cp $l mine && ./mine "$(command -v git)" tag got; done; true`,
	"copies of both":        `for l in /lib64/ld-linux-x86-64.so.2 /lib/ld-linux-aarch64.so.1; do test -e $l && cp $l mine && cp "$(command -v git)" other && ./mine --argv0 ls ./other tag got; done; true`,
	"the loader":            `for l in /lib64/ld-linux-x86-64.so.2 /lib/ld-linux-aarch64.so.1; do test -e $l && $l "$(command -v git)" tag got; done; true`,
	"python":                `command -v python3 >/dev/null && python3 -c 'import os, subprocess; subprocess.run(["git", "tag", "got"]); os.execvp("git", ["x", "tag", "got"])'; true`,
	"posix_spawn":           `command -v python3 >/dev/null && python3 -c 'import os; os.waitpid(os.posix_spawn("/usr/bin/git", ["git", "tag", "got"], os.environ), 0)'; true`,
	"fexecve":               `command -v python3 >/dev/null && python3 -c 'import os; os.execve(os.open("/usr/bin/git", os.O_RDONLY), ["x", "tag", "got"], os.environ)'; true`,
	"a file in memory":      `command -v python3 >/dev/null && python3 -c 'import os; f = os.memfd_create("x"); os.write(f, open("/usr/bin/git","rb").read()); os.execve(f, ["x", "tag", "got"], os.environ)'; true`,
	"/proc/self/fd":         `exec 7<"$(command -v git)"; /proc/self/fd/7 tag got; /dev/fd/7 tag got`,
	"relative":              `cd /usr; cd bin; ./git -C "$OLDPWD/../$W" tag got; true`,
	"perl":                  `command -v perl >/dev/null && perl -e 'exec {"/usr/bin/git"} "x", "tag", "got"'; true`,
	"in the background":     `(git tag got &) ; sleep 0.05`,
	"a pipe":                `echo x | git tag got; true | sh -c 'git tag got'`,
	"awk":                   `awk 'BEGIN { system("git tag got") }'`,
	"the shell's -c option": `SHELL=/bin/sh sh -ic 'git tag got' 2>/dev/null; true`,
}

// TestGate: a program that must not run does not, whoever starts it and under whichever name.
func TestGate(t *testing.T) {
	t.Parallel()
	ex := gated(t)
	for name, way := range ways {
		dir := tagged(t)
		res := run(t, ex, sandbox.Command{Shell: way + "\necho tried", Dir: dir, Judge: noTag, Env: []string{"W=" + dir}})
		if tags := git(t, dir, "tag"); tags != "" {
			t.Errorf("%s: it was started: %+v", name, res)
		}
		if !strings.HasSuffix(res.Stdout, "tried\n") {
			t.Errorf("%s: the attempt itself is broken: %+v", name, res)
		}
	}
	// What was refused is said.
	dir := tagged(t)
	res := run(t, ex, sandbox.Command{Shell: "sh -c 'git tag got; true'; git log --oneline; git status --short", Dir: dir, Judge: noTag})
	if res.ExitCode != 0 || len(res.Notes) != 1 || !strings.Contains(res.Notes[0], "`git tag got` was not started: no tags (started by `sh -c git tag got; true`)") {
		t.Errorf("%+v", res)
	}
}

// TestTheWaysThemselves: they lead to the program where nobody judges.
func TestTheWaysThemselves(t *testing.T) {
	t.Parallel()
	ex := gated(t)
	for name, way := range ways {
		if slices.Contains([]string{"a changed copy", "a hard link", "make", "perl", "python", "posix_spawn", "fexecve", "a file in memory", "relative"}, name) {
			continue // need what not every machine has
		}
		dir := tagged(t)
		res := run(t, ex, sandbox.Command{Shell: way, Dir: dir})
		if tags := git(t, dir, "tag"); tags == "" {
			t.Errorf("%s: leads nowhere: %+v", name, res)
		}
	}
}

func tagged(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	git(t, dir, "init", "-q", ".")
	git(t, dir, "-c", "user.name=a", "-c", "user.email=a@example.com", "commit", "-q", "--allow-empty", "-m", "one")
	return dir
}

func git(t *testing.T, dir string, args ...string) string {
	t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%q: %v %s", args, err, out)
	}
	return string(out)
}

// TestGateRace: a thread that changes what is started, after it was read, changes nothing.
func TestGateRace(t *testing.T) {
	t.Parallel()
	ex := gated(t)
	dir := tagged(t)
	source := filepath.Join(t.TempDir(), "main.go")
	if err := os.WriteFile(source, []byte(racer), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("go", "build", "-o", filepath.Join(dir, "racer"), source).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	res := run(t, ex, sandbox.Command{Shell: "i=0; while [ $i -lt 300 ]; do ./racer; i=$((i+1)); done; echo tried", Dir: dir, Judge: noTag, Timeout: 2 * time.Minute})
	if tags := git(t, dir, "tag"); tags != "" || !strings.HasSuffix(res.Stdout, "tried\n") {
		t.Errorf("%q %+v", tags, res)
	}
}

// racer starts `git log`, while another thread writes "tag" over the word.
const racer = `package main

import (
	"os"
	"runtime"
	"syscall"
	"unsafe"
)

func main() {
	word := []byte("log\x00")
	path, first, last := []byte("/usr/bin/git\x00"), []byte("git\x00"), []byte("got\x00")
	argv := []*byte{&first[0], &word[0], &last[0], nil}
	env := []*byte{nil}
	go func() {
		runtime.LockOSThread()
		for {
			copy(word, "tag")
			for i := 0; i < 200; i++ {
			}
			copy(word, "log")
		}
	}()
	null, _ := os.OpenFile("/dev/null", os.O_RDWR, 0)
	syscall.Dup3(int(null.Fd()), 2, 0)
	syscall.Dup3(int(null.Fd()), 1, 0)
	syscall.RawSyscall(syscall.SYS_EXECVE, uintptr(unsafe.Pointer(&path[0])), uintptr(unsafe.Pointer(&argv[0])), uintptr(unsafe.Pointer(&env[0])))
}
`

// TestHeld: a program waits for its answer, and what runs beside it does not.
func TestHeld(t *testing.T) {
	t.Parallel()
	ex := gated(t)
	dir := t.TempDir()
	asked, yes := make(chan sandbox.Exec, 1), make(chan struct{})
	var once sync.Once
	var startsIn string
	res := run(t, ex, sandbox.Command{
		Shell: "(expr 1 + 1; echo after) & while ! test -e go; do sleep 0.01; done; echo beside; touch gone; wait", Dir: dir, Merge: true,
		Judge: asking(func(ctx context.Context, e sandbox.Exec) error {
			once.Do(func() { // asked once: the second look finds the same
				startsIn = e.Dir()
				asked <- e
				if err := os.WriteFile(filepath.Join(dir, "go"), nil, 0o600); err != nil {
					t.Error(err)
				}
			})
			select {
			case <-yes:
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		}),
		OnOutput: func(text string) {
			if strings.Contains(text, "beside") {
				close(yes)
			}
		},
	})
	if e := <-asked; strings.Join(e.Argv, " ") != "expr 1 + 1" || startsIn != dir || e.By == nil {
		t.Errorf("%+v", e)
	}
	if res.Stdout != "beside\n2\nafter\n" {
		t.Errorf("%+v", res)
	}
	// Its time does not run while it waits.
	res = run(t, ex, sandbox.Command{Shell: "expr 1 + 1; sleep 60", Dir: dir, Timeout: 3 * time.Second, Judge: asking(func(context.Context, sandbox.Exec) error { // which a busy machine needs for expr
		<-time.After(4 * time.Second)
		return nil
	})})
	if res.Stdout != "2\n" || !res.TimedOut {
		t.Errorf("%+v", res)
	}
	// Nobody answers, and somebody ends it.
	ctx, cancel := context.WithCancel(t.Context())
	res, err := ex.Run(ctx, sandbox.Command{Shell: "expr 1 + 1", Dir: dir, Judge: asking(func(ctx context.Context, _ sandbox.Exec) error {
		cancel()
		<-ctx.Done()
		return ctx.Err()
	})})
	if err != nil || !res.Aborted {
		t.Errorf("%+v %v", res, err)
	}
}

// TestGateWorks: ordinary work is not disturbed, and no program is judged twice.
func TestGateWorks(t *testing.T) {
	t.Parallel()
	ex := gated(t)
	var mu sync.Mutex
	var seen []string
	judge := func(e sandbox.Exec) (func(context.Context) error, error) {
		mu.Lock()
		defer mu.Unlock()
		seen = append(seen, strings.Join(e.Argv, " "))
		return nil, nil
	}
	dir := t.TempDir()
	res := run(t, ex, sandbox.Command{Shell: `printf '#!/bin/sh\nexpr "$1" + 1\n' > s; chmod +x s; ./s 2; no-such-program; ./no-such; cat s | wc -l; (exit 3); echo $?`, Dir: dir, Judge: judge})
	if res.Stdout != "3\n2\n3\n" || len(res.Notes) != 0 {
		t.Errorf("%+v", res)
	}
	slices.Sort(seen)
	if got, want := strings.Join(seen, "|"), "./s 2|/bin/sh ./s 2|cat s|chmod +x s|expr 2 + 1|wc -l"; got != want {
		t.Errorf("%s", got)
	}
	res = run(t, ex, sandbox.Command{Shell: `LD_PRELOAD=./x.so ls; cp /lib/*-linux-gnu/libm.so.6 x.so 2>/dev/null || exit 0; LD_PRELOAD=$PWD/x.so ls /; echo $?`, Dir: dir, Judge: judge})
	if strings.Contains(res.Stdout, "usr\n") || len(res.Notes) != 1 && !strings.HasSuffix(res.Stdout, "\n0\n") && res.Stdout != "" {
		t.Errorf("a library that a command made: %+v", res)
	}
}

// TestGateReads: however many and long its arguments are, a program is judged once and by all of them.
func TestGateReads(t *testing.T) {
	t.Parallel()
	ex := gated(t)
	dir := t.TempDir()
	for name, args := range map[string][]string{
		"none": nil, "an empty one": {"", "a", ""}, "63": slices.Repeat([]string{"a"}, 63), "64": slices.Repeat([]string{"a"}, 64), "200": slices.Repeat([]string{"a"}, 200),
		"some bytes": {strings.Repeat("b", 255), strings.Repeat("b", 256), strings.Repeat("b", 257)}, "pages": {strings.Repeat("c", 4096), strings.Repeat("c", 100_000)},
		"many of them": slices.Repeat([]string{strings.Repeat("d", 1000)}, 60),
	} {
		var seen [][]string
		judge := func(e sandbox.Exec) (func(context.Context) error, error) {
			seen = append(seen, e.Argv)
			return nil, nil
		}
		run(t, ex, sandbox.Command{Argv: append([]string{"sh", "-c", `exec /bin/true "$@"`, "sh"}, args...), Dir: dir, Judge: judge})
		if len(seen) != 1 || !slices.Equal(seen[0], append([]string{"/bin/true"}, args...)) {
			t.Errorf("%s: judged %d times: %.200q", name, len(seen), seen)
		}
	}
}

func BenchmarkGate(b *testing.B) {
	opts := options(b)
	opts.Init = small(b)
	ex := with(b, opts)
	dir := b.TempDir()
	free := func(sandbox.Exec) (func(context.Context) error, error) { return nil, nil }
	for name, judge := range map[string]sandbox.Judge{"without": nil, "with": free} {
		for what, argv := range map[string][]string{"true": {"/bin/true"}, "200 programs": {"sh", "-c", "i=0; while [ $i -lt 200 ]; do /bin/true; i=$((i+1)); done"}} {
			b.Run(what+" "+name, func(b *testing.B) {
				for b.Loop() {
					if _, err := ex.Run(b.Context(), sandbox.Command{Argv: argv, Dir: dir, Merge: true, Judge: judge}); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
