package gitrepo

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// What the commands of a project do in a person's checkout.
func TestAProjectsCheckout(t *testing.T) {
	t.Parallel()
	f := setup(t)
	ctx := t.Context()
	r, err := Link(ctx, f.checkout("link")+"/.", f.opt)
	f.must(err)
	tree, err := r.Tree(r.Dir())
	f.must(err)
	s, err := tree.Status(ctx)
	if err != nil || s.Branch != "main" || !s.Clean() || s.String() != "(clean)" || len(s.Recent) != 1 || s.Recent[0].Subject != "first" || s.Recent[0].Author != "Ann" {
		t.Errorf("%+v, %v", s, err)
	}
	if created, err := tree.CreateBranch(ctx, "feature/x"); err != nil || !created {
		t.Error(created, err)
	}
	if created, err := tree.CreateBranch(ctx, "feature/x"); err != nil || created {
		t.Error(created, err)
	}
	_, err = tree.CreateBranch(ctx, "feature")
	f.wants(err, ErrBadName, "beside the branches that there are")
	f.write(tree.Path()+"/a.txt", "two\n")
	f.write(tree.Path()+"/with space\nand line", "x\n")
	f.git(tree.Path(), "add", "a.txt")
	f.write(tree.Path()+"/a.txt", "three\n")
	if s, err = tree.Status(ctx); err != nil || s.Branch != "feature/x" || s.String() != "MM a.txt\n?? with space and line" {
		t.Errorf("%q, %v", s.String(), err)
	}
	d, err := tree.Diff(ctx, "", 1<<20)
	if err != nil || !strings.Contains(d.Text, "-one\n+three\n") || !strings.Contains(d.Text, "+x\n") {
		t.Errorf("%+v, %v", d, err)
	}
	if f.git(tree.Path(), "diff", "--cached", "--name-only") != "a.txt" {
		t.Error("a diff changed the index")
	}
	done := f.commit(tree, "Change a")
	if before, err := tree.Checkout(ctx, "main"); err != nil || before != "feature/x" {
		t.Errorf("%q, %v", before, err)
	}
	_, err = tree.Checkout(ctx, "nowhere")
	f.wants(err, ErrNoSuchBranch, "no branch nowhere")
	log, err := r.Log(ctx, "feature/x", 1)
	if err != nil || len(log) != 1 || log[0].OID != done.OID || log[0].String() != done.OID[:10]+" Change a" {
		t.Errorf("%+v, %v", log, err)
	}
	refs, err := r.refs(ctx)
	if err != nil || len(refs) != 2 || refs["refs/heads/feature/x"] == "" || refs["refs/heads/main"] == "" {
		t.Errorf("%+v, %v", refs, err)
	}
	_, err = tree.Push(ctx, "")
	f.wants(err, ErrNeverPushed)
	_, err = r.CreatePR(ctx, NewPull{Head: "feature/x", Base: "main", Title: "x"})
	f.wants(err, ErrNeverPushed)
}

// Changes that are not committed are kept from a checkout of another branch, and nothing is committed to no branch.
func TestACheckoutLosesNothing(t *testing.T) {
	t.Parallel()
	f := setup(t)
	ctx := t.Context()
	r, err := Link(ctx, f.checkout("link"), f.opt)
	f.must(err)
	tree, err := r.Tree(r.Dir())
	f.must(err)
	for _, branch := range []string{"x", "y"} {
		_, err := tree.Checkout(ctx, "main")
		f.must(err)
		_, err = tree.CreateBranch(ctx, branch)
		f.must(err)
		f.write(tree.Path()+"/a.txt", branch+"\n")
		f.commit(tree, branch)
	}
	f.write(tree.Path()+"/a.txt", "mine\n")
	_, err = tree.Checkout(ctx, "x")
	f.wants(err, ErrDirty, "commit or stash")
	if f.read(tree.Path()+"/a.txt") != "mine\n" {
		t.Error("the change is lost")
	}
	f.git(r.Dir(), "checkout", "-q", "--detach")
	_, err = tree.Commit(ctx, Commit{Message: "x", At: noon})
	f.wants(err, ErrWrongBranch, "no branch is checked out")
}

