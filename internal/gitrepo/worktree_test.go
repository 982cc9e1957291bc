package gitrepo

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

func (f *fixture) own() *Repo {
	f.Helper()
	r, err := Init(f.Context(), f.path("own"), "main", agent, noon, f.opt)
	f.must(err)
	return r
}

// A task that is taken up again finds its tree as it left it, also what it had not committed.
func TestATreeIsTakenUpAgain(t *testing.T) {
	t.Parallel()
	f := setup(t)
	r := f.own()
	tree := f.add(r, "t1", "t1/work")
	f.write(tree.Path()+"/half.txt", "half\n")
	for _, lock := range []string{tree.gitDir + "/index.lock", tree.gitDir + "/HEAD.lock", f.path("own/refs/heads/t1/work.lock")} {
		f.write(lock, "") // the agent's git was killed
	}
	tree.Close()
	tree = f.add(r, "t1", "t1/work")
	if f.read(tree.Path()+"/half.txt") != "half\n" {
		t.Error("the work is gone")
	}
	if done := f.commit(tree, "Half"); !done.Made {
		t.Errorf("%+v", done)
	}
	// Its folder is deleted by somebody: the branch has what was committed.
	tree.Close()
	f.must(os.RemoveAll(tree.Path()))
	if f.read(f.add(r, "t1", "t1/work").Path()+"/half.txt") != "half\n" {
		t.Error("the commit is gone")
	}
}

// A tree that git had not finished, because it was killed, is made anew; what looks like deleted files is never committed.
func TestAnUnfinishedTreeIsMadeAnew(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.remote()
	r := f.clone()
	for name, spoil := range map[string]func(*Tree){
		"locked":          func(tree *Tree) { f.write(tree.gitDir+"/locked", "initializing") },
		"without index":   func(tree *Tree) { f.must(os.Remove(tree.gitDir + "/index")) },
		"without gitdir":  func(tree *Tree) { f.must(os.Remove(tree.gitDir + "/gitdir")) },
		"without a tree":  func(tree *Tree) { f.must(os.RemoveAll(tree.Path())) },
		"without git dir": func(tree *Tree) { f.must(os.RemoveAll(tree.gitDir)); f.must(os.RemoveAll(tree.Path())) },
	} {
		id := strings.ReplaceAll(name, " ", "-")
		tree := f.add(r, id, id+"/work")
		tree.Close()
		_ = os.Remove(tree.Path() + "/a.txt")
		spoil(tree)
		tree = f.add(r, id, id+"/work")
		if done := f.commit(tree, "Nothing"); done.Made || f.read(tree.Path()+"/a.txt") != "one\n" {
			t.Errorf("%s: %+v", name, done)
		}
	}
}

