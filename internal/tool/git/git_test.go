package git

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"chorus/internal/programtest"
	"chorus/internal/sandbox"
	"chorus/internal/sandbox/host"
	"chorus/internal/tool"
	"chorus/internal/tool/files"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func need(t *testing.T) {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal("git is needed")
		}
		t.Skip("SKIPPED: git is not installed")
	}
}

func set(t *testing.T, dir string, run sandbox.Executor, keep tool.Keep) *tool.Set {
	t.Helper()
	roots, err := files.NewRoots(dir, files.Root{Name: "docs", Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = roots.Close() })
	s, err := tool.NewSet(Tools(run, roots, keep)...)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func call(t *testing.T, s *tool.Set, name, args string) tool.Result {
	t.Helper()
	g, corrected, err := s.Resolve(name, []byte(args))
	if err != nil {
		return tool.Fail(err.Error())
	}
	res, err := g.Run(tool.WithCall(t.Context(), tool.Call{ID: "c1"}), corrected)
	if err != nil {
		t.Fatal(err)
	}
	return res
}

func git(t *testing.T, dir string, args ...string) {
	t.Helper()
	cmd := exec.Command("git", append([]string{"-c", "user.name=Test", "-c", "user.email=test@example.invalid", "-c", "init.defaultBranch=main", "-c", "commit.gpgSign=false"}, args...)...)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("git %v: %v\n%s", args, err, out)
	}
}

