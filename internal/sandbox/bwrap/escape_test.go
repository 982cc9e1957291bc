//go:build linux

package bwrap_test

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"chorus/internal/sandbox"
	"chorus/internal/sandbox/host"
)

const canary = "planted-canary-7731"

// outside is a machine to be kept out of: a server's home with its database,
// another agent's workspace, a program that runs, a port that listens.
type outside struct {
	home, other, work string
	victim            *exec.Cmd
	port              int
}

func newOutside(t *testing.T) outside {
	t.Helper()
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	o := outside{home: filepath.Join(base, "home"), other: filepath.Join(base, "work", "other"), work: filepath.Join(base, "work", "mine")}
	for _, dir := range []string{o.home, o.other, o.work} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, file := range []string{filepath.Join(o.home, "chorus.db"), filepath.Join(o.other, "notes")} {
		if err := os.WriteFile(file, []byte(canary+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	o.victim = exec.Command("sleep", "300")
	o.victim.Env = []string{"SECRET=" + canary}
	if err := o.victim.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = o.victim.Process.Kill(); _ = o.victim.Wait() })
	o.port = listen(t)
	return o
}

// fill puts this machine's names into an attempt.
func (o outside) fill(attempt string) string {
	return strings.NewReplacer("HOME", o.home, "OTHER", o.other, "WORK", o.work, "CANARY", canary,
		"VICTIM", strconv.Itoa(o.victim.Process.Pid), "PORT", strconv.Itoa(o.port)).Replace(attempt)
}

// listen answers every connection to a port of this machine with the canary.
func listen(t *testing.T) int {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			_, _ = conn.Write([]byte(canary + "\n"))
			_ = conn.Close()
		}
	}()
	t.Cleanup(func() { _ = listener.Close(); <-done })
	return listener.Addr().(*net.TCPAddr).Port
}

