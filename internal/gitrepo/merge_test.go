package gitrepo

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"chorus/internal/programtest"
)

// The same merge has the same name, whenever and wherever it is prepared.
func TestTheSameMergeTwice(t *testing.T) {
	t.Parallel()
	f := setup(t)
	r := f.own()
	tree := f.add(r, "t1", "t1/work")
	f.write(tree.Path()+"/x", "x\n")
	f.commit(tree, "Add x")
	one, err := r.Prepare(t.Context(), request("t1/work"))
	f.must(err)
	two, err := r.Prepare(t.Context(), request("t1/work"))
	f.must(err)
	if one.OID != two.OID || one.OID == one.Base || one.OID == one.Head {
		t.Errorf("%+v, %+v", one, two)
	}
	other := request("t1/work")
	other.At = noon.Add(time.Second)
	three, err := r.Prepare(t.Context(), other)
	if err != nil || three.OID == one.OID {
		t.Errorf("%+v, %v", three, err)
	}
	if f.git(r.Dir(), "rev-parse", "main") != one.Base {
		t.Error("preparing moved the branch")
	}
	f.must(r.Apply(t.Context(), one))
	// Work that is merged already, and a branch without work, need no commit.
	for _, head := range []string{"t1/work", "main"} {
		p, err := r.Prepare(t.Context(), request(head))
		if err != nil || p.OID != one.OID || len(p.Files) != 0 {
			t.Errorf("%s: %+v, %v", head, p, err)
		}
		f.must(r.Apply(t.Context(), p))
	}
	if got := f.git(r.Dir(), "rev-list", "--count", "main"); got != "3" {
		t.Errorf("%s commits", got)
	}
}

// Two tasks change the same line: the second one is told which files, and nothing is touched.
func TestConflict(t *testing.T) {
	t.Parallel()
	f := setup(t)
	remote := f.remote()
	r := f.clone()
	ctx := t.Context()
	for _, id := range []string{"t1", "t2"} {
		tree := f.add(r, id, id+"/work")
		f.write(tree.Path()+"/a.txt", id+"\n")
		f.write(tree.Path()+"/new\nline.txt", id+"\n")
		f.write(tree.Path()+"/"+id+".txt", id+"\n")
		f.commit(tree, "Work")
	}
	p, err := r.Prepare(ctx, request("t1/work"))
	f.must(err)
	f.must(r.Apply(ctx, p))
	_, err = r.Prepare(ctx, request("t2/work"))
	e := f.wants(err, ErrConflict, "t2/work cannot be merged into main", "a.txt", "Merge main into t2/work, resolve the conflict")
	if !slices.Equal(e.Files, []string{"a.txt", "new\nline.txt"}) || strings.Contains(e.Text, "\n") {
		t.Errorf("%q: %q", e.Files, e.Text)
	}
	if f.git(remote, "rev-parse", "main") != p.OID {
		t.Error("the conflict moved main")
	}
	// The task merges main, resolves, and then it goes through.
	tree, err := r.Tree(f.path("trees/t2"))
	f.must(err)
	f.must(r.Fetch(ctx))
	_, err = tree.git(ctx, command{args: []string{"merge", "--no-commit", "origin/main"}, env: signature(agent, agent, noon)})
	if err == nil {
		t.Fatal("no conflict")
	}
	_, err = tree.Commit(ctx, Commit{Message: "x", At: noon})
	f.wants(err, ErrConflict, "resolve a.txt")
	f.write(tree.Path()+"/a.txt", "both\n")
	f.git(tree.Path(), "add", "-A")
	if done := f.commit(tree, "Merge main"); !done.Made {
		t.Errorf("%+v", done)
	}
	p, err = r.Prepare(ctx, request("t2/work"))
	f.must(err)
	f.must(r.Apply(ctx, p))
	if f.git(remote, "show", "main:a.txt") != "both" || f.git(remote, "show", "main:t1.txt") != "t1" {
		t.Error("work is missing at the remote")
	}
}

