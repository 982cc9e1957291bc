//go:build linux

package inside

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// restrictArg makes this test a program that restricts itself and becomes a shell.
const restrictArg = "test-restrict"

func TestMain(m *testing.M) {
	if len(os.Args) == 4 && os.Args[1] == restrictArg {
		fmt.Fprintln(os.Stderr, restricted(os.Args[2], os.Args[3]))
		os.Exit(1)
	}
	os.Exit(m.Run())
}

func restricted(setup, script string) error {
	runtime.LockOSThread()
	var s Setup
	if err := json.Unmarshal([]byte(setup), &s); err != nil {
		return err
	}
	if len(s.Write) > 0 {
		if err := s.restrict(); err != nil {
			return err
		}
	}
	if _, err := filterCalls(false); err != nil {
		return err
	}
	return unix.Exec("/bin/sh", []string{"sh", "-c", script}, os.Environ())
}

func runRestricted(t *testing.T, dir string, setup Setup, script string) string {
	t.Helper()
	text, err := json.Marshal(setup)
	if err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self, restrictArg, string(text), script)
	cmd.Dir = dir
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%q, %v", out, err)
	}
	return string(out)
}

// TestLandlock: it holds without any namespace.
func TestLandlock(t *testing.T) {
	t.Parallel()
	if LandlockVersion() == 0 {
		t.Skip("!!! this kernel has no landlock: NOT TESTED")
	}
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	work, other := filepath.Join(base, "work"), filepath.Join(base, "other")
	for _, dir := range []string{work, other} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(other, "notes"), []byte("planted"), 0o644); err != nil {
		t.Fatal(err)
	}
	script := `echo x > f && mkdir d && mv f d/ && cat d/f; cat ../other/notes; touch ../other/new && echo escaped; touch /usr/x && echo escaped
		ln -s ../other/notes l; cat l; mv d ../other/ && echo escaped; mknod n c 1 3 && echo escaped; kill -0 $PPID && echo escaped; echo end`
	setup := Setup{Read: []string{"/etc", "/usr", "/bin", "/lib", "/lib64"}, Write: []string{work}, Use: []string{"/dev", "/proc"}}
	if out := runRestricted(t, work, setup, script); out != "x\nend\n" {
		t.Errorf("%q", out)
	}
}

// TestModes: no file gets the right to run as its owner, by whichever call.
func TestModes(t *testing.T) {
	t.Parallel()
	script := `umask 0; touch f d1
		chmod 755 f && echo plain; chmod 1777 d1 && echo sticky
		for m in u+s g+s 4755 2755 6755; do chmod $m f && echo escaped $m; done; cp -p /usr/bin/passwd p; install -m 4755 f g; test -u p -o -u g -o -g p -o -u f && echo escaped
		if command -v python3 >/dev/null; then python3 - <<'EOF'
import os
tries = [lambda: os.chmod('f', 0o4755), lambda: os.fchmod(os.open('f', os.O_RDWR), 0o4755), lambda: os.open('n1', os.O_CREAT|os.O_WRONLY, 0o4755),
  lambda: os.mknod('n2', 0o104755), lambda: os.chmod('f', 0o2755, dir_fd=os.open('.', os.O_RDONLY))]
for i, t in enumerate(tries):
    try:
        t(); print('escaped', i)
    except OSError: pass
EOF
		fi
		find . -perm /6000 | grep . && echo escaped; echo end`
	if out := runRestricted(t, t.TempDir(), Setup{}, script); out != "plain\nsticky\nend\n" {
		t.Errorf("%q", out)
	}
}

// TestOnlyInside: it kills what it finds, so it never runs as anything but process 1.
func TestOnlyInside(t *testing.T) {
	t.Parallel()
	if err := run(); err == nil || !strings.Contains(err.Error(), "only") {
		t.Errorf("%v", err)
	}
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte(`i{"path":"/bin/sh","argv":["sh"]}`))
	f.Add([]byte(`f`))
	f.Fuzz(func(t *testing.T, text []byte) {
		var r Request
		if _, err := Decode(text, nil, &r); err == nil && text[0] != inline {
			t.Errorf("%q", text)
		}
	})
}