// escapes are attempts to get out. Each prints the canary, or "escaped", when it
// gets through; "tried" shows that it ran to its end.
var escapes = map[string]string{
	"server's database":         `cat HOME/chorus.db`,
	"server's home":             `ls -a HOME HOME/.. && echo escaped`,
	"user's home":               `ls -A /root /home/* 2>/dev/null | grep -v '^/home/chorus:$' | grep . && echo escaped`,
	"other workspace":           `cat OTHER/notes; cat WORK/../other/notes`,
	"other workspace, new path": `cd WORK && cat ../other/notes; cat /proc/self/cwd/../other/notes`,
	"through /proc/self/root":   `cat /proc/self/root/HOME/chorus.db /proc/1/root/HOME/chorus.db /proc/self/cwd/../../home/chorus.db`,
	"through other roots":       `for r in /proc/[0-9]*/root; do cat $r/HOME/chorus.db; done; for c in /proc/[0-9]*/cwd; do cat $c/../../home/chorus.db $c/HOME/chorus.db; done`,
	"open descriptors":          `for f in /proc/[0-9]*/fd/*; do cat $f/../home/chorus.db $f/../../home/chorus.db $f/HOME/chorus.db </dev/null; done; ls /proc/self/fd | grep -v '^[0-3]$' && echo escaped`,
	"descriptors of the parent": `ls -l /proc/$PPID/fd /proc/1/fd | grep -F -e HOME -e OTHER && echo escaped; true`,
	"symlink":                   `ln -s HOME/chorus.db link; cat link; ln -s / root; cat root/HOME/chorus.db; ln -s /proc/1/root r1; cat r1/HOME/chorus.db`,
	"hard link":                 `ln HOME/chorus.db hard && cat hard`,
	"symlink race":              `mkdir -p d; i=0; while [ $i -lt 40 ]; do ln -sfn OTHER d/x; cat d/x/notes; rm -f d/x; mkdir d/x; cat d/x/../../other/notes; rmdir d/x; i=$((i+1)); done`,
	"environment of others":     `cat /proc/[0-9]*/environ | tr '\0' '\n' | grep CANARY`,
	"environment of the parent": `cat /proc/$PPID/environ /proc/1/environ | tr '\0' '\n' | grep -v '^CHORUS_\|^PWD=\|^$' | grep SERVER_ONLY && echo escaped`,
	"process of the parent":     `test -e /proc/VICTIM && tr '\0' ' ' < /proc/VICTIM/cmdline | grep 'sleep 300' && echo escaped`,
	"kill":                      `kill -9 VICTIM && echo maybe; kill -9 -1; true`,
	"trace":                     `test -x /usr/bin/python3 && /usr/bin/python3 -c 'import ctypes; print("escaped" if ctypes.CDLL(None).ptrace(16, VICTIM, 0, 0) == 0 else "no")'; true`,
	"loopback":                  `exec 3<>/dev/tcp/127.0.0.1/PORT && cat <&3`,
	"loopback by name":          `exec 3<>/dev/tcp/localhost/PORT && cat <&3`,
	"metadata":                  `exec 3<>/dev/tcp/169.254.169.254/80 && echo escaped`,
	"the network":               `ls /sys/class/net 2>/dev/null | grep -v '^lo$' && echo escaped; grep -v 'lo:\||' /proc/net/dev | grep . && echo escaped`,
	"writing to the system":     `touch /usr/x || touch /usr/local/x || touch /etc/x || touch /bin/x || touch /x || echo x >> /etc/passwd || mkdir /root && echo escaped`,
	"kernel settings":           `f=/proc/sys/kernel/printk_ratelimit; if cat $f > $f; then echo escaped; fi; f=/proc/sys/vm/swappiness; if cat $f > $f; then echo escaped; fi; test -w /proc/sysrq-trigger && echo escaped; true`,
	"mount":                     `mkdir -p m; mount -t tmpfs none m && echo escaped; mount --bind / m && echo escaped; umount /usr && echo escaped; umount -l /proc/sys && echo escaped; true`,
	"remount":                   `mount -o remount,rw / && echo escaped; mount -o remount,rw,bind /usr && echo escaped; true`,
	"namespaces":                `unshare -Urm true && echo escaped; nsenter -t 1 -m true && echo escaped; unshare -m true && echo escaped; true`,
	"chroot":                    `chroot / true && echo escaped; true`,
	"device nodes":              `mknod disk b 8 0 && echo escaped; mknod mem c 1 1 && echo escaped; cat /dev/mem /dev/kmsg /dev/sda /dev/vda && echo escaped; ls /dev | grep -E 'sd|vd|nvme|kvm|mem|fuse' && echo escaped; true`,
	"capabilities":              `grep -E '^Cap(Inh|Prm|Eff|Bnd|Amb):' /proc/self/status | grep -v '0000000000000000$' && echo escaped; grep -q '^NoNewPrivs:.1$' /proc/self/status || echo escaped; true`,
	"setuid":                    `cp "$(command -v id)" suid; chmod 4755 suid; chown 0:0 suid && echo escaped; ./suid -u | grep -x 0 && echo escaped; su -c 'echo escaped' </dev/null; sudo -n echo escaped; true`,
	"host name":                 `hostname changed && echo escaped; true`,
	"keys of the machine":       `cat /etc/shadow /etc/sudoers && echo escaped; ls /etc/ssh && echo escaped; cat /proc/keys | grep . && echo escaped; true`,
	"sockets of services":       `ls /run /var/run 2>/dev/null | grep . && echo escaped; true`,
	"cgroups":                   `ls /sys/fs/cgroup && echo escaped; mount -t cgroup none . && echo escaped; true`,
	"the clock":                 `date -s 2001-01-01 && echo escaped; true`,
	"our own program":           `echo x >> /proc/1/exe && echo escaped; for f in /proc/1/fd/* /proc/1/mem /proc/1/environ; do cat $f </dev/null && echo escaped; done; kill -9 1; kill -STOP 1; true`,
}

