package main

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// A command without a sandbox does not read keys from the environment of the process that
// runs it. It is tried as an ordinary user: root reads everything.
func TestEnvironmentIsPrivate(t *testing.T) {
	t.Parallel()
	const nobody = 65534
	base, err := os.MkdirTemp("", "chorus-private-") // nobody must reach it
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(base) })
	work := filepath.Join(base, "work")
	if err := os.Mkdir(work, 0o755); err != nil {
		t.Fatal(err)
	}
	script := "!call bash {\"command\":\"cat /proc/$PPID/environ > seen 2>&1; echo ran >> seen\"}\n!---\n!say done\n"
	run := func(more ...string) string {
		cmd := exec.Command("/proc/self/exe", "run", "-y", "-m", "demo/script", "--sandbox", "host")
		cmd.Args[0], cmd.Dir, cmd.Stdin = "chorus", work, strings.NewReader(script)
		cmd.Env = append([]string{"HOME=" + base, "CHORUS_HOME=" + filepath.Join(base, "home"), "USER=ada", "PATH=" + os.Getenv("PATH"), "ANTHROPIC_API_KEY=test-key-of-ours"}, more...)
		if os.Getuid() == 0 {
			if err := filepath.WalkDir(base, func(path string, _ fs.DirEntry, err error) error { return os.Lchown(path, nobody, nobody) }); err != nil {
				t.Fatal(err)
			}
			cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
		}
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		seen, err := os.ReadFile(filepath.Join(work, "seen"))
		if err != nil {
			t.Fatal(err)
		}
		return string(seen)
	}
	if seen := run("CHORUS_TRACEABLE=1"); !strings.Contains(seen, "test-key-of-ours") {
		t.Skipf("SKIPPED: this machine shows no process's environment to others: %q", seen)
	}
	if seen := run(); strings.Contains(seen, "test-key-of-ours") || !strings.Contains(seen, "ran") {
		t.Errorf("the command saw %q", seen)
	}
}
