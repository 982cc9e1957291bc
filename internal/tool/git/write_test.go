package git

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"chorus/internal/permit"
	"chorus/internal/programtest"
	"chorus/internal/sandbox/host"
	"chorus/internal/tool"
)

// place is a workspace with a first commit and a remote.
func place(t *testing.T) (dir, remote string, s *tool.Set) {
	t.Helper()
	need(t)
	home := t.TempDir()
	dir, remote = filepath.Join(home, "work"), filepath.Join(home, "remote.git")
	git(t, home, "init", "-q", dir)
	git(t, home, "init", "-q", "--bare", remote)
	put(t, dir, "a.txt", "one\n")
	put(t, dir, "b.txt", "one\n")
	git(t, dir, "add", ".")
	git(t, dir, "commit", "-q", "-m", "first")
	git(t, dir, "remote", "add", "origin", remote)
	return dir, remote, set(t, dir, host.New(append(os.Environ(), "HOME="+home, "XDG_CONFIG_HOME="+home)), nil)
}

func says(t *testing.T, dir string, args ...string) string {
	t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("git %v: %v\n%s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

func wantText(t *testing.T, res tool.Result, failed bool, words ...string) {
	t.Helper()
	got := res.Blocks.Text()
	if res.Failed != failed {
		t.Errorf("failed is %v: %q", res.Failed, got)
	}
	for _, w := range words {
		if !strings.Contains(got, w) {
			t.Errorf("%q does not say %q", got, w)
		}
	}
}

// An agent commits everything, then some of it, then nothing, and pushes.
func TestCommitAndPush(t *testing.T) {
	t.Parallel()
	dir, remote, s := place(t)
	put(t, dir, "a.txt", "two\n")
	put(t, dir, "ä \"b\"\n.txt", "new\n")
	if err := os.Remove(filepath.Join(dir, "b.txt")); err != nil {
		t.Fatal(err)
	}
	wantText(t, call(t, s, "git_commit", `{"message":"Change a\n\nBecause."}`), false, "Committed 3 files to main as ")
	if got := says(t, dir, "log", "-1", "--format=%an <%ae>|%B"); got != "Chorus <chorus@localhost>|Change a\n\nBecause." {
		t.Errorf("%q", got)
	}
	if got := says(t, dir, "status", "--porcelain"); got != "" {
		t.Errorf("left: %q", got)
	}
	wantText(t, call(t, s, "git_commit", `{"message":"x"}`), false, "Nothing to commit.")
	// Only one path; what a person has staged elsewhere stays staged.
	put(t, dir, "a.txt", "three\n")
	put(t, dir, "c.txt", "person\n")
	git(t, dir, "add", "c.txt")
	put(t, dir, "d.txt", "agent\n")
	wantText(t, call(t, s, "git_commit", `{"message":"Add d","paths":["d.txt"]}`), false, "Committed 1 file to main")
	if got := says(t, dir, "status", "--porcelain"); got != "M a.txt\nA  c.txt" {
		t.Errorf("left: %q", got)
	}
	wantText(t, call(t, s, "git_push", `{}`), false, "Pushed main to origin.")
	wantText(t, call(t, s, "git_push", `{"branch":"main"}`), false, "origin already has main")
	if says(t, remote, "rev-parse", "main") != says(t, dir, "rev-parse", "main") {
		t.Error("the remote does not have it")
	}
	// Somebody else was quicker, and nothing is forced.
	git(t, dir, "push", "-q", "origin", "main~1:refs/heads/other")
	git(t, dir, "checkout", "-q", "-f", "-b", "other", "main~2")
	wantText(t, call(t, s, "git_push", `{}`), true, "git: ", "rejected")
}

func TestCommitAndPushRefuse(t *testing.T) {
	t.Parallel()
	dir, _, s := place(t)
	wantText(t, call(t, s, "git_commit", `{"message":" "}`), true, "The message is empty.")
	wantText(t, call(t, s, "git_commit", `{"message":"x","paths":["../x"]}`), true, "outside of the workspace")
	wantText(t, call(t, s, "git_commit", `{"message":"x","paths":["@docs/x"]}`), true, "not in the workspace's repository")
	wantText(t, call(t, s, "git_push", `{"branch":"--upload-pack=evil"}`), true, "begins with a dash")
	wantText(t, call(t, s, "git_push", `{"branch":"nowhere"}`), true, "There is no branch nowhere.")
	wantText(t, call(t, s, "git_push", `{"remote":"--mirror"}`), true, "is not the name of a remote")
	wantText(t, call(t, s, "git_push", `{"remote":"https://example.invalid/x"}`), true, "is not the name of a remote")
	wantText(t, call(t, s, "git_push", `{"remote":"upstream"}`), true, "There is no remote upstream.")
	git(t, dir, "config", "core.sshCommand", "evil")
	wantText(t, call(t, s, "git_push", `{}`), true, "core.sshcommand", "bash")
	git(t, dir, "config", "--unset", "core.sshCommand")
	git(t, dir, "config", "remote.origin.url", "ext::sh -c touch% ran")
	wantText(t, call(t, s, "git_push", `{}`), true, "not allowed")
	put(t, dir, "a.txt", "two\n")
	git(t, dir, "checkout", "-q", "--detach")
	wantText(t, call(t, s, "git_commit", `{"message":"x"}`), true, "git switch -c NAME")
	wantText(t, call(t, s, "git_push", `{}`), true, "No branch is checked out")
	if _, err := os.Stat(filepath.Join(dir, "ran")); err == nil {
		t.Error("a program ran")
	}
}

// Committing runs nothing that the repository names, neither its own nor a nested one's, and stores nothing that a filter
// should have changed.
func TestCommitRunsNothing(t *testing.T) {
	t.Parallel()
	dir, _, s := place(t)
	proof := filepath.Join(t.TempDir(), "ran")
	for _, hook := range []string{"pre-commit", "commit-msg", "post-commit", "post-index-change", "reference-transaction", "pre-push"} {
		programtest.Write(t, filepath.Join(dir, ".git/hooks", hook), "#!/bin/sh\necho "+hook+" >> '"+proof+"'\n")
	}
	git(t, dir, "config", "gpg.program", "touch "+proof)
	git(t, dir, "config", "commit.gpgSign", "true")
	inner := filepath.Join(dir, "inner")
	git(t, dir, "init", "-q", inner)
	put(t, inner, "b.txt", "one\n")
	git(t, inner, "add", ".")
	git(t, inner, "commit", "-q", "-m", "first")
	git(t, dir, "-c", "core.hooksPath=/dev/null", "add", "inner")
	put(t, inner, ".gitattributes", "*.txt filter=deep\n")
	put(t, inner, "b.txt", "six\n")
	git(t, inner, "config", "filter.deep.clean", "touch "+proof+"; cat")
	git(t, dir, "init", "-q", filepath.Join(dir, "nested"))
	put(t, filepath.Join(dir, "nested"), "x", "x\n")
	put(t, dir, "a.txt", "two\n")
	_ = os.Remove(proof)
	wantText(t, call(t, s, "git_commit", `{"message":"x"}`), false, "Committed 2 files", "separate repositories: nested.")
	if data, err := os.ReadFile(proof); err == nil {
		t.Errorf("ran: %s", data)
	}
	put(t, dir, ".gitattributes", "*.big filter=big\n")
	put(t, dir, "x.big", "large\n")
	git(t, dir, "config", "filter.big.clean", "tr a-z A-Z")
	wantText(t, call(t, s, "git_commit", `{"message":"x"}`), true, "clean filter 'big' failed", "Commit with bash")
}

// Files that rules keep from being read are not committed, also when somebody has staged them.
func TestHiddenFilesAreNotCommitted(t *testing.T) {
	t.Parallel()
	dir, _, s := place(t)
	put(t, dir, ".env", "API=secret\n")
	put(t, dir, "staged.env", "API=secret\n")
	git(t, dir, "add", "staged.env")
	put(t, dir, "a.txt", "two\n")
	g, args, err := s.Resolve("git_commit", []byte(`{"message":"x"}`))
	if err != nil {
		t.Fatal(err)
	}
	res, err := g.Run(tool.WithCall(t.Context(), tool.Call{ID: "c1", Hides: func(path string) bool { return strings.HasSuffix(path, ".env") }}), args)
	if err != nil {
		t.Fatal(err)
	}
	wantText(t, res, false, "Committed 1 file", "unasked: 2.")
	if got := says(t, dir, "ls-tree", "--name-only", "HEAD"); got != "a.txt\nb.txt" {
		t.Errorf("%q", got)
	}
}

// Under the standard profile a commit goes through and a push is asked; the guarded one denies pushes.
func TestCommitAndPushAreJudged(t *testing.T) {
	t.Parallel()
	s := set(t, t.TempDir(), nil, nil)
	for _, tt := range []struct {
		name, args, action string
		standard, guarded  permit.Verdict
	}{
		{"git_commit", `{"message":"x; rm -rf /"}`, "tool:git:commit", permit.Allow, permit.Allow},
		{"git_commit", `{"message":"x","paths":["src/a.go","b c"]}`, "tool:git:commit -- src/a.go 'b c'", permit.Allow, permit.Allow},
		{"git_commit", `{"message":"x","paths":["/etc/passwd"]}`, "tool:git:commit -- /etc/passwd", permit.Ask, permit.Allow},
		{"git_push", `{}`, "tool:git:push origin HEAD", permit.Ask, permit.Deny},
		{"git_push", `{"remote":"up stream","branch":"x"}`, "tool:git:push 'up stream' x", permit.Ask, permit.Deny},
	} {
		g, args, err := s.Resolve(tt.name, []byte(tt.args))
		if err != nil {
			t.Fatal(err)
		}
		touched := g.Access(args)
		if len(touched) != 1 || touched[0].Action() != tt.action {
			t.Errorf("%s %s: %v", tt.name, tt.args, touched)
			continue
		}
		for name, want := range map[string]permit.Verdict{"standard": tt.standard, "guarded": tt.guarded} {
			profile, err := permit.Preset(name)
			if err != nil {
				t.Fatal(err)
			}
			if d := profile.Judge([]permit.Request{{Tool: touched[0].Tool, Detail: touched[0].Detail}}, permit.JudgeOptions{}); d.Verdict != want {
				t.Errorf("%s: %s is %s, want %s", name, tt.action, d.Verdict, want)
			}
		}
	}
}