// Somebody else pushes between preparing and applying: the merge is prepared again, and nobody's commit is lost.
func TestTheTargetMoves(t *testing.T) {
	t.Parallel()
	f := setup(t)
	remote := f.remote()
	r := f.clone()
	ctx := t.Context()
	tree := f.add(r, "t1", "t1/work")
	f.write(tree.Path()+"/x", "x\n")
	f.commit(tree, "Add x")
	p, err := r.Prepare(ctx, request("t1/work"))
	f.must(err)
	f.write(f.path("seed/y"), "y\n")
	f.git(f.path("seed"), "add", ".")
	f.git(f.path("seed"), "commit", "-q", "-m", "y")
	f.git(f.path("seed"), "push", "-q", remote, "main")
	if state, err := r.State(ctx, p); err != nil || state != Moved {
		t.Errorf("%s, %v", state, err)
	}
	f.wants(r.Apply(ctx, p), ErrMoved, "prepare it again")
	f.wants(r.push(ctx, p), ErrMoved) // also when it moves after the look
	p, err = r.Prepare(ctx, request("t1/work"))
	f.must(err)
	f.must(r.Apply(ctx, p))
	if f.git(remote, "show", "main:x") != "x" || f.git(remote, "show", "main:y") != "y" {
		t.Error("a commit is lost")
	}
	// In a repository of our own git's check of the old value says it.
	own := f.own()
	tree = f.add(own, "o1", "o1/work")
	f.write(tree.Path()+"/x", "x\n")
	f.commit(tree, "Add x")
	p, err = own.Prepare(ctx, request("o1/work"))
	f.must(err)
	f.git(own.Dir(), "update-ref", "refs/heads/main", f.git(own.Dir(), "commit-tree", "-m", "z", "-p", "main", "main^{tree}"))
	f.wants(own.Apply(ctx, p), ErrMoved)
	f.wants(own.move(ctx, p), ErrMoved)
}

// A remote that does not want the push is quoted.
func TestRejected(t *testing.T) {
	t.Parallel()
	f := setup(t)
	remote := f.remote()
	r := f.clone()
	tree := f.add(r, "t1", "t1/work")
	f.write(tree.Path()+"/x", "x\n")
	f.commit(tree, "Add x")
	p, err := r.Prepare(t.Context(), request("t1/work"))
	f.must(err)
	programtest.Write(t, filepath.Join(remote, "hooks/pre-receive"), "#!/bin/sh\necho main is protected >&2\nexit 1\n")
	f.wants(r.Apply(t.Context(), p), ErrRejected, "did not accept main", "main is protected")
	f.wants(r.PushBranch(t.Context(), "t1/work"), ErrRejected, "t1/work")
	if state, err := r.State(t.Context(), p); err != nil || state != Waiting {
		t.Errorf("%s, %v", state, err)
	}
	f.must(os.Remove(filepath.Join(remote, "hooks/pre-receive")))
	f.must(r.Apply(t.Context(), p))
	f.must(os.RemoveAll(remote))
	f.wants(r.Fetch(t.Context()), ErrUnreachable)
}

// A branch that was rewritten replaces what we pushed, never what somebody else did.
func TestPushARewrittenBranch(t *testing.T) {
	t.Parallel()
	f := setup(t)
	remote := f.remote()
	r := f.clone()
	ctx := t.Context()
	tree := f.add(r, "t1", "t1/work")
	f.write(tree.Path()+"/x", "x\n")
	f.commit(tree, "Add x")
	f.must(r.PushBranch(ctx, "t1/work"))
	f.must(r.PushBranch(ctx, "t1/work"))
	f.git(tree.Path(), "commit", "-q", "--amend", "-m", "Better")
	f.must(r.PushBranch(ctx, "t1/work"))
	if f.git(remote, "log", "-1", "--format=%s", "t1/work") != "Better" {
		t.Error("not pushed")
	}
	f.git(remote, "update-ref", "refs/heads/t1/work", f.git(remote, "commit-tree", "-m", "somebody", "-p", "t1/work", "t1/work^{tree}"))
	f.git(tree.Path(), "commit", "-q", "--amend", "-m", "Best")
	f.wants(r.PushBranch(ctx, "t1/work"), ErrRejected, "Fetch and merge")
	if f.git(remote, "log", "-1", "--format=%s", "t1/work") != "somebody" {
		t.Error("somebody's commit is lost")
	}
	f.wants(r.PushBranch(ctx, "nowhere"), ErrNoSuchBranch)
	f.must(r.Remove(ctx, f.path("trees/t2")))
}

