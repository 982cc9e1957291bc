package files

import (
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/aymanbagabas/go-udiff"
	"pgregory.net/rapid"
)

func TestApplyPatch(t *testing.T) {
	t.Parallel()
	begin := func(body string) string { return "*** Begin Patch\n" + body + "*** End Patch\n" }
	tests := []struct {
		name, patch, want string
		failed            bool
		after             map[string]string // "" is gone
	}{
		{"add", begin("*** Add File: n/new\n+one\n+\n+two\n"), "Applied the patch:\nA n/new", false, map[string]string{"n/new": "one\n\ntwo\n"}},
		{"update", begin("*** Update File: f\n@@\n l2\n-l3\n+X\n l4\n"), "Applied the patch:\nM f", false, map[string]string{"f": "l1\nl2\nX\nl4\nl5\n"}},
		{"update twice", begin("*** Update File: f\n@@\n-l1\n+A\n@@\n-l5\n+E\n"), "Applied the patch:\nM f", false, map[string]string{"f": "A\nl2\nl3\nl4\nE\n"}},
		{"delete", begin("*** Delete File: f\n"), "Applied the patch:\nD f", false, map[string]string{"f": ""}},
		{"move", begin("*** Update File: f\n*** Move to: d/g\n@@\n-l1\n+A\n"), "Applied the patch:\nR f -> d/g", false, map[string]string{"f": "", "d/g": "A\nl2\nl3\nl4\nl5\n"}},
		{"move only", begin("*** Update File: f\n*** Move to: g\n"), "Applied the patch:\nR f -> g", false, map[string]string{"f": "", "g": numbered(5)}},
		{"anchor", begin("*** Update File: twin\n@@ func b\n-x\n+y\n"), "Applied the patch:\nM twin", false, map[string]string{"twin": "func a\nx\nfunc b\ny\n"}},
		{"two anchors", begin("*** Update File: twin\n@@ func a\n@@ func b\n-x\n+y\n"), "Applied the patch:\nM twin", false, map[string]string{"twin": "func a\nx\nfunc b\ny\n"}},
		{"end of file", begin("*** Update File: twin\n@@\n-x\n+y\n*** End of File\n"), "Applied the patch:\nM twin", false, map[string]string{"twin": "func a\nx\nfunc b\ny\n"}},
		{"append", begin("*** Update File: f\n+more\n"), "Applied the patch:\nM f", false, map[string]string{"f": numbered(5) + "more\n"}},
		{"blank lines between", begin("*** Update File: f\n@@\n-l1\n+A\n\n*** Delete File: twin\n"), "Applied the patch:\nM f\nD twin", false, map[string]string{"f": "A\nl2\nl3\nl4\nl5\n", "twin": ""}},
		{"in a fence", "```\n" + begin("*** Delete File: f\n") + "```\n", "Applied the patch:\nD f", false, map[string]string{"f": ""}},
		{"one file twice", begin("*** Update File: f\n-l1\n+A\n*** Update File: f\n-l2\n+B\n"), "Applied the patch:\nM f\nM f", false, map[string]string{"f": "A\nB\nl3\nl4\nl5\n"}},
		{"add, then change", begin("*** Add File: n\n+a\n*** Update File: n\n-a\n+b\n"), "Applied the patch:\nA n\nM n", false, map[string]string{"n": "b\n"}},
		{"crlf", begin("*** Update File: crlf\n a\n-b\n+B\n"), "Applied the patch:\nM crlf", false, map[string]string{"crlf": "a\r\nB\r\nc\r\n"}},

		{"ambiguous", begin("*** Update File: twin\n@@\n-x\n+y\n"), "twin, hunk 1: its context matches in 2 places (lines 2, 4); give more context. Nothing was changed.", true, nil},
		{"mismatch", begin("*** Update File: f\n l2\n-l4\n+X\n"), `f, hunk 1: its context does not match: line 3 is "l3", the patch says "l4". Nothing was changed.`, true, nil},
		{"past the end", begin("*** Update File: f\n l5\n-l6\n+X\n"), `f, hunk 1: its context does not match: the file ends before "l6". Nothing was changed.`, true, nil},
		{"no anchor", begin("*** Update File: f\n@@ nowhere\n-l1\n+A\n"), `f, hunk 1: the line "nowhere" after @@ was not found. Nothing was changed.`, true, nil},
		{"add over", begin("*** Add File: f\n+x\n"), "f exists already, it cannot be added.", true, nil},
		{"delete nothing", begin("*** Delete File: none\n"), "none does not exist.", true, nil},
		{"move over", begin("*** Update File: f\n*** Move to: twin\n-l1\n+A\n"), "twin exists already, nothing can be moved there.", true, nil},
		{"no end", "*** Begin Patch\n*** Update File: f\n-l1\n+A\n", "Line 5 of the patch: *** End Patch is missing.", true, nil},
		{"no plus", begin("*** Add File: n\nx\n"), "Line 3 of the patch: every line of an added file begins with +.", true, nil},
		{"no prefix", begin("*** Update File: f\nl1\n"), "Line 3 of the patch: a line of a hunk begins with a space, + or -.", true, nil},
		{"no changes", begin("*** Update File: f\n"), "Line 3 of the patch: *** Update File: f has no changes.", true, nil},
		{"unknown section", begin("*** Copy File: f\n"), `Line 2 of the patch: expected *** Add File:, *** Update File:, *** Delete File: or *** End Patch, found "*** Copy File: f".`, true, nil},
		{"all or nothing", begin("*** Add File: good\n+x\n*** Update File: f\n-nope\n+A\n"), `f, hunk 1: its context does not match: line 1 is "l1", the patch says "nope". Nothing was changed.`, true, nil},
		{"an evil neighbour", begin("*** Add File: good\n+x\n*** Add File: ../evil\n+x\n"), "../evil is outside of the workspace. Only paths in the workspace and in @docs, @memory, @outputs can be used.", true, nil},
		{"empty", "\n", "The patch is empty.", true, nil},
		{"prose", "please change f", "The patch changes nothing: it has neither a file header (---/+++) nor *** Begin Patch.", true, nil},

		{"unified", "--- a/f\n+++ b/f\n@@ -1,3 +1,3 @@\n l1\n-l2\n+X\n l3\n", "Applied the patch:\nM f", false, map[string]string{"f": "l1\nX\nl3\nl4\nl5\n"}},
		{"no prefix letters", "--- f\n+++ f\n@@ -1 +1 @@\n-l1\n+A\n", "Applied the patch:\nM f", false, map[string]string{"f": "A\nl2\nl3\nl4\nl5\n"}},
		{"with times", "--- a/f\t2026-01-01\n+++ b/f\t2026-01-02\n@@ -5 +5 @@\n-l5\n+E\n", "Applied the patch:\nM f", false, map[string]string{"f": "l1\nl2\nl3\nl4\nE\n"}},
		{"git", "diff --git a/f b/f\nindex 1..2 100644\n--- a/f\n+++ b/f\n@@ -1 +1 @@ func\n-l1\n+A\ndiff --git a/n b/n\nnew file mode 100755\n--- /dev/null\n+++ b/n\n@@ -0,0 +1,2 @@\n+x\n+y\n\\ No newline at end of file\ndiff --git a/twin b/twin\ndeleted file mode 100644\n--- a/twin\n+++ /dev/null\n@@ -1,4 +0,0 @@\n-func a\n-x\n-func b\n-x\n",
			"Applied the patch:\nM f\nA n\nD twin", false, map[string]string{"f": "A\nl2\nl3\nl4\nl5\n", "n": "x\ny", "twin": ""}},
		{"git rename", "diff --git a/f b/g\nsimilarity index 90%\nrename from f\nrename to g\n--- a/f\n+++ b/g\n@@ -1 +1 @@\n-l1\n+A\n", "Applied the patch:\nR f -> g", false, map[string]string{"f": "", "g": "A\nl2\nl3\nl4\nl5\n"}},
		{"git pure rename", "diff --git a/f b/g\nsimilarity index 100%\nrename from f\nrename to g\n", "Applied the patch:\nR f -> g", false, map[string]string{"f": "", "g": numbered(5)}},
		{"shifted", "--- a/f\n+++ b/f\n@@ -40,2 +40,2 @@\n l3\n-l4\n+X\n", "Applied the patch:\nM f", false, map[string]string{"f": "l1\nl2\nl3\nX\nl5\n"}},
		{"wrong counts", "--- a/f\n+++ b/f\n@@ -1,9 +1,9 @@\n l1\n-l2\n+X\n--- a/twin\n+++ b/twin\n@@ -1 +1 @@\n-func a\n+func A\n", "Applied the patch:\nM f\nM twin", false, map[string]string{"f": "l1\nX\nl3\nl4\nl5\n", "twin": "func A\nx\nfunc b\nx\n"}},
		{"counts too small", "--- a/f\n+++ b/f\n@@ -1,1 +1,1 @@\n l1\n-l2\n+X\n", "Applied the patch:\nM f", false, map[string]string{"f": "l1\nX\nl3\nl4\nl5\n"}},
		{"lines that look like headers", "--- a/dash\n+++ b/dash\n@@ -1,2 +1,2 @@\n--- x\n+++ y\n z\n", "Applied the patch:\nM dash", false, map[string]string{"dash": "++ y\nz\n"}},
		{"nearest of two", "--- a/twin\n+++ b/twin\n@@ -5 +5 @@\n-x\n+y\n", "Applied the patch:\nM twin", false, map[string]string{"twin": "func a\nx\nfunc b\ny\n"}},
		{"tie", "--- a/twin\n+++ b/twin\n@@ -3 +3 @@\n-x\n+y\n", "twin, hunk 1: its context matches in 2 places (lines 2, 4); give more context. Nothing was changed.", true, nil},
		{"insert only", "--- a/f\n+++ b/f\n@@ -2,0 +3 @@\n+X\n", "Applied the patch:\nM f", false, map[string]string{"f": "l1\nl2\nX\nl3\nl4\nl5\n"}},
		{"half a delete", "--- a/f\n+++ /dev/null\n@@ -1 +0,0 @@\n-l1\n", "f holds more than the patch deletes. Nothing was changed.", true, nil},
		{"binary", "diff --git a/f b/f\nBinary files a/f and b/f differ\n", "Line 2 of the patch: Binary files a/f and b/f differ is not supported here.", true, nil},
		{"a link", "diff --git a/l b/l\nnew file mode 120000\n--- /dev/null\n+++ b/l\n@@ -0,0 +1 @@\n+/etc/passwd\n\\ No newline at end of file\n", "Line 2 of the patch: only regular files can be patched, not mode 120000.", true, nil},
		{"hunk without file", "@@ -1 +1 @@\n-l1\n+A\n", "Line 1 of the patch: a hunk without a file: --- and +++ lines are missing before it.", true, nil},
		{"json", begin("*** Add File: x.json\n+{broken\n"), "Applied the patch:\nA x.json\nWarning: x.json is not valid JSON: invalid character 'b' looking for beginning of object key string (line 1)", false, map[string]string{"x.json": "{broken\n"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			files := map[string]string{"f": numbered(5), "twin": "func a\nx\nfunc b\nx\n", "crlf": "a\r\nb\r\nc\r\n", "dash": "-- x\nz\n"}
			p := newPlace(t, files)
			before := tree(t, filepath.Dir(p.dir))
			want(t, p.call("ApplyPatch", `{"patch":`+quoted(tt.patch)+`}`), tt.want, tt.failed)
			if tt.failed {
				if after := tree(t, filepath.Dir(p.dir)); !maps.Equal(before, after) {
					t.Errorf("a failed patch changed something: %v", after)
				}
				return
			}
			maps.Copy(files, tt.after)
			for name, content := range files {
				if content == "" {
					content = "<no such file or directory>"
				}
				if got := p.get(name); got != content {
					t.Errorf("%s holds %q, want %q", name, got, content)
				}
			}
		})
	}
}