func put(t *testing.T, dir, name, content string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestStatusAndDiff(t *testing.T) {
	t.Parallel()
	need(t)
	dir := t.TempDir()
	s := set(t, dir, host.New(os.Environ()), nil)
	want := func(name, args, text string, failed bool) {
		t.Helper()
		res := call(t, s, name, args)
		if got := res.Blocks.Text(); got != text || res.Failed != failed {
			t.Errorf("%s %s: %q failed=%v, want %q", name, args, got, res.Failed, text)
		}
	}
	want("git_status", `{}`, "The workspace is not a git repository.", true)
	want("GitDiff", `{}`, "The workspace is not a git repository.", true)
	git(t, dir, "init", "-q")
	put(t, dir, "a.txt", "one\n")
	put(t, dir, "ä b.txt", "x\n")
	git(t, dir, "add", ".")
	git(t, dir, "commit", "-q", "-m", "first")
	want("GitStatus", `{}`, "## main\nnothing to commit, working tree clean", false)
	want("git_diff", `{}`, "No changes.", false)
	put(t, dir, "a.txt", "two\n")
	put(t, dir, "ä b.txt", "y\n")
	put(t, dir, "new", "n\n")
	git(t, dir, "add", "ä b.txt")
	want("git_status", `{}`, "## main\n M a.txt\nM  \"ä b.txt\"\n?? new", false)
	if text := call(t, s, "git_diff", `{}`).Blocks.Text(); !strings.Contains(text, "-one\n+two") || strings.Contains(text, "ä b.txt") {
		t.Errorf("diff %q", text)
	}
	if text := call(t, s, "GitDiff", `{"staged":true,"file":"ä b.txt"}`).Blocks.Text(); !strings.HasSuffix(text, "-x\n+y") {
		t.Errorf("staged %q", text)
	}
	want("git_diff", `{"path":"new"}`, "No changes.", false)
	want("git_diff", `{"path":"*.txt"}`, "No changes.", false) // a name, not a pattern
	want("git_diff", `{"path":"../x"}`, "../x is outside of the workspace. Only paths in the workspace and in @docs can be used.", true)
	want("git_diff", `{"path":"@docs/x"}`, "@docs/x is not in the workspace's repository.", true)
}

func TestAccess(t *testing.T) {
	t.Parallel()
	s := set(t, t.TempDir(), nil, nil)
	for _, tt := range []struct{ name, args, want string }{
		{"git_status", `{}`, "tool:git:status"},
		{"git_diff", `{}`, "tool:git:diff"},
		{"GitDiff", `{"staged":true,"file":"a/../b"}`, "tool:git:diff --staged -- b"},
	} {
		g, args, err := s.Resolve(tt.name, []byte(tt.args))
		if err != nil {
			t.Fatal(err)
		}
		if got := g.Access(args); len(got) != 1 || got[0].Action() != tt.want {
			t.Errorf("%s %s: %v", tt.name, tt.args, got)
		}
	}
}

// TestNothingOfTheRepositoryRuns puts a program everywhere a repository can name
// one, and looks whether it ran.
func TestNothingOfTheRepositoryRuns(t *testing.T) {
	t.Parallel()
	need(t)
	dir, proof := t.TempDir(), filepath.Join(t.TempDir(), "ran")
	evil := filepath.Join(t.TempDir(), "evil")
	programtest.Write(t, evil, "#!/bin/sh\necho \"$0 $*\" >> '"+proof+"'\ncat\n")
	git(t, dir, "init", "-q")
	put(t, dir, "a.txt", "one\n")
	git(t, dir, "add", ".")
	git(t, dir, "commit", "-q", "-m", "first")
	for _, key := range []string{
		"core.fsmonitor", "diff.external", "diff.mine.textconv", "diff.mine.command", "filter.mine.clean", "filter.mine.smudge",
		"filter.mine.process", "filter.Other One.clean", "core.pager", "pager.status", "pager.diff", "core.hooksPath", "core.sshCommand", "core.editor",
	} {
		git(t, dir, "config", key, evil)
	}
	git(t, dir, "config", "filter.mine.required", "true")
	put(t, dir, ".gitattributes", "*.txt diff=mine filter=mine\n*.md filter=Other\\ One\n")
	put(t, dir, "a.txt", "two\n")
	// A repository inside, which git looks into by itself, with settings of its own.
	inner := filepath.Join(dir, "inner")
	if err := os.Mkdir(inner, 0o755); err != nil {
		t.Fatal(err)
	}
	git(t, inner, "init", "-q")
	put(t, inner, "b.txt", "one\n")
	put(t, inner, ".gitattributes", "*.txt filter=deep\n")
	git(t, inner, "add", ".")
	git(t, inner, "commit", "-q", "-m", "first")
	put(t, inner, "b.txt", "six\n") // as long as before, so that git must look
	git(t, dir, "-c", "core.fsmonitor=", "-c", "filter.mine.required=false", "-c", "filter.mine.clean=", "-c", "filter.mine.process=", "add", "inner")
	git(t, inner, "config", "filter.deep.clean", evil)
	_ = os.Remove(proof) // whatever ran until now was ours
	s := set(t, dir, host.New(os.Environ()), nil)
	if out, err := Summary(t.Context(), host.New(os.Environ()), dir); err != nil || !strings.Contains(out, "a.txt | 2 +-") {
		t.Errorf("summary: %q, %v", out, err)
	}
	for _, c := range [][2]string{{"git_status", `{}`}, {"git_diff", `{}`}, {"git_diff", `{"staged":true}`}} {
		if res := call(t, s, c[0], c[1]); res.Failed {
			t.Errorf("%s: %s", c[0], res.Blocks.Text())
		}
	}
	if data, err := os.ReadFile(proof); err == nil {
		t.Errorf("the repository's program ran:\n%s", data)
	}
	if text := call(t, s, "git_diff", `{}`).Blocks.Text(); !strings.Contains(text, "+two") {
		t.Errorf("diff %q", text)
	}
}

func TestLongDiffIsKept(t *testing.T) {
	t.Parallel()
	need(t)
	dir := t.TempDir()
	git(t, dir, "init", "-q")
	put(t, dir, "a", "")
	git(t, dir, "add", ".")
	git(t, dir, "commit", "-q", "-m", "first")
	put(t, dir, "a", strings.Repeat("line\n", 3000))
	s := set(t, dir, host.New(os.Environ()), func(context.Context, string, string) (string, error) { return "@outputs/c1.txt", nil })
	text := call(t, s, "git_diff", `{}`).Blocks.Text()
	if !strings.HasSuffix(text, "of 3005. Full output: @outputs/c1.txt]") || !strings.HasPrefix(text, "diff --git a/a b/a") {
		t.Errorf("%.60q … %q", text, text[len(text)-80:])
	}
}

func TestNoGit(t *testing.T) {
	t.Parallel()
	s := set(t, t.TempDir(), missing{}, nil)
	res := call(t, s, "git_status", `{}`)
	if !res.Failed || !strings.HasPrefix(res.Blocks.Text(), "git could not be started: ") {
		t.Errorf("%+v", res)
	}
}

// missing is a machine without git.
type missing struct{}

func (missing) Run(context.Context, sandbox.Command) (sandbox.Result, error) {
	return sandbox.Result{}, exec.ErrNotFound
}
func (missing) Reap(context.Context, string) (int, error) { return 0, nil }
func (missing) Name() string                              { return "missing" }

// Changes of files that rules keep from being read are not shown.
func TestHiddenFilesAreNotShown(t *testing.T) {
	t.Parallel()
	need(t)
	dir := t.TempDir()
	git(t, dir, "init", "-q")
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write(".env", "API=old\n")
	write("a.txt", "old\n")
	git(t, dir, "add", ".")
	git(t, dir, "-c", "user.name=a", "-c", "user.email=a@example.org", "commit", "-qm", "x")
	write(".env", "API=secret\n")
	write("a.txt", "new\n")
	s := set(t, dir, host.New(os.Environ()), nil)
	show := func(args string, hides func(string) bool) string {
		t.Helper()
		diff, corrected, err := s.Resolve("git_diff", []byte(args))
		if err != nil {
			t.Fatal(err)
		}
		res, err := diff.Run(tool.WithCall(t.Context(), tool.Call{ID: "c1", Hides: hides}), corrected)
		if err != nil {
			t.Fatal(err)
		}
		return res.Blocks.Text()
	}
	env := func(path string) bool { return path == ".env" }
	if got := show(`{}`, env); strings.Contains(got, "secret") || !strings.Contains(got, "+new") || !strings.Contains(got, "unasked: 1.") {
		t.Error(got)
	}
	if got := show(`{"path":".env"}`, env); strings.Contains(got, "secret") {
		t.Error(got)
	}
	if got := show(`{}`, func(string) bool { return false }); !strings.Contains(got, "secret") || strings.Contains(got, "Left out") {
		t.Error(got)
	}
}