// What a stored merge says is checked before git sees it.
func TestAStoredMergeIsChecked(t *testing.T) {
	t.Parallel()
	f := setup(t)
	r := f.own()
	oid := f.git(r.Dir(), "rev-parse", "main")
	for _, p := range []Prepared{{}, {Target: "main", Base: oid, Head: oid, OID: "--stdin"}, {Target: "-d", Base: oid, Head: oid, OID: oid}} {
		f.wants(r.Apply(t.Context(), p), ErrBadName)
	}
}

// Subtasks have branches of their own, which go into their parent's; only that goes to the remote.
func TestSubtasksGoIntoTheParent(t *testing.T) {
	t.Parallel()
	f := setup(t)
	remote := f.remote()
	r := f.clone()
	ctx := t.Context()
	parent := f.add(r, "p", "p/work")
	for _, id := range []string{"s1", "s2"} {
		tree, err := r.Add(ctx, f.path("trees/"+id), id+"/work", "p/work")
		f.must(err)
		f.write(tree.Path()+"/"+id, id+"\n")
		f.commit(tree, id)
		tree.Close()
		req := request(id + "/work")
		req.Target, req.Local = "p/work", true
		p, err := r.Prepare(ctx, req)
		f.must(err)
		if id == "s1" {
			f.wants(r.Apply(ctx, p), ErrInUse, "remove that worktree first")
			f.must(parent.Remove(ctx))
			parent.Close()
		}
		f.must(r.Apply(ctx, p))
		f.must(r.Apply(ctx, p))
	}
	if refs := f.git(remote, "for-each-ref", "--format=%(refname)"); refs != "refs/heads/main" {
		t.Errorf("the remote has %s", refs)
	}
	tree := f.add(r, "p", "p/work")
	if f.read(tree.Path()+"/s1")+f.read(tree.Path()+"/s2") != "s1\ns2\n" {
		t.Error("the parent does not have the work")
	}
	p, err := r.Prepare(ctx, request("p/work"))
	f.must(err)
	f.must(r.Apply(ctx, p))
	if f.git(remote, "ls-tree", "--name-only", "main", "s1", "s2") != "s1\ns2" {
		t.Error("the remote does not have the work")
	}
}

// Tasks that end at the same time all get in, each once: whoever was not first prepares again.
func TestManyTasksAtOnce(t *testing.T) {
	t.Parallel()
	f := setup(t)
	remote := f.remote()
	r := f.clone()
	ctx := t.Context()
	const tasks = 6
	finish := func(id string) error {
		tree, err := r.Add(ctx, f.path("trees/"+id), id+"/work", "main")
		if err != nil {
			return err
		}
		defer tree.Close()
		if err := os.WriteFile(tree.Path()+"/"+id, []byte(id), 0o644); err != nil {
			return err
		}
		if _, err := tree.Commit(ctx, Commit{Message: id, At: noon}); err != nil {
			return err
		}
		for {
			p, err := r.Prepare(ctx, request(id+"/work"))
			if err != nil {
				return err
			}
			if err := r.Apply(ctx, p); !errors.Is(err, ErrMoved) {
				return err
			}
		}
	}
	var all sync.WaitGroup
	for i := range tasks {
		all.Go(func() {
			if err := finish(fmt.Sprint("t", i)); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if got := f.git(remote, "rev-list", "--count", "--first-parent", "main"); got != fmt.Sprint(1+tasks) {
		t.Errorf("%s commits of the first parent", got)
	}
	if got := f.git(remote, "rev-list", "--count", "main"); got != fmt.Sprint(1+2*tasks) {
		t.Errorf("%s commits", got)
	}
}
