package runsetup_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"chorus/internal/app"
	"chorus/internal/app/apptest"
	"chorus/internal/chat"
	"chorus/internal/store/storetest"
	"chorus/internal/tool"
)

// Threads of one home that work in one folder, in one program and in two, lose nothing of
// each other's changes.
func TestThreadsOfAHomeShareLocks(t *testing.T) {
	t.Parallel()
	home, work := storetest.FreshHome(t), t.TempDir()
	var group sync.WaitGroup
	for i := range 2 { // as two processes: each has locks of its own
		a, err := app.Open(t.Context(), app.Options{Home: home, Env: apptest.Env("USER", "tester")})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = a.Close() })
		for k := range 2 {
			b, err := a.Setup.Toolbox(chat.ThreadID(fmt.Sprintf("web:x:t%d%d@helper", i, k)), work)
			if err != nil {
				t.Fatal(err)
			}
			group.Go(func() {
				for n := range 15 {
					appendLine(t, b.Tools, fmt.Sprintf("%d %d %d", i, k, n))
				}
			})
		}
	}
	group.Wait()
	data, err := os.ReadFile(filepath.Join(work, "shared.txt"))
	if n := strings.Count(string(data), "\n"); err != nil || n != 60 {
		t.Errorf("%d of 60 lines are there, %v", n, err)
	}
}

func appendLine(t *testing.T, set *tool.Set, line string) {
	found, args, err := set.Resolve("write", fmt.Appendf(nil, `{"path":"shared.txt","content":"%s\n","append":true}`, line))
	if err != nil {
		t.Error(err)
		return
	}
	if res, err := found.Run(t.Context(), args); err != nil || res.Failed {
		t.Errorf("%s: %v, %v", line, res, err)
	}
}
