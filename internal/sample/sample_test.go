package sample

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// The project has a bug that its tests find, and what lies in the folder already is never written over.
func TestTheProjectHasItsBug(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := Write(t.Context(), dir); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command("sh", filepath.Join(dir, "test.sh")).CombinedOutput()
	if err == nil || !strings.Contains(string(out), "2 passed, 2 failed") {
		t.Errorf("the tests: %v\n%s", err, out)
	}
	if _, err := exec.LookPath("git"); err == nil {
		cmd := exec.Command("git", "status", "--porcelain")
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil || len(out) > 0 {
			t.Errorf("the repository: %v %s", err, out)
		}
	}
	mine := filepath.Join(dir, "split.sh")
	if err := os.WriteFile(mine, []byte("mine"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := Write(t.Context(), dir); err == nil {
		t.Error("a second project was laid out over the first")
	}
	if data, err := os.ReadFile(mine); err != nil || string(data) != "mine" {
		t.Errorf("a file was written over: %q, %v", data, err)
	}
}
