package workservice_test

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"chorus/internal/operation"
	"chorus/internal/operations"
	"chorus/internal/work"
	"chorus/internal/workservice"
)

func TestALinkedRepositoryIsWorkedOnWhereItIs(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	dir := h.site()
	status := must[operations.GitStatuses](h, root, "get_git_status", `{"project_id":"site"}`)
	if one := status.Repos[0]; status.Name != "Site" || one.Branch != "main" || one.Status != "(clean)" || len(one.Recent) != 1 || !strings.HasSuffix(one.Recent[0], " begin") {
		t.Errorf("%+v", status)
	}
	// 31: making a branch twice is no failure, and says what happened.
	if made := must[operations.GitBranch](h, root, "git_create_branch", `{"branch_name":"mend","repo_id":"site"}`); made.Status != "created" || made.Before != "main" {
		t.Errorf("%+v", made)
	}
	if again := must[operations.GitBranch](h, root, "create_branch", `{"branch_name":"mend","project_id":"site"}`); again.Status != "checked_out" {
		t.Errorf("%+v", again)
	}
	if none := must[operations.GitCommitted](h, root, "git_commit", `{"message":"x","project_id":"site"}`); none.Committed || none.Status != "nothing_to_commit" {
		t.Errorf("%+v", none)
	}
	h.write("hello\nworld\n", dir, "README.md")
	h.write("new\n", dir, "new.txt")
	diff := must[operations.GitDiffs](h, root, "git_diff", `{"project_id":"site"}`)
	if one := diff.Repos[0]; one.Base != "(working tree)" || !strings.Contains(one.Diff, "+world") || len(one.Files) != 2 {
		t.Errorf("%+v", diff)
	}
	h.refused(root, operation.NotFound, "has no branch nowhere", "git_diff", `{"project_id":"site","base_branch":"nowhere"}`)
	h.refused(root, operation.NotFound, "has no branch nowhere", "git_changed_files", `{"project_id":"site","base_branch":"nowhere"}`)
	if files := must[operations.GitChanged](h, root, "git_changed_files", `{"repo_id":"site"}`); files.Base != "main" || files.Count != 2 {
		t.Errorf("%+v", files)
	}
	done := must[operations.GitCommitted](h, root, "commit_changes", `{"message":"Mend it","project_id":"site"}`)
	if done.Status != "committed" || done.Branch != "mend" || done.Files != 2 || h.git("-C", dir, "log", "-1", "--format=%an: %s") != "ada: Mend it" {
		t.Errorf("%+v", done)
	}
	if log := must[operations.GitLogs](h, root, "git_log", `{"repo_id":"site","count":1}`); len(log.Repos[0].Commits) != 1 || !strings.HasSuffix(log.Repos[0].Log, " Mend it") {
		t.Errorf("%+v", log)
	}
	must[operations.GitBranch](h, root, "checkout_branch", `{"branch_name":"main","project_id":"site"}`)
	// 32: a merge goes into the default branch, and the files follow.
	merged := must[operations.GitMerged](h, root, "merge_branch", `{"branch_name":"mend","project_id":"site"}`)
	if merged.Status != "merged" || merged.Target != "main" || h.git("-C", dir, "show", "main:new.txt") != "new" || h.git("-C", dir, "status", "--porcelain") != "" {
		t.Errorf("%+v", merged)
	}
	if again := must[operations.GitMerged](h, root, "git_merge", `{"branch_name":"mend","project_id":"site"}`); again.Merged || again.Status != "nothing_to_merge" {
		t.Errorf("%+v", again)
	}
	// Linked repositories are never pushed, and so have no pull requests.
	h.refused(root, operation.Conflict, "never pushes", "git_push", `{"project_id":"site"}`)
	h.refused(root, operation.Conflict, "never pushes", "push_branch", `{"project_id":"site","branch_name":"mend"}`)
	h.refused(root, operation.Conflict, "never pushes", "git_create_pr", `{"project_id":"site","title":"x"}`)
}

func TestAConflictTouchesNothing(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	dir := h.site()
	must[operations.GitBranch](h, root, "create_branch", `{"branch_name":"one","project_id":"site"}`)
	h.write("one\n", dir, "README.md")
	must[operations.GitCommitted](h, root, "commit_changes", `{"message":"one","project_id":"site"}`)
	must[operations.GitBranch](h, root, "checkout_branch", `{"branch_name":"main","project_id":"site"}`)
	h.write("two\n", dir, "README.md")
	must[operations.GitCommitted](h, root, "commit_changes", `{"message":"two","project_id":"site"}`)
	before := h.git("-C", dir, "rev-parse", "main")
	got := must[operations.GitMerged](h, root, "git_merge", `{"branch_name":"one","project_id":"site"}`)
	if got.Merged || got.Status != "conflict" || len(got.Conflicts) != 1 || !strings.HasPrefix(got.Message, "Merge conflict — merge of 'one' into 'main' was aborted") {
		t.Errorf("%+v", got)
	}
	if h.git("-C", dir, "rev-parse", "main") != before || h.git("-C", dir, "status", "--porcelain") != "" {
		t.Error("the merge left something behind")
	}
	h.refused(root, operation.NotFound, "has no branch ghost", "git_merge", `{"branch_name":"ghost","project_id":"site"}`)
}

