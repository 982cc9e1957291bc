package diffview

import (
	"fmt"
	"strings"
	"testing"
)

const someDiff = `diff --git a/a.txt b/a.txt
index 1..2 100644
--- a/a.txt
+++ b/a.txt
@@ -1,4 +1,5 @@ func <x>
 one
-two
-three
+zwei
+drei
+vier
 five
@@ -10 +11 @@
--- not a header
+++ not one either
\ No newline at end of file
diff --git "a/na\303\257ve \"x\".txt" "b/na\303\257ve \"x\".txt"
new file mode 100644
--- /dev/null
+++ "b/na\303\257ve \"x\".txt"
@@ -0,0 +1 @@
+diff --git a/b b/b
diff --git a/old name b/new name
similarity index 100%
rename from old name
rename to new name
diff --git a/gone b/gone
deleted file mode 100644
Binary files a/gone and /dev/null differ
`

func TestParseDiff(t *testing.T) {
	t.Parallel()
	files, cut := Parse(someDiff)
	var got []string
	for _, f := range files {
		got = append(got, fmt.Sprintf("%s|%s|+%d-%d", f.Path, f.Note, f.Added, f.Removed))
	}
	want := []string{"a.txt||+4-3", `naïve "x".txt|new file|+1-0`, "new name|renamed from old name|+0-0", "gone|deleted, binary|+0-0"}
	if cut || strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Fatalf("files %q, cut %v", got, cut)
	}
	var pairs []string
	for _, h := range files[0].Hunks {
		for _, p := range SideBySide(h) {
			pairs = append(pairs, fmt.Sprintf("%d %s|%d %s", p.Left.Old, p.Left.Text, p.Right.New, p.Right.Text))
		}
	}
	if got, want := strings.Join(pairs, "\n"), "1 one|1 one\n2 two|2 zwei\n3 three|3 drei\n0 |4 vier\n4 five|5 five\n10 -- not a header|11 ++ not one either\n0 no newline at the end of the file|0 no newline at the end of the file"; got != want {
		t.Errorf("pairs\n%s\nwant\n%s", got, want)
	}
	for _, broken := range []string{"", "no diff at all", "@@ -1 +1 @@\n+x", "diff --git ", "diff --git a/x b/x\n@@ -x +y @@\n+z", "diff --git a/x b/x\n@@ -1,9 +1,9 @@\n"} {
		Parse(broken)
	}
}

// A huge difference is cut, counts all its lines and says how many are missing.
func TestHugeDiff(t *testing.T) {
	t.Parallel()
	var text strings.Builder
	for f := range 60 {
		fmt.Fprintf(&text, "diff --git a/f%d b/f%d\n--- a/f%d\n+++ b/f%d\n@@ -0,0 +1,1500 @@\n", f, f, f, f)
		for range 1500 {
			text.WriteString("+x\n")
		}
	}
	files, cut := Parse(text.String())
	shown := 0
	for i, f := range files {
		lines := 0
		for _, h := range f.Hunks {
			lines += len(h.Lines)
		}
		if lines > maxFileLines || lines+f.Hidden != 1500 || f.Added != 1500 || f.Folded != (i >= openFiles) {
			t.Errorf("%s shows %d, hides %d of %d", f.Path, lines, f.Hidden, f.Added)
		}
		shown += lines
	}
	if !cut || len(files) != 60 || shown != maxDiffLines {
		t.Errorf("%d files, %d lines, cut %v", len(files), shown, cut)
	}
}

// A diff that people decide about is shown whole, or not as a diff.
func TestParseWhole(t *testing.T) {
	t.Parallel()
	const small = "--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@ func x\n one\n-two\n+2\n\\ No newline at end of file\n--- /dev/null\n+++ b/new\n@@ -0,0 +1 @@\n+hi\n"
	for name, c := range map[string]struct {
		text string
		want bool
	}{
		"a diff":             {small, true},
		"many lines":         {"--- /dev/null\n+++ b/x\n@@ -0,0 +1,900 @@\n" + strings.Repeat("+x\n", 900), true},
		"nothing":            {"", false},
		"words":              {"every day at nine", false},
		"words before it":    {"run this:\n" + small, false},
		"words after it":     {small + "and delete everything\n", false},
		"too long to show":   {"--- /dev/null\n+++ b/x\n@@ -0,0 +1,5000 @@\n" + strings.Repeat("+x\n", 5000), false},
		"binary":             {"--- a/x\n+++ b/x\n(binary: 2 bytes become 3)\n", false},
		"more than it says":  {"--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n+c\n", false},
		"a file of no lines": {small + "--- a/y\n+++ b/y\n@@ -0,0 +0,0 @@\n", false},
	} {
		files, whole := ParseWhole(c.text)
		if whole != c.want {
			t.Errorf("%s: %v", name, whole)
		}
		for _, f := range files {
			if whole && f.Folded {
				t.Errorf("%s: %s is folded", name, f.Path)
			}
		}
	}
}