func TestExecutableBitFromPatch(t *testing.T) {
	t.Parallel()
	p := newPlace(t, map[string]string{"f": "a\n"})
	p.call("apply_patch", `{"patch":"diff --git a/f b/f\nold mode 100644\nnew mode 100755\n--- a/f\n+++ b/f\n@@ -1 +1 @@\n-a\n+b\n"}`)
	info, err := os.Stat(filepath.Join(p.dir, "f"))
	if err != nil || info.Mode().Perm() != 0o755 || p.get("f") != "b\n" {
		t.Errorf("%v %v %q", info.Mode(), err, p.get("f"))
	}
}

// TestRollback lets the last of several writes fail when the others are done.
func TestRollback(t *testing.T) {
	t.Parallel()
	p := newPlace(t, map[string]string{"a": "a\n", "gone": "g\n", "dir/keep": "k\n"})
	before := tree(t, p.dir)
	sections, err := parsePatch("*** Begin Patch\n*** Update File: a\n-a\n+b\n*** Add File: new/deep/n\n+n\n*** Add File: dir/blocked\n+x\n*** Delete File: gone\n*** End Patch")
	if err != nil {
		t.Fatal(err)
	}
	plan, err := p.roots.newPlan(t.Context(), sections)
	if err != nil {
		t.Fatal(err)
	}
	if err := plan.compute(t.Context(), sections); err != nil {
		t.Fatal(err)
	}
	// A directory appears where a file is to be written: its rename must fail.
	blocked := filepath.Join(p.dir, "dir", "blocked")
	if err := os.MkdirAll(filepath.Join(blocked, "x"), 0o755); err != nil {
		t.Fatal(err)
	}
	err = plan.commit()
	if err == nil || !strings.HasSuffix(err.Error(), "Nothing was changed.") && !strings.Contains(err.Error(), "could not be undone") {
		t.Errorf("commit: %v", err)
	}
	if err := os.RemoveAll(blocked); err != nil {
		t.Fatal(err)
	}
	if after := tree(t, p.dir); !maps.Equal(before, after) {
		t.Errorf("not taken back:\n%v\n%v", before, after)
	}
}

