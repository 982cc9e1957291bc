package git

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"chorus/internal/programtest"
	"chorus/internal/sandbox/host"
	"chorus/internal/tool"
	"chorus/internal/tool/files"
)

// compared is what a comparison shows.
func compared(t *testing.T, dir string, c Comparison, hides func(string) bool) (string, bool) {
	t.Helper()
	roots, err := files.NewRoots(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer roots.Close()
	res, err := Compare(host.New(os.Environ()), roots, nil, c).Run(tool.WithCall(t.Context(), tool.Call{ID: "c1", Hides: hides}), []byte(`{}`))
	if err != nil {
		t.Fatal(err)
	}
	return res.Blocks.Text(), res.Failed
}

func branched(t *testing.T) string {
	t.Helper()
	need(t)
	dir := t.TempDir()
	git(t, dir, "init", "-q")
	put(t, dir, "a.txt", "one\n")
	put(t, dir, ".gitignore", "*.log\n")
	git(t, dir, "add", ".")
	git(t, dir, "commit", "-q", "-m", "first")
	git(t, dir, "checkout", "-q", "-b", "work")
	put(t, dir, "committed.txt", "in a commit\n")
	git(t, dir, "add", ".")
	git(t, dir, "commit", "-q", "-m", "second")
	put(t, dir, "staged.txt", "in the index\n")
	git(t, dir, "add", "staged.txt")
	put(t, dir, "a.txt", "changed\n")
	put(t, dir, "new file.txt", "unknown to git\n")
	put(t, dir, "x.log", "ignored\n")
	return dir
}

func TestCompareShowsWhatIsCommitted(t *testing.T) {
	t.Parallel()
	dir := branched(t)
	out, failed := compared(t, dir, Comparison{}, nil)
	if failed || !strings.Contains(out, "+in a commit") || strings.Contains(out, "in the index") || strings.Contains(out, "changed") || strings.Contains(out, "unknown") {
		t.Error(out)
	}
}

func TestCompareShowsWhatIsNotCommitted(t *testing.T) {
	t.Parallel()
	dir := branched(t)
	out, failed := compared(t, dir, Comparison{Uncommitted: true}, nil)
	for _, want := range []string{"+in a commit", "+in the index", "+changed", "+unknown to git", "new file mode"} {
		if failed || !strings.Contains(out, want) {
			t.Errorf("%q is missing: %s", want, out)
		}
	}
	if strings.Contains(out, "ignored") {
		t.Error(out)
	}
	if out, _ := compared(t, dir, Comparison{Uncommitted: true, Path: "new file.txt"}, nil); !strings.Contains(out, "unknown to git") || strings.Contains(out, "changed") {
		t.Errorf("only one file: %s", out)
	}
	// What rules keep from being read is not shown, whether git knows it or not.
	out, _ = compared(t, dir, Comparison{Uncommitted: true}, func(name string) bool { return name == "new file.txt" || name == "a.txt" })
	if strings.Contains(out, "unknown to git") || strings.Contains(out, "changed") || !strings.Contains(out, "unasked: 2.") {
		t.Errorf("hidden: %s", out)
	}
}

func TestCompareFindsItsBase(t *testing.T) {
	t.Parallel()
	dir := branched(t)
	if out, failed := compared(t, dir, Comparison{Base: "nowhere"}, nil); !failed || !strings.Contains(out, "no branch nowhere") {
		t.Error(out)
	}
	git(t, dir, "branch", "-q", "-m", "main", "master")
	if out, failed := compared(t, dir, Comparison{}, nil); failed || !strings.Contains(out, "+in a commit") {
		t.Errorf("master: %s", out)
	}
	git(t, dir, "branch", "-q", "-m", "master", "trunk")
	if out, failed := compared(t, dir, Comparison{}, nil); !failed || !strings.Contains(out, "name one as base_branch") {
		t.Errorf("no default branch: %s", out)
	}
	if out, failed := compared(t, dir, Comparison{Base: "trunk"}, nil); failed || !strings.Contains(out, "+in a commit") {
		t.Errorf("trunk: %s", out)
	}
	if out, failed := compared(t, t.TempDir(), Comparison{}, nil); !failed || !strings.Contains(out, "not a git repository") {
		t.Error(out)
	}
}

func TestCompareStaysInTheWorkspace(t *testing.T) {
	t.Parallel()
	outside, dir := branched(t), t.TempDir()
	if err := os.Symlink(outside, filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	for _, folder := range []string{"link", outside, "../" + filepath.Base(outside), "none"} {
		if out, failed := compared(t, dir, Comparison{Folder: folder}, nil); !failed || strings.Contains(out, "in a commit") {
			t.Errorf("%s: %s", folder, out)
		}
	}
	if err := os.Rename(outside, filepath.Join(dir, "inner")); err != nil {
		t.Fatal(err)
	}
	if out, failed := compared(t, dir, Comparison{Folder: "inner", Uncommitted: true}, func(name string) bool { return name == "inner/new file.txt" }); failed || !strings.Contains(out, "in a commit") || strings.Contains(out, "unknown") {
		t.Error(out)
	}
}

func TestManyNewFilesAreCounted(t *testing.T) {
	t.Parallel()
	dir := branched(t)
	for i := range mostNew + 5 {
		put(t, dir, fmt.Sprintf("n%03d", i), "x\n")
	}
	if out, _ := compared(t, dir, Comparison{Uncommitted: true}, nil); !strings.Contains(out, "[6 more new files are not shown]") {
		t.Error(out)
	}
}

// No program that the repository names runs, also for files that git does not know.
func TestCompareRunsNothingOfTheRepository(t *testing.T) {
	t.Parallel()
	dir, proof := branched(t), filepath.Join(t.TempDir(), "ran")
	evil := filepath.Join(t.TempDir(), "evil")
	programtest.Write(t, evil, "#!/bin/sh\necho \"$0 $*\" >> '"+proof+"'\ncat\n")
	for _, key := range []string{"core.fsmonitor", "diff.external", "diff.mine.textconv", "diff.mine.command", "filter.mine.clean", "filter.mine.process"} {
		git(t, dir, "config", key, evil)
	}
	put(t, dir, ".gitattributes", "*.txt diff=mine filter=mine\n")
	if out, failed := compared(t, dir, Comparison{Uncommitted: true}, nil); failed || !strings.Contains(out, "unknown to git") {
		t.Error(out)
	}
	if data, err := os.ReadFile(proof); err == nil {
		t.Errorf("it ran: %s", data)
	}
}
