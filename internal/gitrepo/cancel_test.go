package gitrepo

import (
	"context"
	"os"
	"testing"

	"chorus/internal/polltest"
)

// A git that is stopped removes its lock files, as git does when it is asked to end.
func TestAGitThatIsStoppedTidiesUp(t *testing.T) {
	t.Parallel()
	f := setup(t)
	r := f.own()
	lock, program := f.path("own/packed-refs.lock"), f.path("slow-git")
	f.write(program, "#!/bin/sh\ntrap 'rm "+lock+"; exit 1' TERM\n: >"+lock+"\nsleep 1000 &\nwait\n")
	f.must(os.Chmod(program, 0o700))
	r.runner.opt.Git = program
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		_, err := r.ask(ctx, "update-ref")
		ended <- err
	}()
	polltest.Until(t, "the lock is taken", func() bool { return exists(lock) })
	cancel()
	if err := <-ended; err == nil {
		t.Error("it was not stopped")
	}
	if exists(lock) {
		t.Error("the lock is left, and nobody can change the ref")
	}
}

// A tree that cannot be read, because somebody changes or removes it at this moment, is an error.
func TestADiffOfABrokenTreeIsAnError(t *testing.T) {
	t.Parallel()
	f := setup(t)
	tree := f.add(f.own(), "t1", "t1/work")
	f.write(tree.gitDir+"/index", "no index")
	if d, err := tree.Diff(t.Context(), "main", 1000); err == nil {
		t.Errorf("a diff of nothing: %+v", d)
	}
}