// texts draws two versions of a file that have lines in common.
func texts(t *rapid.T) (a, b string) {
	line := rapid.SampledFrom([]string{"", "a", "b", "c", "-- x", "++ y", "@@ -1 +1 @@", " ", "x\r", "é", "*** End Patch", "diff --git a b", "\\ No newline at end of file"})
	make := func(label string) string {
		text := strings.Join(rapid.SliceOfN(line, 0, 12).Draw(t, label), "\n")
		if rapid.Bool().Draw(t, label+" ends") && text != "" {
			text += "\n"
		}
		return text
	}
	a = make("a")
	if rapid.Bool().Draw(t, "related") {
		lines := strings.SplitAfter(a, "\n")
		i := rapid.IntRange(0, len(lines)).Draw(t, "at")
		return a, strings.Join(lines[:i], "") + make("insert") + strings.Join(lines[min(len(lines), i+rapid.IntRange(0, 3).Draw(t, "cut")):], "")
	}
	return a, make("b")
}

// A diff of A and B, applied to A, is B.
func TestDiffsApply(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		a, b := texts(t)
		if a == b {
			return
		}
		patch := udiff.Unified("a/f", "b/f", a, b)
		sections, err := parsePatch(patch)
		if err != nil || len(sections) != 1 {
			t.Fatalf("%q to %q\n%s\n%v", a, b, patch, err)
		}
		got, err := apply(a, sections[0].hunks)
		if err != nil || got != b {
			t.Fatalf("%q to %q\n%s\ngot %q, %v", a, b, patch, got, err)
		}
	})
}

