package main

import (
	"context"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// TestDemoWork plays `make demo-work` without its pauses: three sentences to the dispatcher become four tasks, and their work is on
// the default branch, each merged once and in an order that their needs allow.
func TestDemoWork(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "sh", "../../docs/demo-work.sh")
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "TMPDIR=" + dir, "USER=ada", "CHORUS=chorus", "SPEED=fast"}
	cmd.WaitDelay = 10 * time.Second // for the server, if the script is killed
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	text := string(out)
	at := map[string]int{}
	for _, title := range []string{"Add a heading", "Choose colours", "Write a footer", "Check the page"} {
		if n := strings.Count(text, "Merge task"); n != 4 {
			t.Fatalf("%d merges\n%s", n, text)
		}
		_, log, _ := strings.Cut(text, "git log --graph")
		before, _, found := strings.Cut(log, ": "+title)
		if !found {
			t.Fatalf("%s was not merged\n%s", title, text)
		}
		at[title] = len(before)
	}
	// The newest commit is the first line.
	if at["Check the page"] > at["Choose colours"] || at["Check the page"] > at["Write a footer"] || at["Choose colours"] > at["Add a heading"] || at["Write a footer"] > at["Add a heading"] {
		t.Errorf("merged in another order\n%s", text)
	}
	for _, want := range []string{"Created project `demo-site`", "? AWAITING_APPROVAL", "+- colours", "✓ COMPLETED  Check the page", "CHECKED.md\nfooter.html\nindex.html\nstyle.css\n"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing\n%s", want, text)
		}
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 1 { // a cache in its home may stay
		t.Errorf("left behind: %v %v", left, err)
	}
}
