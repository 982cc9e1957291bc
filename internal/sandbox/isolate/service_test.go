package isolate_test

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"chorus/internal/sandbox/isolate"
)

// A service is talked to over its pipes, sees the workspace and not the user's home, cannot
// change the files it was trusted for, and learns which key would let it reach a host.
func TestService(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("bwrap"); err != nil {
		t.Skip("SKIPPED: there is no bubblewrap")
	}
	a, work, warned := newApp(t)
	secret := filepath.Join(filepath.Dir(work), "user", "secret")
	fixed := filepath.Join(work, "server.sh")
	script := `read word; echo "got $word"; cat ` + secret + ` || echo unseen; echo x >>` + fixed + ` || echo fixed; touch free && echo free; echo "${PYTHONPYCACHEPREFIX#$HOME/}"
		command -v curl >/dev/null && curl -s -o /dev/null http://not-listed.example.com/; echo end`
	for path, text := range map[string]string{secret: "the secret", fixed: script} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	site := &toolboxOf(t, a, work).Site
	prepared, err := a.Isolation.Prepare(t.Context(), site, isolate.Plan{Sandbox: "auto", Need: isolate.Preferred}, isolate.Service{Name: "story", Argv: []string{"sh", "server.sh"}, Dir: work,
		HostsKey: "mcpServers.story.hosts", Fixed: []string{fixed}})
	if err != nil {
		t.Fatal(err)
	}
	defer prepared.Release()
	inside, in := pipe(t)
	out, says := pipe(t)
	program, err := prepared.Start(inside, says, says)
	if err != nil {
		t.Fatal(err)
	}
	_ = says.Close()
	if _, err := io.WriteString(in, "hello\n"); err != nil {
		t.Fatal(err)
	}
	said, err := io.ReadAll(out)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := program.Wait(); err != nil {
		t.Error(err)
	}
	prepared.Release() // twice does no harm
	if got := string(said); !strings.HasPrefix(got, "got hello\n") || !strings.HasSuffix(got, "end\n") || strings.Contains(got, "the secret") || !strings.Contains(got, "\nfixed\nfree\n.cache/pycache\n") {
		t.Errorf("%q", got)
	}
	if _, err := exec.LookPath("curl"); err == nil && !strings.Contains(strings.Join(*warned, "\n"), "mcpServers.story.hosts") {
		t.Errorf("warned: %q", *warned)
	}
	if left, _ := filepath.Glob(filepath.Join(a.Home.Dir(), "run", "*-*")); len(left) != 0 {
		t.Errorf("left: %q", left)
	}
}

func pipe(t *testing.T) (r, w *os.File) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = r.Close(), w.Close() })
	return r, w
}

// Without a sandbox there is nothing to prepare; a repository nobody looked at is refused there.
func TestServiceWithout(t *testing.T) {
	t.Parallel()
	a, work, _ := newApp(t)
	site := &toolboxOf(t, a, work).Site
	for _, plan := range []isolate.Plan{{Sandbox: "host"}, {Sandbox: "auto", Need: isolate.None}} {
		if prepared, err := a.Isolation.Prepare(t.Context(), site, plan, isolate.Service{Name: "story", Argv: []string{"true"}, Dir: work}); err != nil || prepared != nil {
			t.Errorf("%+v: %v, %v", plan, prepared, err)
		}
	}
	a.Isolation.Probe = isolate.SandboxProbe{Done: true, Err: io.ErrUnexpectedEOF}
	for _, must := range []bool{false, true} {
		prepared, err := a.Isolation.Prepare(t.Context(), site, isolate.Plan{Sandbox: "auto", Need: isolate.Preferred}, isolate.Service{Name: "story", Argv: []string{"true"}, Dir: work, Must: must})
		if prepared != nil || (err != nil) != must {
			t.Errorf("must %v: %v, %v", must, prepared, err)
		}
	}
}
