package gitrepo

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"chorus/internal/polltest"
	"chorus/internal/programtest"
)

// TestNothingOfTheRepositoryRuns puts a program everywhere a repository can name one, does everything, and looks whether it ran.
func TestNothingOfTheRepositoryRuns(t *testing.T) {
	t.Parallel()
	f := setup(t)
	ctx := t.Context()
	dir := f.checkout("link")
	proof, evil := f.path("ran"), f.path("evil")
	programtest.Write(t, evil, "#!/bin/sh\necho \"$0 $*\" >> '"+proof+"'\ncat\n")
	for _, hook := range []string{"pre-commit", "commit-msg", "prepare-commit-msg", "post-commit", "post-checkout", "pre-merge-commit", "post-merge", "reference-transaction", "post-index-change", "pre-auto-gc", "pre-push"} {
		programtest.Write(t, filepath.Join(dir, ".git/hooks", hook), "#!/bin/sh\necho "+hook+" >> '"+proof+"'\n")
	}
	for _, key := range []string{
		"core.fsmonitor", "diff.external", "diff.mine.textconv", "diff.mine.command", "core.pager", "pager.log", "core.sshCommand", "core.editor", "core.askPass",
		"gpg.program", "credential.helper", "core.alternateRefsCommand", "merge.mine.driver", "sequence.editor", "interactive.diffFilter", "core.gitProxy", "filter.a=b.process",
	} {
		f.git(dir, "config", key, evil)
	}
	f.git(dir, "config", "commit.gpgSign", "true")
	f.git(dir, "config", "log.showSignature", "true")
	_ = os.Remove(proof)
	r, err := Link(ctx, dir, f.opt)
	f.must(err)
	tree := f.add(r, "t1", "t1/work")
	f.write(tree.Path()+"/.gitattributes", "*.txt diff=mine merge=mine\n")
	f.write(tree.Path()+"/a.txt", "two\n")
	// A repository inside, with a filter of its own that git would run when it looks into it.
	inner := tree.Path() + "/inner"
	f.git(f.dir, "init", "-q", inner)
	f.write(inner+"/b.txt", "one\n")
	f.write(inner+"/.gitattributes", "*.txt filter=deep\n")
	f.git(inner, "add", ".")
	f.git(inner, "commit", "-q", "-m", "first")
	f.write(inner+"/b.txt", "six\n")
	f.git(inner, "config", "filter.deep.clean", evil)
	_ = os.Remove(proof) // what ran until now was the person's own git
	done := f.commit(tree, "Change a")
	if !done.Made || !slices.Equal(done.Skipped, []string{"inner"}) {
		t.Errorf("%+v", done)
	}
	own, err := r.Tree(r.Dir())
	f.must(err)
	for _, tr := range []*Tree{own, tree} {
		_, err := tr.Status(ctx)
		f.must(err)
		_, err = tr.Diff(ctx, "main", 1000)
		f.must(err)
	}
	_, err = r.Diff(ctx, "main", "t1/work", 1000)
	f.must(err)
	_, err = r.Log(ctx, "t1/work", 5)
	f.must(err)
	p, err := r.Prepare(ctx, request("t1/work"))
	f.must(err)
	f.must(r.Apply(ctx, p))
	_, err = own.CreateBranch(ctx, "x")
	f.must(err)
	f.write(own.Path()+"/a.txt", "three\n")
	f.commit(own, "x")
	_, err = own.Checkout(ctx, "main")
	f.must(err)
	f.write(own.Path()+"/b.txt", "three\n")
	f.commit(own, "b")
	f.must(tree.Remove(ctx))
	if data, err := os.ReadFile(proof); err == nil {
		t.Errorf("the repository's programs ran:\n%s", data)
	}
}

// A submodule of a task's tree, with a filter that the agent configured in it, is committed without looking into it.
func TestASubmoduleIsNotLookedInto(t *testing.T) {
	t.Parallel()
	f := setup(t)
	r := f.own()
	tree := f.add(r, "t1", "t1/work")
	inner := tree.Path() + "/inner"
	f.git(f.dir, "init", "-q", inner)
	f.write(inner+"/b.txt", "one\n")
	f.git(inner, "add", ".")
	f.git(inner, "commit", "-q", "-m", "first")
	f.git(tree.Path(), "add", "inner")
	f.write(inner+"/.gitattributes", "*.txt filter=deep\n")
	f.write(inner+"/b.txt", "six\n")
	f.git(inner, "config", "filter.deep.clean", "touch "+f.path("ran")+"; cat")
	f.write(tree.Path()+"/x", "x\n")
	if done := f.commit(tree, "x"); !done.Made {
		t.Errorf("%+v", done)
	}
	if _, err := tree.Status(t.Context()); err != nil {
		t.Error(err)
	}
	if _, err := tree.Diff(t.Context(), "", 1000); err != nil {
		t.Error(err)
	}
	if exists(f.path("ran")) {
		t.Error("the submodule's filter ran")
	}
}

