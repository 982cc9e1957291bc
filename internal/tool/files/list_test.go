package files

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestListFiles(t *testing.T) {
	t.Parallel()
	p := newPlace(t, map[string]string{
		"a.go": "", "a-b.go": "", "a/x.go": "", "a.b/y.go": "", "src/deep/z.ts": "", "src/z.go": "", "src/gen/out.go": "",
		".hidden": "", ".git/config": "", "sub/.git/HEAD": "", "sub/f": "",
		".gitignore": "*.log\n/build/\ngen/\n!keep.log\n", "x.log": "", "keep.log": "", "build/o": "", "src/build/o.txt": "",
		"src/.gitignore": "!*.log\n*.tmp\n", "src/y.log": "", "src/y.tmp": "", "src/.ignore": "secret*\n", "src/secret.txt": "", "{x}/y": "",
	})
	p.link("link", "a.go")
	p.link("out", p.outside)
	tests := []struct {
		name, tool, args, want string
		failed                 bool
	}{
		{"all", "list_files", `{}`, ".gitignore\n.hidden\na-b.go\na.b/y.go\na.go\na/x.go\nkeep.log\nlink\nout\nsrc/.gitignore\nsrc/.ignore\nsrc/build/o.txt\nsrc/deep/z.ts\nsrc/y.log\nsrc/z.go\nsub/f\n{x}/y", false},
		{"names at any depth", "list_files", `{"glob":"*.go"}`, "a-b.go\na.b/y.go\na.go\na/x.go\nsrc/z.go", false},
		{"a path", "list_files", `{"glob":"src/*.go"}`, "src/z.go", false},
		{"across", "ListFiles", `{"glob":"**/*.{ts,go}","path":"src","sortBy":"name"}`, "src/deep/z.ts\nsrc/z.go", false},
		{"relative to path", "list_files", `{"glob":"deep/**","path":"src"}`, "src/deep/z.ts", false},
		{"a directory", "list_files", `{"glob":"src/deep/"}`, "src/deep/z.ts", false},
		{"inside what is ignored", "list_files", `{"path":"build"}`, "build/o", false},
		{"rules of above", "list_files", `{"path":"src/deep","glob":"*"}`, "src/deep/z.ts", false},
		{"limit", "list_files", `{"limit":2}`, ".gitignore\n.hidden\n[Only the first 2 files are shown; narrow the glob or the path.]", false},
		{"none", "list_files", `{"glob":"*.rs"}`, "No files found.", false},
		{"bad glob", "list_files", `{"glob":"[a"}`, `"[a" is not a glob.`, true},
		{"missing", "list_files", `{"path":"none"}`, "none does not exist.", true},
		{"a file", "list_files", `{"path":"a.go"}`, "a.go", false},
		{"a link out", "list_files", `{"path":"out"}`, "out is refused: a link in the path leads outside of the workspace.", true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			want(t, p.call(tt.tool, tt.args), tt.want, tt.failed)
		})
	}
}

func TestListFilesIsBounded(t *testing.T) {
	t.Parallel()
	files := map[string]string{}
	for i := range 600 {
		files[fmt.Sprintf("d%d/f%03d", i%7, i)] = ""
	}
	p := newPlace(t, files)
	text := p.call("list_files", `{"limit":9999}`).Blocks.Text()
	if lines := strings.Split(text, "\n"); len(lines) != 501 || !slices.IsSorted(lines[:500]) {
		t.Errorf("%d lines", len(lines))
	}
}

// TestIgnoreRulesAsGit holds the rules against git itself.
func TestIgnoreRulesAsGit(t *testing.T) {
	t.Parallel()
	git, err := exec.LookPath("git")
	if err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal("git is needed")
		}
		t.Skip("SKIPPED: git is not installed, ignore rules were not compared with it")
	}
	// Every directory of the top is a case of its own: one run of git answers all.
	dir := t.TempDir()
	random := rand.New(rand.NewPCG(1, 2))
	names := []string{"a", "b", "a.log", "b.log", "build", "x y", "#c", "d{1}"}
	rules := []string{
		"*.log", "!a.log", "/a", "a/", "build/", "a/b", "/a/*", "**/b", "a/**", "a/**/b", "!b", "*", "!*/", "!/a", "?", "[ab]", "[!a]",
		"x*", "b*/", "\\#c", "# c", "d{1}", "{a,b}", "a  ", "**", "*/b", "!build/",
	}
	for i := range 150 {
		top := filepath.Join(dir, fmt.Sprint("case", i))
		for range 1 + random.IntN(12) {
			full := top
			for range 1 + random.IntN(3) {
				full = filepath.Join(full, names[random.IntN(len(names))])
			}
			if os.MkdirAll(filepath.Dir(full), 0o755) == nil {
				_ = os.WriteFile(full, nil, 0o644)
			}
		}
		for _, sub := range []string{".", "a", "a/b"} {
			var text strings.Builder
			for range random.IntN(5) {
				text.WriteString(rules[random.IntN(len(rules))] + "\n")
			}
			where := filepath.Join(top, sub)
			if info, err := os.Stat(where); err == nil && info.IsDir() {
				_ = os.WriteFile(filepath.Join(where, ".gitignore"), []byte(text.String()), 0o644)
			}
		}
	}
	if out, err := exec.Command(git, "-C", dir, "init", "-q").CombinedOutput(); err != nil {
		t.Fatalf("%s %v", out, err)
	}
	out, err := exec.Command(git, "-C", dir, "-c", "core.excludesFile=/dev/null", "ls-files", "-z", "--others", "--exclude-standard").Output()
	if err != nil {
		t.Fatal(err)
	}
	theirs := map[string]bool{}
	for name := range strings.SplitSeq(strings.TrimSuffix(string(out), "\x00"), "\x00") {
		theirs[name] = true
	}
	roots, err := NewRoots(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer roots.Close()
	if err := roots.Walk(t.Context(), Place{Workspace, "."}, func(e Entry) bool {
		if !theirs[e.Rel] {
			t.Errorf("git ignores %s", e.Rel)
		}
		delete(theirs, e.Rel)
		return true
	}); err != nil {
		t.Fatal(err)
	}
	for name := range theirs {
		t.Errorf("git lists %s", name)
	}
}

// A pattern that stands for very many is none: trying them all would have no end.
func TestGlobOfVeryMany(t *testing.T) {
	t.Parallel()
	for pattern, want := range map[string]bool{
		"*.{go,ts,{md,txt}}": true, "{a,b}{c,d}{e,f}/**": true, `\{a,b,c\}`: true, "{" + strings.Repeat("a,", 900) + "a}": true,
		strings.Repeat("{a,aa}", 40) + "b": false, strings.Repeat("{*,**}", 40) + "b": false, strings.Repeat("{a,", 40) + "a" + strings.Repeat("}", 40): false,
	} {
		glob, ok := NewGlob(pattern)
		if ok != want {
			t.Errorf("%.40s: %v", pattern, ok)
		}
		if ok {
			glob.Match(strings.Repeat("a", 80))
		}
	}
}
