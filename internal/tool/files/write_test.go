package files

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"chorus/internal/tool"
)

func TestWrite(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, tool, args, want string
		failed                 bool
		file, content          string
	}{
		{"new", "write", `{"path":"a/b/c/x","content":"abc"}`, "Wrote 3 bytes to a/b/c/x", false, "a/b/c/x", "abc"},
		{"bytes, not characters", "write", `{"path":"x","content":"äö"}`, "Wrote 4 bytes to x", false, "x", "äö"},
		{"over", "create_file", `{"path":"old","content":"new"}`, "Wrote 3 bytes to old", false, "old", "new"},
		{"empty", "write_file", `{"path":"old","content":""}`, "Wrote 0 bytes to old", false, "old", ""},
		{"append", "append_file", `{"path":"old","content":"more\n"}`, "Appended 5 bytes to old", false, "old", "text\nmore\n"},
		{"append to nothing", "append_file", `{"path":"new","content":"x"}`, "Appended 1 bytes to new", false, "new", "x"},
		{"theirs refuses", "WriteFile", `{"filePath":"old","content":"x"}`, "old exists already; set overwrite to replace it.", true, "old", "text\n"},
		{"theirs overwrites", "WriteFile", `{"filePath":"old","content":"x","overwrite":true}`, "Wrote 1 bytes to old", false, "old", "x"},
		{"theirs new", "WriteFile", `{"filePath":"new","content":"x"}`, "Wrote 1 bytes to new", false, "new", "x"},
		{"directory", "write", `{"path":"dir","content":"x"}`, "dir is a directory.", true, "dir/f", "f"},
		{"root", "write", `{"path":".","content":"x"}`, ". is a directory.", true, "dir/f", "f"},
		{"below a file", "write", `{"path":"old/x","content":"x"}`, "old/x: a part of the path is not a directory.", true, "old", "text\n"},
		{"good json", "write", `{"path":"x.json","content":"{\"a\":1}"}`, "Wrote 7 bytes to x.json", false, "x.json", `{"a":1}`},
		{"bad json", "write", `{"path":"x.json","content":"{\n\nbroken"}`, "Wrote 9 bytes to x.json\nWarning: x.json is not valid JSON: invalid character 'b' looking for beginning of object key string (line 3)", false, "x.json", "{\n\nbroken"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			p := newPlace(t, map[string]string{"old": "text\n", "dir/f": "f"})
			want(t, p.call(tt.tool, tt.args), tt.want, tt.failed)
			if got := p.get(tt.file); got != tt.content {
				t.Errorf("%s holds %q, want %q", tt.file, got, tt.content)
			}
			for name := range tree(t, p.dir) {
				if strings.Contains(name, ".chorus-") {
					t.Errorf("%s was left behind", name)
				}
			}
		})
	}
}

func TestModeBitsAreKept(t *testing.T) {
	t.Parallel()
	p := newPlace(t, map[string]string{"run.sh": "echo a\n", "locked": "x\n"})
	for name, mode := range map[string]fs.FileMode{"run.sh": 0o751, "locked": 0o444} {
		if err := os.Chmod(filepath.Join(p.dir, name), mode); err != nil {
			t.Fatal(err)
		}
	}
	mode := func() fs.FileMode {
		info, err := os.Stat(filepath.Join(p.dir, "run.sh"))
		if err != nil {
			t.Fatal(err)
		}
		return info.Mode()
	}
	for _, call := range [][2]string{
		{"write", `{"path":"run.sh","content":"echo b\n"}`},
		{"edit", `{"path":"run.sh","old_string":"b","new_string":"c"}`},
		{"apply_patch", `{"patch":"*** Begin Patch\n*** Update File: run.sh\n-echo c\n+echo d\n*** End Patch"}`},
	} {
		if res := p.call(call[0], call[1]); res.Failed || mode() != 0o751 {
			t.Errorf("%s: %s, mode %s", call[0], res.Blocks.Text(), mode())
		}
	}
	for _, call := range [][2]string{
		{"write", `{"path":"locked","content":"y"}`},
		{"edit", `{"path":"locked","old_string":"x","new_string":"y"}`},
		{"apply_patch", `{"patch":"*** Begin Patch\n*** Add File: new\n+x\n*** Update File: locked\n-x\n+y\n*** End Patch"}`},
	} {
		wantPart(t, p.call(call[0], call[1]), "locked is write-protected", true)
	}
	if p.get("locked") != "x\n" || p.get("new") != "<no such file or directory>" {
		t.Error("something was changed")
	}
}