// A clone and a new repository have no files of their own: the project has a checkout, which follows the default branch.
func TestAClonedRepositoryHasACheckout(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	dir := h.site()
	remote := filepath.Join(h.tmp, "remote.git")
	h.git("clone", "-q", "--bare", dir, remote)
	must[operations.Project](h, root, "create_project", `{"name":"App"}`)
	must[operations.Repo](h, root, "add_repo", `{"project_id":"app","source":"clone","url":"`+remote+`","name":"app"}`)
	must[operations.Repo](h, root, "add_repo", `{"project_id":"app","source":"init","name":"docs"}`)
	status := must[operations.GitStatuses](h, root, "get_git_status", `{"project_id":"app"}`)
	if len(status.Repos) != 2 || status.Repos[0].Branch != "workspace" || status.Repos[1].Branch != "workspace" || status.Repos[0].Error+status.Repos[1].Error != "" {
		t.Fatalf("%+v", status)
	}
	if log := must[operations.GitLogs](h, root, "git_log", `{"project_id":"app"}`); len(log.Repos) != 2 {
		t.Errorf("git_log must speak of all repositories: %+v", log)
	}
	must[operations.GitBranch](h, root, "create_branch", `{"branch_name":"mend","project_id":"app"}`)
	h.write("changed\n", status.Repos[0].Path, "README.md")
	must[operations.GitCommitted](h, root, "commit_changes", `{"message":"Change it","project_id":"app"}`)
	if pushed := must[operations.GitBranch](h, root, "push_branch", `{"project_id":"app"}`); pushed.Branch != "mend" || h.git("-C", remote, "show", "mend:README.md") != "changed" {
		t.Errorf("%+v", pushed)
	}
	merged := must[operations.GitMerged](h, root, "git_merge", `{"branch_name":"mend","repo_id":"app"}`)
	if !merged.Merged || h.git("-C", remote, "rev-parse", "main") != merged.Commit {
		t.Errorf("%+v", merged)
	}
	must[operations.GitBranch](h, root, "checkout_branch", `{"branch_name":"workspace","repo_id":"app"}`)
	if log := must[operations.GitLogs](h, root, "git_log", `{"repo_id":"app","count":1}`); !strings.HasPrefix(merged.Commit, strings.Fields(log.Repos[0].Log)[0]) {
		t.Errorf("the checkout does not follow main: %+v", log)
	}
	h.refused(root, operation.Conflict, "only merges move", "checkout_branch", `{"branch_name":"main","repo_id":"app"}`)
	h.refused(root, operation.Conflict, "has no remote", "git_push", `{"repo_id":"docs"}`)
}

// What is new on the remote is asked for where somebody wants that; a remote that cannot be reached, or does not answer, hides nothing.
func TestTheStatusCanBeFetched(t *testing.T) {
	t.Parallel()
	h := newHome(t, func(o *workservice.Options) { o.FetchTime = 2 * time.Second })
	dir := h.site()
	remote := filepath.Join(h.tmp, "remote.git")
	h.git("clone", "-q", "--bare", dir, remote)
	must[operations.Project](h, root, "create_project", `{"name":"App"}`)
	must[operations.Repo](h, root, "add_repo", `{"project_id":"app","source":"clone","url":"`+remote+`","name":"app"}`)
	look := func(args string) operations.GitStatus {
		t.Helper()
		got := must[operations.GitStatuses](h, root, "get_git_status", args).Repos[0]
		if got.Error != "" {
			t.Fatalf("%+v", got)
		}
		return got
	}
	look(`{"project_id":"app"}`)
	h.write("new\n", dir, "new.txt")
	h.git("-C", dir, "add", "new.txt")
	h.git("-C", dir, "-c", "user.name=Ada", "-c", "user.email=ada@example.com", "commit", "-q", "-m", "Somebody pushed")
	h.git("-C", dir, "push", "-q", remote, "main")
	if got := look(`{"project_id":"app"}`); len(got.Recent) != 1 || got.Note != "" {
		t.Errorf("without asking: %+v", got)
	}
	if got := look(`{"project_id":"app","fetch":true}`); len(got.Recent) != 2 || !strings.HasSuffix(got.Recent[0], "Somebody pushed") || got.Note != "fetched" {
		t.Errorf("fetched: %+v", got)
	}
	if err := os.Rename(remote, remote+".away"); err != nil {
		t.Fatal(err)
	}
	if got := look(`{"project_id":"app","fetch":true}`); len(got.Recent) != 2 || !strings.HasPrefix(got.Note, "not fetched: ") || !strings.HasSuffix(got.Note, "this is what was known here before") {
		t.Errorf("the remote is away: %+v", got)
	}
	if got := look(`{"project_id":"site","fetch":true}`); !strings.Contains(got.Note, "a linked checkout is yours") {
		t.Errorf("%+v", got)
	}
	// A remote that takes the connection and says nothing.
	silent, err := net.Listen("tcp", "127.0.0.1:0") // connections wait in its queue
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	repo := h.dir.ProjectRepo("app", "app")
	h.git("-C", repo, "config", "url.git://"+silent.Addr().String()+"/.insteadOf", remote)
	if got := look(`{"project_id":"app","fetch":true}`); len(got.Recent) != 2 || !strings.Contains(got.Note, "did not answer within 2s") {
		t.Errorf("the remote is silent: %+v", got)
	}
}

