package chaos

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		victim.remove()
		os.Exit(code)
	}))
}

// victim is the real program, built so that it can be told where to die.
var victim mortal

// mortal is a program in a folder of its own. What it had open when it was killed lies there too.
type mortal struct {
	once sync.Once
	dir  string
	err  error
}

// program builds it once.
func (v *mortal) program() (string, error) {
	v.once.Do(func() {
		if v.dir, v.err = os.MkdirTemp("", "chorus-victim"); v.err != nil {
			return
		}
		cmd := exec.Command("go", "build", "-trimpath", "-ldflags=-s -w", "-tags", "chaos,grpcnotrace", "-o", v.path(), "chorus/cmd/chorus")
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0") // as it is built for people
		if out, err := cmd.CombinedOutput(); err != nil {
			v.err = fmt.Errorf("build: %w\n%s", err, out)
		}
	})
	return v.path(), v.err
}

func (v *mortal) path() string { return filepath.Join(v.dir, "chorus") }

func (v *mortal) remove() {
	if v.dir != "" {
		_ = os.RemoveAll(v.dir) // it can be made again
	}
}
