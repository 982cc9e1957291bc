package gitrepo

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// linked is a person's checkout, and work on a branch that is to be merged into it.
func (f *fixture) linked() (*Repo, Prepared) {
	f.Helper()
	work(KindLink, "link")(f)
	r, err := Link(f.Context(), f.path("link"), f.opt)
	f.must(err)
	f.commit(f.add(r, "t1", "t1/work"), "Work")
	p, err := r.Prepare(f.Context(), request("t1/work"))
	f.must(err)
	return r, p
}

func (f *fixture) status() string { return f.git(f.path("link"), "status", "--porcelain") }

// A clean checkout gets the merge with its files, and looks as if its owner had merged.
func TestMergeIntoACheckout(t *testing.T) {
	t.Parallel()
	f := setup(t)
	r, p := f.linked()
	f.write(f.path("link/notes.txt"), "mine\n") // a new file is not in the way
	f.must(r.Apply(t.Context(), p))
	if f.read(f.path("link/a.txt")) != "two\n" || f.read(f.path("link/new/file.txt")) != "new\n" || exists(f.path("link/gone.txt")) {
		t.Error("the files are not as merged")
	}
	if got := f.status(); got != "?? notes.txt" {
		t.Errorf("status: %q", got)
	}
	if f.git(f.path("link"), "rev-parse", "HEAD") != p.OID {
		t.Error("HEAD is elsewhere")
	}
	f.must(r.Apply(t.Context(), p))
	f.wants(r.PushBranch(t.Context(), "t1/work"), ErrNeverPushed, "type `git -C")
}

// Whatever the person has not committed stays exactly as it is; they get the command to type, and after typing it the merge
// counts as done.
func TestADirtyCheckoutIsLeftAlone(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		change func(*fixture)
		files  []string
	}{
		"a file that the merge changes": {func(f *fixture) { f.write(f.path("link/a.txt"), "mine\n") }, []string{"a.txt"}},
		"another file":                  {func(f *fixture) { f.write(f.path("link/b.txt"), "mine\n") }, []string{"b.txt"}},
		"something staged": {func(f *fixture) {
			f.write(f.path("link/b.txt"), "mine\n")
			f.git(f.path("link"), "add", "b.txt")
		}, []string{"b.txt"}},
		"staged and put back": {func(f *fixture) {
			f.write(f.path("link/a.txt"), "mine\n")
			f.git(f.path("link"), "add", "a.txt")
			f.write(f.path("link/a.txt"), "one\n")
		}, []string{"a.txt"}},
		"a new file in the way":          {func(f *fixture) { f.write(f.path("link/new/file.txt"), "mine\n") }, []string{"new/file.txt"}},
		"a deleted file":                 {func(f *fixture) { _ = os.Remove(f.path("link/a.txt")) }, []string{"a.txt"}},
		"a changed file that is deleted": {func(f *fixture) { f.write(f.path("link/gone.txt"), "mine\n") }, []string{"gone.txt"}},
		"a file made executable":         {func(f *fixture) { _ = os.Chmod(f.path("link/b.txt"), 0o755) }, []string{"b.txt"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := setup(t)
			r, p := f.linked()
			tt.change(f)
			before := f.status()
			e := f.wants(r.Apply(t.Context(), p), ErrDirty, "commit or stash them", "merge t1/work")
			if !slices.Equal(e.Files, tt.files) || e.Command != "git -C "+f.path("link")+" merge t1/work" {
				t.Errorf("%q, %q", e.Files, e.Command)
			}
			if after := f.status(); after != before || f.git(f.path("link"), "rev-parse", "HEAD") != p.Base {
				t.Errorf("before %q, after %q", before, after)
			}
			if left, _ := filepath.Glob(f.path("link/.git/*chorus*")); len(left) > 0 || exists(f.path("link/.git/index.lock")) {
				t.Errorf("left behind: %v", left)
			}
			f.git(f.path("link"), "reset", "-q", "--hard")
			f.git(f.path("link"), "clean", "-q", "-f", "-d")
			f.git(f.path("link"), "merge", "-q", "t1/work")
			if state, err := r.State(t.Context(), p); err != nil || state != Merged {
				t.Errorf("%s, %v", state, err)
			}
		})
	}
}

// A process was killed while git wrote the files: some are as after the merge, and the next one goes on.
func TestSomeFilesAreMergedAlready(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*fixture){
		"changed": func(f *fixture) { f.write(f.path("link/a.txt"), "two\n") },
		"added":   func(f *fixture) { f.write(f.path("link/new/file.txt"), "new\n") },
		"deleted": func(f *fixture) { _ = os.Remove(f.path("link/gone.txt")) },
		"index, not files": func(f *fixture) {
			f.git(f.path("link"), "read-tree", "t1/work")
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := setup(t)
			r, p := f.linked()
			change(f)
			f.must(r.Apply(t.Context(), p))
			if got := f.status(); got != "" || f.read(f.path("link/a.txt")) != "two\n" || f.read(f.path("link/new/file.txt")) != "new\n" || exists(f.path("link/gone.txt")) {
				t.Errorf("status %q", got)
			}
		})
	}
}

// A branch that is not checked out is moved alone; one that another worktree of the person's has is left to them.
func TestMergeIntoAnotherBranchOfACheckout(t *testing.T) {
	t.Parallel()
	f := setup(t)
	r, p := f.linked()
	f.git(f.path("link"), "switch", "-q", "-c", "elsewhere")
	f.git(f.path("link"), "worktree", "add", "-q", f.path("second"), "main")
	e := f.wants(r.Apply(t.Context(), p), ErrDirty, "is checked out at "+f.path("second"))
	if e.Command != "git -C "+f.path("second")+" merge t1/work" {
		t.Error(e.Command)
	}
	f.git(f.path("link"), "worktree", "remove", f.path("second"))
	f.must(r.Apply(t.Context(), p))
	if f.git(f.path("link"), "rev-parse", "main") != p.OID || f.status() != "" || f.read(f.path("link/a.txt")) != "one\n" {
		t.Error("main is not merged, or the checkout was touched")
	}
}

// The person's own git is at work: it is waited for by asking again, and its lock is not taken away.
func TestThePersonsGitIsAtWork(t *testing.T) {
	t.Parallel()
	f := setup(t)
	r, p := f.linked()
	f.write(f.path("link/.git/index.lock"), "")
	f.wants(r.Apply(t.Context(), p), ErrInUse, "if there is none, remove")
	f.read(f.path("link/.git/index.lock"))
	f.must(os.Remove(f.path("link/.git/index.lock")))
	f.must(r.Apply(t.Context(), p))
}
