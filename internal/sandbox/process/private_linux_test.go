package process

import (
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
)

// A command of the same user reads neither the environment nor the memory of the process that
// started it. The test runs itself again as an ordinary user: root reads everything.
func TestKeepPrivate(t *testing.T) {
	const key = "PRIVATE_TEST_KEY=test-key-value"
	if !strings.Contains(strings.Join(os.Environ(), "\n"), key) {
		cmd := exec.Command("/proc/self/exe", "-test.run=^TestKeepPrivate$", "-test.count=1")
		cmd.Env = append(os.Environ(), key)
		if os.Getuid() == 0 {
			cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
		}
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		return
	}
	look := func() string {
		cmd := exec.Command("sh", "-c", "cat /proc/$PPID/environ; head -c 1 /proc/$PPID/mem 2>&1")
		cmd.Env, cmd.Dir = []string{"PATH=" + os.Getenv("PATH")}, "/"
		out, _ := cmd.CombinedOutput() // it fails where it may not look
		return string(out)
	}
	if !strings.Contains(look(), key) {
		t.Skip("SKIPPED: this machine shows no process's environment to others")
	}
	if err := KeepPrivate(); err != nil {
		t.Fatal(err)
	}
	if out := look(); strings.Contains(out, "test-key-value") || !strings.Contains(out, "Permission denied") {
		t.Errorf("a child read %q", out)
	}
	if _, err := os.ReadDir("/proc/self/fd"); err != nil {
		t.Errorf("the process itself: %v", err)
	}
}