func TestEscapes(t *testing.T) {
	t.Parallel()
	for _, limits := range []string{"with landlock", "namespaces alone"} {
		t.Run(limits, func(t *testing.T) {
			t.Parallel()
			o := newOutside(t)
			opts := options(t)
			opts.Environ = append(opts.Environ, "SERVER_ONLY="+canary)
			ex := with(t, opts)
			if limits == "namespaces alone" {
				ex.WithoutLandlock()
			}
			for name, attempt := range escapes {
				dir, err := os.MkdirTemp(o.work, "attempt-")
				if err != nil {
					t.Fatal(err)
				}
				roots := []sandbox.Root{{Path: o.work, Writable: true}}
				res := run(t, ex, sandbox.Command{Argv: []string{"bash", "-c", o.fill(attempt) + "\necho tried"}, Dir: dir, Roots: roots})
				if strings.Contains(res.Output, canary) || strings.Contains(res.Output, "escaped") {
					t.Errorf("%s: it got out:\n%s", name, res.Output)
				}
				if name != "kill" && !strings.Contains(res.Stdout, "tried") {
					t.Errorf("%s: the attempt itself is broken: %+v", name, res)
				}
			}
			if err := o.victim.Process.Signal(syscall.Signal(0)); err != nil {
				t.Errorf("a process outside was killed: %v", err)
			}
		})
	}
}

// TestTheAttemptsThemselves: harmless ones succeed without a sandbox, or they would show
// nothing.
func TestTheAttemptsThemselves(t *testing.T) {
	t.Parallel()
	o := newOutside(t)
	ex := host.New(append(os.Environ(), "SERVER_ONLY="+canary))
	for _, name := range []string{
		"server's database", "server's home", "other workspace", "through /proc/self/root", "symlink", "hard link", "symlink race",
		"environment of others", "process of the parent", "loopback", "loopback by name", "capabilities",
	} {
		dir, err := os.MkdirTemp(o.work, "attempt-")
		if err != nil {
			t.Fatal(err)
		}
		res := run(t, ex, sandbox.Command{Argv: []string{"bash", "-c", o.fill(escapes[name])}, Dir: dir})
		if !strings.Contains(res.Output, canary) && !strings.Contains(res.Output, "escaped") {
			t.Errorf("%s fails on the host too: %s", name, res.Output)
		}
	}
}