func TestPreview(t *testing.T) {
	t.Parallel()
	p := newPlace(t, map[string]string{"f": "a\nb\nc\n", "bin": "\x00"})
	tests := []struct{ tool, args, want string }{
		{"write", `{"path":"f","content":"a\nB\nc\n"}`, "--- a/f\n+++ b/f\n@@ -1,3 +1,3 @@\n a\n-b\n+B\n c\n"},
		{"write", `{"path":"new","content":"x\n"}`, "--- /dev/null\n+++ b/new\n@@ -0,0 +1 @@\n+x\n"},
		{"write", `{"path":"f","content":"a\nb\nc\n"}`, ""},
		{"write", `{"path":"../f","content":""}`, ""},
		{"write", `{"path":"bin","content":"x"}`, "--- a/bin\n+++ b/bin\n(binary: 1 bytes become 1)\n"},
		{"write", `{"path":"@memory/x","content":"x\n"}`, "--- /dev/null\n+++ b/@memory/x\n@@ -0,0 +1 @@\n+x\n"},
		{"edit", `{"path":"f","old_string":"c","new_string":"C"}`, "--- a/f\n+++ b/f\n@@ -1,3 +1,3 @@\n a\n b\n-c\n+C\n"},
		{"edit", `{"path":"f","old_string":"z","new_string":"C"}`, ""},
		{"apply_patch", `{"patch":"*** Begin Patch\n*** Delete File: f\n*** Add File: g\n+g\n*** End Patch"}`,
			"--- a/f\n+++ /dev/null\n@@ -1,3 +0,0 @@\n-a\n-b\n-c\n--- /dev/null\n+++ b/g\n@@ -0,0 +1 @@\n+g\n"},
		{"apply_patch", `{"patch":"nonsense"}`, ""},
	}
	before := tree(t, filepath.Dir(p.dir))
	for _, tt := range tests {
		for _, tl := range p.set.Tools() {
			if tl.Spec().Name == tt.tool {
				got := tl.(tool.Previewer).Preview(t.Context(), []byte(tt.args))
				if got != tt.want {
					t.Errorf("%s %s:\n%s\nwant\n%s", tt.tool, tt.args, got, tt.want)
				}
			}
		}
	}
	if after := tree(t, filepath.Dir(p.dir)); len(after) != len(before) {
		t.Error("a preview changed something")
	}
}

// TestDiffs: what a call changed is told to people as a diff, also of files that are new or gone.
func TestDiffs(t *testing.T) {
	t.Parallel()
	p := newPlace(t, map[string]string{"a": "one\ntwo\n", "gone": "x\n"})
	for _, call := range []struct{ tool, args, want string }{
		{"write", `{"path":"new","content":"hi\n"}`, "--- /dev/null\n+++ b/new\n@@ -0,0 +1 @@\n+hi\n"},
		{"write", `{"path":"a","content":"one\n2\n"}`, "--- a/a\n+++ b/a\n@@ -1,2 +1,2 @@\n one\n-two\n+2\n"},
		{"edit", `{"path":"a","old_string":"2","new_string":"two"}`, "--- a/a\n+++ b/a\n@@ -1,2 +1,2 @@\n one\n-2\n+two\n"},
		{"apply_patch", `{"patch":"*** Begin Patch\n*** Update File: a\n-two\n+deux\n*** Delete File: gone\n*** End Patch"}`,
			"--- a/a\n+++ b/a\n@@ -1,2 +1,2 @@\n one\n-two\n+deux\n--- a/gone\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n"},
		{"edit", `{"path":"a","old_string":"none","new_string":"x"}`, ""},
	} {
		if got := p.call(call.tool, call.args).Diff; got != call.want {
			t.Errorf("%s %s: %q, want %q", call.tool, call.args, got, call.want)
		}
	}
}
