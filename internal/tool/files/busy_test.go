package files

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// TestScriptsRunAtOnce: a script that was changed can be started, whatever others start in that moment.
func TestScriptsRunAtOnce(t *testing.T) {
	t.Parallel()
	p := newPlace(t, nil)
	var all sync.WaitGroup
	for n := range 8 {
		name := fmt.Sprint("script", n)
		p.put(name, "#!/bin/sh\necho 0\n")
		if err := os.Chmod(filepath.Join(p.dir, name), 0o755); err != nil {
			t.Fatal(err)
		}
		all.Go(func() {
			for i := range 30 {
				if res := p.call("edit", fmt.Sprintf(`{"path":%q,"old_string":"echo %d\n","new_string":"echo %d\n"}`, name, i, i+1)); res.Failed {
					t.Error(res.Blocks.Text())
					return
				}
				out, err := exec.Command(filepath.Join(p.dir, name)).Output()
				if want := fmt.Sprint(i + 1); err != nil || strings.TrimSpace(string(out)) != want {
					t.Errorf("%q, %v; want %s", out, err, want)
				}
			}
		})
	}
	all.Wait()
}
