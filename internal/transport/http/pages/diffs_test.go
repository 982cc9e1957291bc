package pages

import (
	"fmt"
	"strings"
	"testing"
)

// What a tool changed is a diff without git's own lines.
func TestParseDiffOfATool(t *testing.T) {
	t.Parallel()
	view := edits("--- a/x.go\n+++ b/x.go\n@@ -1,2 +1,2 @@\n one\n-two\n+2\n--- /dev/null\n+++ b/new\n@@ -0,0 +1 @@\n+hi\n--- a/gone\n+++ /dev/null\n@@ -1 +0,0 @@\n-bye\n" +
		"--- a/long\n+++ b/long\n@@ -0,0 +1,50 @@\n" + strings.Repeat("+x\n", 50))
	var got []string
	for _, f := range view.Files {
		got = append(got, fmt.Sprintf("%s|%s|+%d-%d %v", f.Path, f.Note, f.Added, f.Removed, f.Folded))
	}
	if want := "x.go||+1-1 false, new|new file|+1-0 false, gone|deleted|+0-1 false, long||+50-0 true"; strings.Join(got, ", ") != want {
		t.Errorf("files %s, want %s", strings.Join(got, ", "), want)
	}
}