// A checkout without commits, and one with more changes than anybody reads.
func TestOddCheckouts(t *testing.T) {
	t.Parallel()
	f := setup(t)
	ctx := t.Context()
	f.git(f.dir, "init", "-q", f.path("link"))
	r, err := Link(ctx, f.path("link"), f.opt)
	f.must(err)
	tree, err := r.Tree(r.Dir())
	f.must(err)
	s, err := tree.Status(ctx)
	if err != nil || s.Branch != "main" || s.Head != "" || !s.Clean() {
		t.Errorf("%+v, %v", s, err)
	}
	_, err = tree.CreateBranch(ctx, "x")
	f.wants(err, ErrNoSuchBranch, "no commit yet")
	for i := range maxChanges + 7 {
		f.write(fmt.Sprintf("%s/%04d", tree.Path(), i), "")
	}
	s, err = tree.Status(ctx)
	if err != nil || len(s.Changes) != maxChanges || s.More != 7 || !strings.HasSuffix(s.String(), "… and 7 more") {
		t.Errorf("%d changes and %d more, %v", len(s.Changes), s.More, err)
	}
	d, err := tree.Diff(ctx, "", 0)
	if err != nil || len(d.Files) != maxChanges+7 {
		t.Errorf("%d files, %v", len(d.Files), err)
	}
	if done := f.commit(tree, "All"); !done.Made || done.Files != maxChanges+7 {
		t.Errorf("%+v", done)
	}
	_, err = tree.Commit(ctx, Commit{Message: " \n", At: noon})
	f.wants(err, ErrBadName, "needs a message")
	_, err = tree.Commit(ctx, Commit{Message: "x", Trailers: []Trailer{{"Task Id", "x"}}})
	f.wants(err, ErrBadName, "trailer")
}

// A diff shows renames and binary files, and is cut where it gets too long.
func TestDiff(t *testing.T) {
	t.Parallel()
	f := setup(t)
	ctx := t.Context()
	r := f.own()
	tree := f.add(r, "t1", "t1/work")
	f.write(tree.Path()+"/old.txt", strings.Repeat("the same line\n", 20))
	f.commit(tree, "Old")
	from := f.git(tree.Path(), "rev-parse", "HEAD")
	f.must(os.Rename(tree.Path()+"/old.txt", tree.Path()+"/new name.txt"))
	f.write(tree.Path()+"/image", "\x00\x01")
	f.write(tree.Path()+"/large.txt", strings.Repeat("ä line\n", 500_000))
	f.commit(tree, "New")
	d, err := r.Diff(ctx, from, "t1/work", 10_000)
	f.must(err)
	want := "[{image  added 0 0 true} {large.txt  added 500000 0 false} {new name.txt old.txt renamed 0 0 false}]"
	if got := fmt.Sprint(d.Files); got != want {
		t.Errorf("%s", got)
	}
	if !d.Truncated || len(d.Text) > 10_000 || !strings.HasSuffix(d.Text, "+ä line\n") {
		t.Errorf("%v, %d bytes", d.Truncated, len(d.Text))
	}
	if files, err := r.ChangedFiles(ctx, "main", "t1/work"); err != nil || len(files) != 3 {
		t.Errorf("%v, %v", files, err)
	}
	_, err = r.Diff(ctx, "nowhere", "t1/work", 10)
	f.wants(err, ErrNoSuchBranch)
	// What main did meanwhile is not the task's.
	f.git(r.Dir(), "update-ref", "refs/heads/main", f.git(r.Dir(), "commit-tree", "-m", "z", "-p", "main", from+"^{tree}"))
	if files, err := r.ChangedFiles(ctx, "main", "t1/work"); err != nil || len(files) != 3 {
		t.Errorf("%v, %v", files, err)
	}
}
