package docker

import (
	"cmp"
	"context"
	"crypto/rand"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"chorus/internal/sandbox"
	"chorus/internal/sandbox/sandboxtest"
)

// TestContractForReal runs the suite in a real container where a daemon answers. The
// container sees this machine's processes, because the suite looks for them from here.
// CHORUS_TEST_DOCKER_IMAGE names another image than alpine.
func TestContractForReal(t *testing.T) {
	t.Parallel()
	ask := func(timeout time.Duration, args ...string) (string, error) {
		ctx, cancel := context.WithTimeout(context.Background(), timeout)
		defer cancel()
		cmd := exec.CommandContext(ctx, "docker", args...)
		cmd.WaitDelay = time.Second
		out, err := cmd.CombinedOutput()
		return strings.TrimSpace(string(out)), err
	}
	if said, err := ask(2*time.Second, "version", "--format", "{{.Server.Version}}"); err != nil {
		t.Skipf("NOT TESTED WITH A REAL CONTAINER: no docker daemon answers: %v %s", err, oneLine(said))
	}
	host, err := filepath.EvalSymlinks(os.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	name := "chorus-test-" + strings.ToLower(rand.Text()[:10])
	image := cmp.Or(os.Getenv("CHORUS_TEST_DOCKER_IMAGE"), "alpine")
	if said, err := ask(time.Minute, "run", "-d", "--rm", "--init", "--pid", "host", "--network", "none", "--name", name, "-v", host+":"+host, image, "sleep", "600"); err != nil {
		t.Skipf("NOT TESTED WITH A REAL CONTAINER: %s does not start: %v %s", image, err, oneLine(said))
	}
	t.Cleanup(func() { _, _ = ask(30*time.Second, "rm", "-f", name) })
	t.Run("suite", func(t *testing.T) {
		sandboxtest.Run(t, sandboxtest.Fixture{
			New: func(t *testing.T, environ []string) sandbox.Executor {
				e, err := New(Options{Container: name, Host: host, Environ: environ})
				if err != nil {
					t.Fatal(err)
				}
				return e
			},
		})
	})
}
