package programtest

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
)

// TestStartedAtOnce: also while others start programs of their own all the time.
func TestStartedAtOnce(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var all sync.WaitGroup
	for n := range 8 {
		all.Go(func() {
			for i := range 50 {
				program := filepath.Join(dir, fmt.Sprint(n, "-", i))
				if err := write(program, "#!/bin/sh\nexit 0\n"); err != nil {
					t.Error(err)
				} else if err := exec.Command(program).Run(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
}