// A filter that the repository itself names is not run, and nothing is stored that it should have changed; one of the user's
// own settings works.
func TestFilters(t *testing.T) {
	t.Parallel()
	f := setup(t)
	ctx := t.Context()
	r, err := Link(ctx, f.checkout("link"), f.opt)
	f.must(err)
	tree := f.add(r, "t1", "t1/work")
	f.write(tree.Path()+"/.gitattributes", "*.big filter=big\n")
	f.write(tree.Path()+"/x.big", "large\n")
	f.git(r.Dir(), "config", "filter.big.clean", "tr a-z A-Z")
	_, err = tree.Commit(ctx, Commit{Message: "x", At: noon})
	f.wants(err, ErrFilter, "does not run", "git lfs install")
	if _, err := tree.Diff(ctx, "", 100); err != nil {
		t.Error(err)
	}
	f.git(r.Dir(), "config", "--unset", "filter.big.clean")
	f.git(f.dir, "config", "--global", "filter.big.clean", "tr a-z A-Z")
	f.commit(tree, "x")
	if got := f.git(r.Dir(), "show", "t1/work:x.big"); got != "LARGE" {
		t.Errorf("%q", got)
	}
}

// A merge driver of the repository is not run: what it should decide is a conflict.
func TestMergeDriver(t *testing.T) {
	t.Parallel()
	f := setup(t)
	ctx := t.Context()
	dir := f.checkout("link")
	f.write(dir+"/.gitattributes", "a.txt merge=mine\n")
	f.git(dir, "add", ".")
	f.git(dir, "commit", "-q", "-m", "attributes")
	r, err := Link(ctx, dir, f.opt)
	f.must(err)
	tree := f.add(r, "t1", "t1/work")
	f.write(tree.Path()+"/a.txt", "two\n")
	f.commit(tree, "two")
	f.write(dir+"/a.txt", "three\n")
	f.git(dir, "commit", "-q", "-a", "-m", "three")
	f.git(dir, "config", "merge.mine.driver", "touch "+f.path("ran"))
	_, err = r.Prepare(ctx, request("t1/work"))
	f.wants(err, ErrConflict, "a.txt")
	if exists(f.path("ran")) {
		t.Error("the driver ran")
	}
}

// Urls that start programs, and paths without leave, never reach git.
func TestHostileURLs(t *testing.T) {
	t.Parallel()
	f := setup(t)
	for _, url := range []string{"ext::sh -c touch% " + f.path("ran"), "--upload-pack=touch " + f.path("ran"), "ssh://-oProxyCommand=touch%20" + f.path("ran") + "/x"} {
		_, err := Clone(t.Context(), url, f.path("c"), f.opt)
		f.wants(err, ErrBadURL)
	}
	opt := f.opt
	opt.LocalURLs = false
	_, err := Clone(t.Context(), f.remote(), f.path("c"), opt)
	f.wants(err, ErrBadURL, "only by its owner")
	// Also where the settings of the user would rewrite an innocent one.
	f.git(f.dir, "config", "--global", "url.ext::sh -c touch% "+f.path("ran")+" .insteadOf", "https://example.invalid/")
	_, err = Clone(t.Context(), "https://example.invalid/x", f.path("c"), f.opt)
	f.wants(err, ErrBadURL, "not allowed")
	if exists(f.path("ran")) || exists(f.path("c")) {
		t.Error("a program ran, or something is left")
	}
}

