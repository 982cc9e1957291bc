package isolate_test

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"chorus/internal/chat"
	"chorus/internal/config"
	"chorus/internal/engine"
	"chorus/internal/journal"
	"chorus/internal/settings"
)

// What git starts by itself is guarded unless the configuration opens it, in a workspace
// that is a repository and in a folder of one; and the result says so.
func TestGitIsGuarded(t *testing.T) {
	t.Parallel()
	a, work, _ := newApp(t)
	part := filepath.Join(work, "part")
	cmd := exec.Command("sh", "-c", "set -e; git init -q .; mkdir part; touch part/f; git add .; git -c user.name=a -c user.email=a@example.com commit -q -m first")
	cmd.Dir = work
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	rules, err := settings.Profile(&config.Bot{}, "open")
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{work, part} {
		for setting, want := range map[string]string{"": "", "guarded": "", "open": "touch x\n"} {
			plan := a.Isolation.Plan(&config.Bot{SandboxGit: setting}, rules, journal.Thread{Dir: dir}, chat.Terms{}, engine.Work{})
			res := inSandbox(t, a, dir, plan)("git config alias.x 'touch x'; git config alias.x; git config --unset alias.x; git status --short")
			if got := strings.Contains(res.Output, "touch x\n"); got != (want != "") || strings.Contains(res.Output, "[sandbox: ") == got {
				t.Errorf("%s with %q: %s", dir, setting, res.Output)
			}
		}
	}
}
