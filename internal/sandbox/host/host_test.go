package host_test

import (
	"os"
	"os/exec"
	"testing"

	"go.uber.org/goleak"

	"chorus/internal/sandbox"
	"chorus/internal/sandbox/host"
	"chorus/internal/sandbox/sandboxtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestContract(t *testing.T) {
	t.Parallel()
	sandboxtest.Run(t, sandboxtest.Fixture{
		New: func(_ *testing.T, environ []string) sandbox.Executor { return host.New(environ) },
	})
}

func BenchmarkTurn(b *testing.B) {
	dir := b.TempDir()
	b.Run("bare", func(b *testing.B) {
		for b.Loop() {
			cmd := exec.Command("bash", "-c", "echo hi")
			cmd.Dir = dir
			if _, err := cmd.CombinedOutput(); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("host", func(b *testing.B) {
		ex := host.New(os.Environ())
		for b.Loop() {
			if _, err := ex.Run(b.Context(), sandbox.Command{Shell: "echo hi", Dir: dir, Merge: true}); err != nil {
				b.Fatal(err)
			}
		}
	})
}