// A git that hangs is killed with everything it started, on cancel and at the deadline.
func TestAGitThatHangs(t *testing.T) {
	t.Parallel()
	f := setup(t)
	r := f.own()
	hanging := f.path("hanging")
	programtest.Write(t, hanging, "#!/bin/sh\nsleep 1000 &\necho $! > '"+f.path("pid.part")+"'\nmv '"+f.path("pid.part")+"' '"+f.path("pid")+"'\nwait\n")
	gone := func() bool {
		data, err := os.ReadFile(f.path("pid"))
		if err != nil {
			return false
		}
		pid, _ := strconv.Atoi(strings.TrimSpace(string(data)))
		stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
		return err != nil || strings.Contains(string(stat), ") Z ")
	}
	r.opt.Git = hanging
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("the task was stopped")
	go func() {
		polltest.Soon(func() bool { return exists(f.path("pid")) })
		cancel(why)
	}()
	if _, err := r.Log(ctx, "main", 1); !errors.Is(err, why) {
		t.Errorf("%v", err)
	}
	polltest.Until(t, "what git started is dead", gone)
	f.must(os.Remove(f.path("pid")))
	r.opt.Local = 500 * time.Millisecond
	_, err := r.refs(t.Context())
	f.wants(err, ErrTimeout, "did not end within 500ms")
	if exists(f.path("pid")) {
		polltest.Until(t, "what git started is dead", gone)
	}
}

// A git that is not there, one that writes without end, and one that says something nobody knows.
func TestOddGits(t *testing.T) {
	t.Parallel()
	f := setup(t)
	r := f.own()
	r.opt.Git = f.path("no-git")
	_, err := r.refs(t.Context())
	f.wants(err, ErrNoProgram, "install git 2.38 or newer")
	r.opt.Git = f.path("endless")
	programtest.Write(t, r.opt.Git, "#!/bin/sh\nexec yes\n")
	_, err = r.refs(t.Context())
	f.wants(err, ErrTooMuch)
	r.opt.Git = f.path("odd")
	programtest.Write(t, r.opt.Git, "#!/bin/sh\nprintf 'fatal: the moon\\n\\033[31mis full' >&2\nexit 3\n")
	_, err = r.refs(t.Context())
	if err == nil || err.Error() != "git for-each-ref failed: fatal: the moon �[31mis full" && !strings.HasSuffix(err.Error(), "for-each-ref failed: fatal: the moon �[31mis full") {
		t.Errorf("%v", err)
	}
	r.opt.Git = f.path("old")
	programtest.Write(t, r.opt.Git, "#!/bin/sh\ncase \"$*\" in *merge-tree*) echo 'usage: git merge-tree <base-tree> <branch1> <branch2>' >&2; exit 129;; esac\nexec git \"$@\"\n")
	tree := f.add(r, "t1", "t1/work")
	f.write(tree.Path()+"/x", "x\n")
	f.commit(tree, "x")
	_, err = r.Prepare(t.Context(), request("t1/work"))
	f.wants(err, ErrTooOld, "2.38")
}

// Variables of a git that started this program do not lead ours elsewhere, and secrets of the server stay here.
func TestEnvironment(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.opt.Environ = append(f.opt.Environ, "GIT_DIR=/nowhere", "GIT_INDEX_FILE=/nowhere", "GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=core.hooksPath", "GIT_CONFIG_VALUE_0=/evil", "ANTHROPIC_API_KEY=secret", "GIT_SSH_COMMAND=ssh -i key")
	r := newRunner(f.opt)
	for _, entry := range r.env {
		if strings.HasPrefix(entry, "GIT_DIR=") || strings.HasPrefix(entry, "GIT_INDEX_FILE=") || strings.HasPrefix(entry, "GIT_CONFIG_COUNT") || strings.Contains(entry, "secret") {
			t.Errorf("%s is passed on", entry)
		}
	}
	if !slices.Contains(r.env, "GIT_TERMINAL_PROMPT=0") {
		t.Error("git would ask")
	}
	f.own()
	// ssh is the user's, by variable or by setting, and never asks; the repository's own setting does not count.
	if got := r.sshCommand(t.Context()); got != "GIT_SSH_COMMAND=ssh -i key -oBatchMode=yes" {
		t.Error(got)
	}
	r.ssh = ""
	if got := r.sshCommand(t.Context()); got != "GIT_SSH_COMMAND=ssh -oBatchMode=yes" {
		t.Error(got)
	}
	f.git(f.dir, "config", "--global", "core.sshCommand", "ssh -i mine")
	if got := r.sshCommand(t.Context()); got != "GIT_SSH_COMMAND=ssh -i mine -oBatchMode=yes" {
		t.Error(got)
	}
}