// Two tasks never get the same tree, nor the same branch.
func TestTwoTasksNeverShareATree(t *testing.T) {
	t.Parallel()
	f := setup(t)
	r := f.own()
	var got atomic.Int32
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			tree, err := r.Add(t.Context(), f.path("trees/t1"), "t1/work", "main")
			if err == nil {
				got.Add(1)
				t.Cleanup(tree.Close)
			} else if !errors.Is(err, ErrInUse) {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if got.Load() != 1 {
		t.Errorf("%d have it", got.Load())
	}
	_, err := r.Add(t.Context(), f.path("trees/t2"), "t1/work", "main")
	f.wants(err, ErrInUse, "another worktree")
	_, err = r.Add(t.Context(), f.path("others/t1"), "t3/work", "main")
	f.wants(err, ErrInUse, "choose another name")
	f.wants(r.Remove(t.Context(), f.path("trees/t1")), ErrInUse, "is in use")
	f.wants(r.DeleteBranch(t.Context(), "t1/work"), ErrInUse, "remove that worktree first")
	// Many at once, each its own.
	for i := range 6 {
		all.Go(func() {
			id := "n" + string(rune('0'+i))
			tree, err := r.Add(t.Context(), f.path("trees/"+id), id+"/work", "main")
			if err != nil {
				t.Error(err)
				return
			}
			tree.Close()
		})
	}
	all.Wait()
	list, err := r.List(t.Context())
	if err != nil || len(list) != 7 {
		t.Errorf("%v, %v", list, err)
	}
}

func TestTreesThatAreSomethingElse(t *testing.T) {
	t.Parallel()
	f := setup(t)
	r := f.own()
	ctx := t.Context()
	f.write(f.path("trees/mine/x"), "x")
	_, err := r.Add(ctx, f.path("trees/mine"), "t/x", "main")
	f.wants(err, ErrExists, "is not a worktree")
	f.wants(r.Remove(ctx, f.path("trees/mine")), ErrExists)
	f.read(f.path("trees/mine/x"))
	for _, path := range []string{"relative", f.path("trees/a\nb"), f.path("trees/-x"), f.path("trees/.x"), f.path("trees/x.lock"), f.path("own/objects"), f.path("trees") + "/../x", f.path("own")} {
		_, err := r.Add(ctx, path, "t/x", "main")
		f.wants(err, ErrBadName)
	}
	_, err = r.Add(ctx, f.path("trees/t1"), "--upload-pack=evil", "main")
	f.wants(err, ErrBadName, "dash")
	_, err = r.Add(ctx, f.path("trees/t1"), "t1/x", "--force")
	f.wants(err, ErrBadName)
	_, err = r.Add(ctx, f.path("trees/t1"), "t1/x", "nowhere")
	f.wants(err, ErrNoSuchBranch, "no branch nowhere")
	if exists(f.path("trees/t1")) || exists(f.path("trees/t1.lock")) {
		t.Error("something is left of a tree that was not made")
	}
	_, err = r.Tree(f.path("trees/t1"))
	f.wants(err, ErrNoCheckout)
	f.must(r.Remove(ctx, f.path("trees/t1")))
}

// What an agent can write in its tree does not make git do something elsewhere.
func TestAnAgentDoesNotLeadGitAstray(t *testing.T) {
	t.Parallel()
	f := setup(t)
	r := f.own()
	ctx := t.Context()
	main := f.git(r.Dir(), "rev-parse", "main")
	commit := func(tree *Tree) error {
		_, err := tree.Commit(ctx, Commit{Branch: "t1/work", Message: "x", At: noon})
		return err
	}
	fresh := func() *Tree {
		f.must(r.Remove(ctx, f.path("trees/t1")))
		tree := f.add(r, "t1", "t1/work")
		f.write(tree.Path()+"/x", "x\n")
		return tree
	}
	// HEAD, or the branch itself, points to main.
	tree := fresh()
	f.write(tree.gitDir+"/HEAD", "ref: refs/heads/main\n")
	f.wants(commit(tree), ErrWrongBranch, "main is checked out")
	tree.Close()
	tree = fresh()
	f.write(filepath.Join(r.Dir(), "refs/heads/t1/work"), "ref: refs/heads/main\n")
	f.wants(commit(tree), ErrWrongBranch)
	tree.Close()
	f.must(r.Remove(ctx, tree.Path()))
	f.must(r.DeleteBranch(ctx, "t1/work"))
	if got := f.git(r.Dir(), "rev-parse", "main"); got != main {
		t.Error("main was moved")
	}
	// A log is a link to a file of the user's.
	f.write(f.path("profile"), "")
	tree = fresh()
	f.must(os.MkdirAll(tree.gitDir+"/logs", 0o755))
	f.must(errors.Join(os.RemoveAll(tree.gitDir+"/logs/HEAD"), os.Symlink(f.path("profile"), tree.gitDir+"/logs/HEAD")))
	f.wants(commit(tree), ErrTampered, "begin the task again")
	tree.Close()
	tree = fresh()
	log := filepath.Join(r.Dir(), "logs/refs/heads/t1/work")
	f.must(errors.Join(os.MkdirAll(filepath.Dir(log), 0o755), os.RemoveAll(log), os.Symlink(f.path("profile"), log)))
	f.wants(commit(tree), ErrTampered)
	f.must(os.Remove(log))
	tree.Close()
	if f.read(f.path("profile")) != "" {
		t.Error("git wrote to the user's file")
	}
	// The tree, and git's folder of it, name another repository with settings that start programs.
	tree = fresh()
	evil := f.path("evil")
	f.git(f.dir, "init", "-q", evil)
	f.git(evil, "config", "core.fsmonitor", "touch "+f.path("ran"))
	f.git(evil, "config", "filter.x.clean", "touch "+f.path("ran"))
	f.write(tree.Path()+"/.gitattributes", "* filter=x\n")
	f.write(tree.Path()+"/.git", "gitdir: "+evil+"/.git\n")
	f.write(tree.gitDir+"/commondir", evil+"/.git\n")
	f.must(commit(tree))
	if _, err := tree.Status(ctx); err != nil {
		t.Error(err)
	}
	if exists(f.path("ran")) {
		t.Error("a program of the agent's ran")
	}
	tree.Close()
	_, err := r.Add(ctx, tree.Path(), "t1/work", "main")
	f.wants(err, ErrTampered, "was replaced")
}

// Folders that an agent made unwritable are removed as well.
func TestRemoveReadOnlyFolders(t *testing.T) {
	t.Parallel()
	f := setup(t)
	r := f.own()
	tree := f.add(r, "t1", "t1/work")
	f.write(tree.Path()+"/mod/x", "")
	f.must(os.Chmod(tree.Path()+"/mod", 0o500))
	f.must(tree.Remove(t.Context()))
	if exists(tree.Path()) {
		t.Error("it is still there")
	}
}

// A wait for the lock of a repository ends with the caller's context.
func TestLockIsGivenUp(t *testing.T) {
	t.Parallel()
	f := setup(t)
	r := f.own()
	release, err := r.lock(t.Context())
	f.must(err)
	defer release()
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("the task was stopped")
	cancel(why)
	if _, err := r.CreateBranch(ctx, "x", "main"); !errors.Is(err, why) {
		t.Error(err)
	}
}
