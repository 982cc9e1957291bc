package gitrepo

import (
	"os"
	"testing"

	"chorus/internal/sandbox"
	"chorus/internal/sandbox/bwrap"
)

// sandboxInit is the process 1 of the sandbox, if this is it.
func sandboxInit() {
	if len(os.Args) > 1 && os.Args[1] == bwrap.InitArg {
		bwrap.Init()
	}
}

// In a sandbox that shows what Grant says, an agent works with git as usual on its own branch, and can change nothing else of the
// repository.
func TestAnAgentInItsSandbox(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.remote()
	r := f.clone()
	self, err := os.Executable()
	f.must(err)
	box := bwrap.New(bwrap.Options{Environ: f.opt.Environ, Init: self})
	t.Cleanup(box.Close)
	if err := box.Probe(t.Context()); err != nil {
		t.Skip("SKIPPED: bubblewrap does not work here: ", err)
	}
	tree := f.add(r, "t1", "t1/work")
	readable, writable, err := tree.Grant("t1/work")
	f.must(err)
	roots := []sandbox.Root{{Path: tree.Path(), Writable: true}}
	for _, path := range readable {
		roots = append(roots, sandbox.Root{Path: path})
	}
	for _, path := range writable {
		roots = append(roots, sandbox.Root{Path: path, Writable: true})
	}
	run := func(command string) (string, bool) {
		t.Helper()
		res, err := box.Run(t.Context(), sandbox.Command{Shell: "export GIT_AUTHOR_NAME=A GIT_AUTHOR_EMAIL=a@x GIT_COMMITTER_NAME=A GIT_COMMITTER_EMAIL=a@x; " + command, Dir: tree.Path(), Roots: roots, Merge: true})
		f.must(err)
		return res.Output, res.ExitCode == 0
	}
	for _, command := range []string{
		"echo x > x && git add x && git commit -qm x", "git commit -q --amend -m y", "echo z > z && git add . && git commit -qm z && git rebase -q HEAD~1", "git log --oneline && git status --short", "git reset -q --hard HEAD~1",
	} {
		if out, ok := run(command); !ok {
			t.Errorf("%s: %s", command, out)
		}
	}
	for _, command := range []string{
		"git update-ref refs/remotes/origin/main HEAD", "git branch other", "git config core.fsmonitor evil", "echo evil > \"$(git rev-parse --git-common-dir)/hooks/pre-commit\"", "git push -q origin HEAD:main",
	} {
		if out, ok := run(command); ok {
			t.Errorf("%s went through: %s", command, out)
		}
	}
	if got := f.git(r.Dir(), "log", "-1", "--format=%s", "t1/work"); got != "y" {
		t.Errorf("the branch is at %q", got)
	}
	f.write(tree.Path()+"/left", "left\n")
	if done := f.commit(tree, "Left"); !done.Made {
		t.Errorf("%+v", done)
	}
	_, _, err = tree.Grant("main")
	f.wants(err, ErrBadName)
}