// TestSwappedRoot: what a command leaves in its workspace must not decide what the
// next one is shown.
func TestSwappedRoot(t *testing.T) {
	t.Parallel()
	o := newOutside(t)
	ex := with(t, options(t))
	sub := filepath.Join(o.work, "sub")
	if err := os.Symlink(o.home, sub); err != nil {
		t.Fatal(err)
	}
	roots := []sandbox.Root{{Path: o.work, Writable: true}, {Path: sub}}
	if res, err := ex.Run(t.Context(), sandbox.Command{Shell: "cat sub/chorus.db", Dir: o.work, Roots: roots}); err == nil {
		t.Errorf("a root that became a symlink was shown: %+v", res)
	}
	// A .git file that claims the server's home as its repository.
	for name, text := range map[string]string{"HEAD": "ref: x\n", "worktrees/w/commondir": "../..\n", "worktrees/w/gitdir": "/elsewhere/.git\n", "objects/x": "", "refs/x": ""} {
		path := filepath.Join(o.home, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(o.work, ".git"), []byte("gitdir: "+o.home+"/worktrees/w\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	res := run(t, ex, sandbox.Command{Shell: "cat " + o.home + "/chorus.db; true", Dir: o.work})
	if strings.Contains(res.Output, canary) {
		t.Errorf("a forged worktree opened the server's home: %s", res.Output)
	}
}

// TestRootRace swaps a root inside of the workspace for a symlink again and again
// while commands start: they get the directory or an error, never what it points to.
func TestRootRace(t *testing.T) {
	t.Parallel()
	o := newOutside(t)
	ex := with(t, options(t))
	sub, stop, done := filepath.Join(o.work, "sub"), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for {
			select {
			case <-stop:
				return
			default:
			}
			_ = os.Remove(sub)
			_ = os.Mkdir(sub, 0o755)
			_ = os.Remove(sub)
			_ = os.Symlink(o.home, sub)
		}
	}()
	defer func() { close(stop); <-done }()
	for range 40 {
		res, err := ex.Run(t.Context(), sandbox.Command{
			Shell: "cat sub/chorus.db", Dir: o.work, Roots: []sandbox.Root{{Path: o.work, Writable: true}, {Path: sub}},
		})
		if err == nil && strings.Contains(res.Output, canary) {
			t.Fatalf("the symlink was mounted: %+v", res)
		}
	}
}

// TestHide: the server's own files stay unseen even where a root holds them.
func TestHide(t *testing.T) {
	t.Parallel()
	o := newOutside(t)
	opts := options(t)
	opts.Hide = []string{o.home, filepath.Join(o.other, "notes"), filepath.Join(o.work, "none")}
	ex := with(t, opts)
	base := filepath.Dir(o.home)
	res := run(t, ex, sandbox.Command{Shell: "cat home/chorus.db work/other/notes; ls -A home; touch home/x; rm -rf home/* work/other/notes; echo tried", Dir: base})
	if strings.Contains(res.Output, canary) || !strings.Contains(res.Stdout, "tried") {
		t.Errorf("got %+v", res)
	}
	if res, err := ex.Run(t.Context(), sandbox.Command{Shell: "cat chorus.db", Dir: o.home}); err == nil {
		t.Errorf("what is hidden became a root: %+v", res)
	}
	// A root inside of what is hidden is still there.
	inner := filepath.Join(o.home, "agents", "one")
	if err := os.MkdirAll(inner, 0o755); err != nil {
		t.Fatal(err)
	}
	roots := []sandbox.Root{{Path: base, Writable: true}, {Path: inner, Writable: true}}
	res = run(t, ex, sandbox.Command{Shell: "echo kept > " + inner + "/file && cat " + inner + "/file; ls " + o.home + "; touch " + o.home + "/x", Dir: base, Roots: roots})
	if res.Stdout != "kept\nagents\n" || res.ExitCode == 0 {
		t.Errorf("a root inside: %+v", res)
	}
	for _, file := range []string{filepath.Join(o.home, "chorus.db"), filepath.Join(o.other, "notes")} {
		if data, err := os.ReadFile(file); err != nil || !strings.Contains(string(data), canary) {
			t.Errorf("%s was changed: %q, %v", file, data, err)
		}
	}
}

// TestRoots: a root is what it was called, and a directory outside of all of them
// is refused.
func TestRoots(t *testing.T) {
	t.Parallel()
	o := newOutside(t)
	ex := with(t, options(t))
	roots := []sandbox.Root{{Path: o.work, Writable: true}, {Path: o.other}}
	res := run(t, ex, sandbox.Command{Shell: fmt.Sprintf("cat %s/notes; echo x >> %s/notes; touch made", o.other, o.other), Dir: o.work, Roots: roots})
	if res.Stdout != canary+"\n" || !strings.Contains(res.Stderr, "Read-only") && !strings.Contains(res.Stderr, "ermission denied") {
		t.Errorf("got %+v", res)
	}
	if _, err := os.Stat(filepath.Join(o.work, "made")); err != nil {
		t.Error(err)
	}
	for name, command := range map[string]sandbox.Command{
		"outside of all roots": {Dir: o.home, Roots: roots},
		"the whole machine":    {Dir: o.work, Roots: []sandbox.Root{{Path: "/", Writable: true}}},
		"the kernel's files":   {Dir: o.work, Roots: []sandbox.Root{{Path: o.work, Writable: true}, {Path: "/proc/sys"}}},
		"the devices":          {Dir: o.work, Roots: []sandbox.Root{{Path: o.work, Writable: true}, {Path: "/dev", Writable: true}}},
		"no such root":         {Dir: o.work, Roots: []sandbox.Root{{Path: o.work}, {Path: filepath.Join(o.work, "none")}}},
		"no directory":         {},
	} {
		command.Shell = "true"
		if res, err := ex.Run(t.Context(), command); err == nil {
			t.Errorf("%s: %+v", name, res)
		}
	}
}
