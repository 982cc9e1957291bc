package gitrepo

import (
	"strings"
	"testing"

	"chorus/internal/gitrepo/hubtest"
)

// hubbed is a clone whose remote says that it is at GitHub, with a stand-in for gh.
func (f *fixture) hubbed() (*Repo, *hubtest.Hub) {
	f.Helper()
	f.remote()
	r := f.clone()
	f.git(r.Dir(), "config", "remote.origin.url", "git@github.com:o/r.git")
	hub := hubtest.New(f, "o/r")
	r.opt.Hub = hub.Program
	return r, hub
}

// A pull request is made once, however often it is asked for, and followed until it is merged.
func TestPullRequest(t *testing.T) {
	t.Parallel()
	f := setup(t)
	ctx := t.Context()
	r, hub := f.hubbed()
	pull := NewPull{Head: "t1/work", Base: "main", Title: "--web\nAdd x", Body: "What it does.\n"}
	pr, err := r.CreatePR(ctx, pull)
	f.must(err)
	if pr.Number != 1 || pr.URL != "https://github.com/o/r/pull/1" || pr.State != PullOpen || !pr.MergedAt.IsZero() {
		t.Errorf("%+v", pr)
	}
	if again, err := r.CreatePR(ctx, pull); err != nil || again != pr {
		t.Errorf("%+v, %v", again, err)
	}
	calls := hub.Calls()
	if strings.Count(calls, "pr create") != 1 || !strings.Contains(calls, "--head=t1/work --base=main --title=--web Add x --body-file=-") {
		t.Error(calls)
	}
	if made := hub.Pulls()[0]; made.Title != "--web Add x" || made.Body != pull.Body {
		t.Errorf("%+v", made)
	}
	hub.Merge(1, noon)
	if pr, err = r.PRState(ctx, 1); err != nil || pr.State != PullMerged || !pr.MergedAt.Equal(noon) {
		t.Errorf("%+v, %v", pr, err)
	}
	// The task is taken up again: its next pull request is another one.
	if pr, err = r.CreatePR(ctx, pull); err != nil || pr.Number != 2 {
		t.Errorf("%+v, %v", pr, err)
	}
	hub.Close(2)
	if pr, err = r.PRState(ctx, 2); err != nil || pr.State != PullClosed {
		t.Errorf("%+v, %v", pr, err)
	}
	_, err = r.PRState(ctx, 99)
	f.wants(err, ErrNoSuchBranch, "no such pull request")
}

// What stands in the way of a pull request is said with what to do about it.
func TestPullRequestFails(t *testing.T) {
	t.Parallel()
	f := setup(t)
	ctx := t.Context()
	r, hub := f.hubbed()
	pull := NewPull{Head: "t1/work", Base: "main", Title: "Add x"}
	hub.Fail(hubtest.LoggedOut)
	_, err := r.CreatePR(ctx, pull)
	f.wants(err, ErrDenied, "gh auth login", "GH_TOKEN")
	hub.Fail(hubtest.Offline)
	_, err = r.PRState(ctx, 1)
	f.wants(err, ErrUnreachable, "check the network")
	hub.Fail(hubtest.Works)
	r.opt.Hub = f.path("missing/gh")
	_, err = r.CreatePR(ctx, pull)
	f.wants(err, ErrNoProgram, "install it", "cli.github.com")
	r.opt.Hub = hub.Program
	for _, head := range []string{"--web", "", "a b"} {
		_, err = r.CreatePR(ctx, NewPull{Head: head, Base: "main", Title: "x"})
		f.wants(err, ErrBadName)
	}
	_, err = r.CreatePR(ctx, NewPull{Head: "x", Base: "main", Title: " \n"})
	f.wants(err, ErrBadName, "title")
	f.git(r.Dir(), "config", "remote.origin.url", "https://github.com/o/other")
	_, err = r.CreatePR(ctx, pull)
	f.wants(err, ErrUnreachable, "no such repository")
	f.git(r.Dir(), "config", "remote.origin.url", f.path("remote.git"))
	_, err = r.CreatePR(ctx, pull)
	f.wants(err, ErrNoRemote, "GitHub")
}