func FuzzPatch(f *testing.F) {
	f.Add("a\nb\n", "--- a/f\n+++ b/f\n@@ -1,2 +1,2 @@\n a\n-b\n+c\n")
	f.Add("a\nb\n", "*** Begin Patch\n*** Update File: f\n@@ a\n-b\n+c\n*** End Patch")
	f.Add("", "diff --git a/f b/f\nnew file mode 100644\n--- /dev/null\n+++ b/f\n@@ -0,0 +1 @@\n+x\n\\ No newline at end of file\n")
	f.Add("a\r\nb", "--- f\n+++ f\n@@ -2 +2 @@\n-b\n\\ No newline at end of file\n+b\n")
	f.Fuzz(func(t *testing.T, content, patch string) {
		sections, err := parsePatch(patch)
		if err != nil {
			return
		}
		for _, s := range sections {
			got, err := apply(content, s.hunks)
			if err != nil {
				continue
			}
			added, removed := 0, 0
			for _, h := range s.hunks {
				for _, l := range h.lines {
					switch l.op {
					case '+':
						added++
					case '-':
						removed++
					}
				}
			}
			if n := len(split(content).lines) + added - removed; n != len(split(got).lines) && got != "" && n != len(split(got).lines)+1 {
				t.Fatalf("%q has %d lines, want %d", got, len(split(got).lines), n)
			}
		}
	})
}

// FuzzPatchTree: a patch that fails leaves the tree as it was, byte for byte, and
// none ever touches what is outside.
func FuzzPatchTree(f *testing.F) {
	f.Add("*** Begin Patch\n*** Add File: n\n+x\n*** Update File: f\n-nope\n+y\n*** End Patch")
	f.Add("--- a/f\n+++ b/../../root2/secret\n@@ -1 +1 @@\n-l1\n+x\n")
	f.Add("*** Begin Patch\n*** Update File: f\n*** Move to: d/../../../x\n*** End Patch")
	f.Fuzz(func(t *testing.T, patch string) {
		p := newPlace(t, map[string]string{"f": numbered(3), "d/g": "g\n"})
		outside, before := tree(t, p.outside), tree(t, p.dir)
		res := p.call("apply_patch", `{"patch":`+quoted(patch)+`}`)
		if !maps.Equal(outside, tree(t, p.outside)) {
			t.Fatalf("%q changed the outside", patch)
		}
		if after := tree(t, p.dir); res.Failed && !maps.Equal(before, after) {
			t.Fatalf("%q failed and left %v", patch, after)
		}
	})
}
