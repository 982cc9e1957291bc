package git

import (
	"os"
	"strings"
	"testing"

	"chorus/internal/sandbox/host"
)

// What has changed is told before the first commit and after it, with files that git does not know yet and without those it ignores.
func TestChangesHaveNewFiles(t *testing.T) {
	t.Parallel()
	need(t)
	dir := t.TempDir()
	git(t, dir, "init", "-q")
	run := host.New(os.Environ())
	both := func() (summary, diff string) {
		t.Helper()
		summary, err := Summary(t.Context(), run, dir)
		if err != nil {
			t.Fatal(err)
		}
		diff, err = Changes(t.Context(), run, dir)
		if err != nil {
			t.Fatal(err)
		}
		return summary, diff
	}
	if summary, diff := both(); summary != "" || diff != "" {
		t.Errorf("an empty repository: %q, %q", summary, diff)
	}
	put(t, dir, "a.txt", "one\n")
	put(t, dir, ".gitignore", "*.log\n")
	put(t, dir, "x.log", "ignored\n")
	git(t, dir, "add", "a.txt")
	put(t, dir, "a.txt", "two\n")
	summary, diff := both()
	if !strings.Contains(summary, " a.txt |") || !strings.Contains(summary, " .gitignore | new") || strings.Contains(summary, "x.log") {
		t.Errorf("before the first commit: %s", summary)
	}
	if !strings.Contains(diff, "+two") || !strings.Contains(diff, "+*.log") || strings.Contains(diff, "ignored") {
		t.Errorf("before the first commit:\n%s", diff)
	}
	git(t, dir, "add", ".")
	git(t, dir, "commit", "-q", "-m", "first")
	if summary, diff := both(); summary != "" || diff != "" {
		t.Errorf("right after a commit: %q, %q", summary, diff)
	}
	put(t, dir, "a.txt", "three\n")
	put(t, dir, "b.txt", "new words\n")
	summary, diff = both()
	if !strings.Contains(summary, "a.txt | 2 +-") || !strings.Contains(summary, " b.txt | new") {
		t.Errorf("after it: %s", summary)
	}
	if !strings.Contains(diff, "-two\n+three") || !strings.Contains(diff, "+new words") {
		t.Errorf("after it:\n%s", diff)
	}
}