func TestWhichRepositoryIsMeant(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	h.site()
	must[operations.Project](h, root, "create_project", `{"name":"Other"}`)
	// 35: the active project where none is named; one that is named wins.
	talking := inSession(root, "cli:here:1@main")
	h.refused(talking, operation.Invalid, "project_id is required (no active project set)", "get_git_status", `{}`)
	must[operations.ActiveProject](h, talking, "set_active_project", `{"project_id":"site"}`)
	if got := must[operations.GitStatuses](h, talking, "get_git_status", `{}`); got.Project != "site" {
		t.Errorf("%+v", got)
	}
	h.refused(talking, operation.NotFound, "Project 'other' has no repos", "get_git_status", `{"project_id":"other"}`)
	h.refused(root, operation.NotFound, "Project 'nope' not found", "git_commit", `{"project_id":"nope","message":"x"}`)
	h.refused(root, operation.NotFound, "Repo 'nope' not found", "git_commit", `{"repo_id":"nope","message":"x"}`)
	h.refused(root, operation.NotFound, "Repo 'nope' not found in project site", "git_commit", `{"repo_id":"nope","project_id":"site","message":"x"}`)
	must[operations.Repo](h, root, "add_repo", `{"project_id":"other","source":"init","name":"site"}`)
	h.refused(root, operation.Invalid, "say which with project_id", "git_log", `{"repo_id":"site"}`)
	if got := must[operations.GitLogs](h, talking, "git_log", `{"repo_id":"site"}`); got.Project != "site" {
		t.Errorf("of two the active one is meant: %+v", got)
	}
	for _, args := range []string{`{"branch_name":"../x","project_id":"site"}`, `{"branch_name":"-f","project_id":"site"}`, `{"branch_name":"a b","project_id":"site"}`} {
		h.refused(root, operation.Invalid, "", "git_create_branch", args)
		h.refused(root, operation.Invalid, "", "checkout_branch", args)
	}
}

// 34: what could disturb agents at work says so.
func TestWarningsWhileAgentsWork(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	dir := h.site()
	task := must[operations.Task](h, root, "create_task", `{"title":"Do it","project_id":"site"}`)
	h.move(task.ID, work.InProgress)
	made := must[operations.GitBranch](h, root, "create_branch", `{"branch_name":"mend","project_id":"site"}`)
	h.write("x\n", dir, "x")
	done := must[operations.GitCommitted](h, root, "commit_changes", `{"message":"x","project_id":"site"}`)
	back := must[operations.GitBranch](h, root, "checkout_branch", `{"branch_name":"main","project_id":"site"}`)
	merged := must[operations.GitMerged](h, root, "merge_branch", `{"branch_name":"mend","project_id":"site"}`)
	for what, warning := range map[string]string{"branch": made.Warning, "commit": done.Warning, "checkout": back.Warning, "merge": merged.Warning} {
		if !strings.Contains(warning, "1 task(s) currently IN_PROGRESS") {
			t.Errorf("%s: %q", what, warning)
		}
	}
}

// A linked repository is a person's own checkout: others who see the project look at it and merge tasks, and commit nothing of theirs.
func TestOnlyTheOwnerCommitsInTheirCheckout(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	h.site()
	h.refused(grace, operation.NotFound, "Project 'site' not found", "get_git_status", `{"project_id":"site"}`)
	must[operations.Project](h, root, "edit_project", `{"project_id":"site","shared":true}`)
	must[operations.GitStatuses](h, grace, "get_git_status", `{"project_id":"site"}`)
	h.refused(grace, operation.Forbidden, "only they may change it", "git_commit", `{"project_id":"site","message":"x"}`)
	h.refused(grace, operation.Forbidden, "only they may change it", "checkout_branch", `{"project_id":"site","branch_name":"x"}`)
	h.refused(reader, operation.Forbidden, "scope chat", "git_merge", `{"project_id":"site","branch_name":"x"}`)
}
