package workservice

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"chorus/internal/gitrepo"
	"chorus/internal/operation"
	"chorus/internal/operations"
	"chorus/internal/text"
	"chorus/internal/work"
)

const (
	maxRepoDiff     = 60_000 // bytes of a diff in an answer about several repositories
	maxChangedFiles = 1000   // names in a list
	maxLogged       = 10
)

var _ operations.Git = (*Handler)(nil)

// place finds the repositories that are meant: the named one, or all of the project.
func (h *Handler) place(ctx context.Context, by operation.Caller, project, repo string) (work.Project, []work.Repo, error) {
	if project == "" && repo != "" {
		p, err := h.projectOf(ctx, by, repo)
		if err != nil {
			return p, nil, err
		}
		project = p.ID
	}
	p, err := h.project(ctx, by, project)
	if err != nil {
		return p, nil, err
	}
	repos, err := h.o.Projects.Repos(ctx, p.ID)
	if err != nil {
		return p, nil, err
	}
	if repo != "" {
		at := slices.IndexFunc(repos, func(r work.Repo) bool { return r.ID == repo })
		if at < 0 {
			return p, nil, noRepo(repo, p.ID)
		}
		return p, repos[at : at+1], nil
	}
	if len(repos) == 0 {
		return p, nil, operation.Errorf(operation.NotFound, "Project '%s' has no repos; `add_repo` gives it one", p.ID)
	}
	return p, repos, nil
}

func noRepo(id, project string) error {
	return operation.Errorf(operation.NotFound, "Repo '%.64s' not found in project %s; `list_repos` shows those there are", id, project)
}

// projectOf returns the project of a repository that was named alone:
// the active project, or the only one that has it.
func (h *Handler) projectOf(ctx context.Context, by operation.Caller, repo string) (work.Project, error) {
	visible, err := h.visible(ctx, by, "")
	if err != nil {
		return work.Project{}, err
	}
	all, err := h.o.Projects.Repos(ctx, "")
	if err != nil {
		return work.Project{}, err
	}
	var having []string
	for _, r := range all {
		if r.ID == repo && slices.Contains(visible, r.Project) {
			having = append(having, r.Project)
		}
	}
	active, err := h.active(ctx, by.Session, by.Here)
	switch {
	case err != nil:
		return work.Project{}, err
	case slices.Contains(having, active):
		return h.project(ctx, by, active)
	case len(having) == 0:
		return work.Project{}, operation.Errorf(operation.NotFound, "Repo '%.64s' not found; `list_repos` shows those there are", repo)
	case len(having) > 1:
		return work.Project{}, operation.InvalidField("projectId", "there is a repo '%s' in the projects %s: say which with project_id", repo, strings.Join(having, ", "))
	}
	return h.project(ctx, by, having[0])
}

// checkout opens the single repository that a command changes. A linked one is a person's own
// checkout with their unfinished work: only the project's owner may switch branches or commit
// there.
func (h *Handler) checkout(ctx context.Context, by operation.Caller, in operations.GitPlace, touches bool) (*gitrepo.Tree, work.Project, work.Repo, error) {
	p, repos, err := h.place(ctx, by, in.Project, in.Repo)
	if err != nil {
		return nil, p, work.Repo{}, err
	}
	if touches && repos[0].Kind == work.Link && !manages(by, p) {
		return nil, p, repos[0], operation.Errorf(operation.Forbidden, "%s is the checkout of whoever owns project %s: only they may change it. Create a task instead with `create_task`", repos[0].ID, p.ID)
	}
	tree, repo, err := h.o.Git.Checkout(ctx, p.ID, repos[0].ID)
	return tree, p, repo, gitError(err)
}

// gitError explains for people what git refuses.
func gitError(err error) error {
	var ours *gitrepo.Error
	if !errors.As(err, &ours) {
		return err
	}
	kind := operation.Conflict
	switch {
	case errors.Is(err, gitrepo.ErrNoSuchBranch), errors.Is(err, gitrepo.ErrNotARepository), errors.Is(err, gitrepo.ErrNoCheckout):
		kind = operation.NotFound
	case errors.Is(err, gitrepo.ErrBadName), errors.Is(err, gitrepo.ErrBadURL):
		kind = operation.Invalid
	case errors.Is(err, gitrepo.ErrUnreachable), errors.Is(err, gitrepo.ErrTimeout), errors.Is(err, gitrepo.ErrNoProgram):
		kind = operation.Unavailable
	}
	text := ours.Text
	if ours.Command != "" && !strings.Contains(text, ours.Command) {
		text += "; type " + ours.Command
	}
	return operation.Errorf(kind, "%s", text)
}

// disturbs returns a warning if agents are working on the project.
func (h *Handler) disturbs(ctx context.Context, project string) (string, error) {
	counts, err := h.o.Tasks.Count(ctx, project)
	n := counts[work.InProgress] + counts[work.Assigned]
	if err != nil || n == 0 {
		return "", err
	}
	return fmt.Sprintf("⚠️ %d task(s) currently IN_PROGRESS for this project — this operation may disrupt running agent(s).", n), nil
}

// GitStatus implements the operation of the same name. A problem with one repository does not hide the others.
func (h *Handler) GitStatus(ctx context.Context, by operation.Caller, in operations.GitStatusQuery) (operations.GitStatuses, error) {
	out := operations.GitStatuses{Repos: []operations.GitStatus{}}
	p, repos, err := h.place(ctx, by, in.Project, in.Repo)
	if err != nil {
		return out, err
	}
	out.Project, out.Name = p.ID, p.Name
	fetching, cancel := context.WithTimeout(ctx, h.o.FetchTime)
	defer cancel()
	for _, r := range repos {
		one := operations.GitStatus{Repo: r.ID}
		if in.Fetch {
			one.Note = h.fetch(fetching, r)
		}
		tree, _, err := h.o.Git.Checkout(ctx, p.ID, r.ID)
		if err == nil {
			err = showStatus(ctx, tree, &one)
		}
		if err != nil {
			one.Error = err.Error()
		}
		out.Repos = append(out.Repos, one)
	}
	return out, ctx.Err()
}

// fetch asks the remote of a clone for news, and says how that went. What is known here is shown in any case.
func (h *Handler) fetch(ctx context.Context, r work.Repo) string {
	switch r.Kind {
	case work.Link:
		return "not fetched: a linked checkout is yours; git fetch there"
	case work.Init:
		return "it has no remote"
	}
	repo, _, err := h.o.Git.Repo(ctx, r.Project, r.ID)
	if err == nil {
		err = repo.Fetch(ctx)
	}
	switch {
	case err == nil:
		return "fetched"
	case ctx.Err() != nil:
		return fmt.Sprintf("not fetched: the remote did not answer within %s; this is what was known here before", h.o.FetchTime)
	}
	return "not fetched: " + gitError(err).Error() + "; this is what was known here before"
}

func showStatus(ctx context.Context, tree *gitrepo.Tree, one *operations.GitStatus) error {
	s, err := tree.Status(ctx)
	if err != nil {
		return err
	}
	one.Path, one.Branch, one.Ahead, one.Behind, one.Status = tree.Path(), s.Branch, s.Ahead, s.Behind, s.String()
	for _, c := range s.Recent {
		one.Recent = append(one.Recent, c.String())
	}
	return nil
}

// GitLog implements the operation of the same name.
func (h *Handler) GitLog(ctx context.Context, by operation.Caller, in operations.GitLogQuery) (operations.GitLogs, error) {
	out := operations.GitLogs{Repos: []operations.GitLog{}}
	p, repos, err := h.place(ctx, by, in.Project, in.Repo)
	if err != nil {
		return out, err
	}
	out.Project = p.ID
	for _, r := range repos {
		one, err := h.logOf(ctx, p.ID, r.ID, in.Branch, cmp.Or(in.Count, maxLogged))
		if err != nil && len(repos) == 1 {
			return out, gitError(err)
		}
		if err != nil {
			one.Error = err.Error()
		}
		out.Repos = append(out.Repos, one)
	}
	return out, ctx.Err()
}

func (h *Handler) logOf(ctx context.Context, project, repo, branch string, count int) (operations.GitLog, error) {
	out := operations.GitLog{Repo: repo, Branch: branch, Commits: []operations.GitCommit{}}
	tree, _, err := h.o.Git.Checkout(ctx, project, repo)
	if err != nil {
		return out, err
	}
	if branch == "" {
		s, err := tree.Status(ctx)
		if err != nil {
			return out, err
		}
		if out.Branch, branch = s.Branch, s.Head; s.Head == "" {
			out.Log = "(no commits)"
			return out, nil
		}
	}
	list, err := tree.Repo().Log(ctx, branch, count)
	lines := make([]string, 0, len(list))
	for _, c := range list {
		lines = append(lines, c.String())
		out.Commits = append(out.Commits, operations.GitCommit{Commit: c.OID, Author: c.Author, At: c.At, Subject: c.Subject})
	}
	out.Log = strings.Join(lines, "\n")
	return out, err
}

// GitDiff implements the operation of the same name.
func (h *Handler) GitDiff(ctx context.Context, by operation.Caller, in operations.GitDiffQuery) (operations.GitDiffs, error) {
	out := operations.GitDiffs{Repos: []operations.GitDiff{}}
	p, repos, err := h.place(ctx, by, in.Project, in.Repo)
	if err != nil {
		return out, err
	}
	out.Project = p.ID
	for _, r := range repos {
		one := operations.GitDiff{Repo: r.ID, Base: cmp.Or(in.Base, "(working tree)"), Files: []string{}}
		d, err := h.diffOf(ctx, p.ID, r.ID, in.Base)
		if err != nil && len(repos) == 1 {
			return out, gitError(err)
		}
		if err != nil {
			one.Error = err.Error()
		} else if one.Diff, one.Truncated = d.Text, d.Truncated; len(d.Files) == 0 {
			one.Diff = "(no changes)"
		}
		one.Files, _ = fileNames(d.Files)
		out.Repos = append(out.Repos, one)
	}
	return out, ctx.Err()
}

func (h *Handler) diffOf(ctx context.Context, project, repo, base string) (gitrepo.Diff, error) {
	tree, _, err := h.o.Git.Checkout(ctx, project, repo)
	if err != nil {
		return gitrepo.Diff{}, err
	}
	return tree.Diff(ctx, base, maxRepoDiff)
}

// fileNames returns the names of changed files, up to a limit, and how many there are.
func fileNames(files []gitrepo.File) (names []string, all int) {
	names = []string{}
	for _, f := range files[:min(len(files), maxChangedFiles)] {
		names = append(names, f.Path)
	}
	return names, len(files)
}

// GitChangedFiles implements the operation of the same name.
func (h *Handler) GitChangedFiles(ctx context.Context, by operation.Caller, in operations.GitDiffQuery) (operations.GitChanged, error) {
	tree, p, repo, err := h.checkout(ctx, by, operations.GitPlace{Project: in.Project, Repo: in.Repo}, false)
	if err != nil {
		return operations.GitChanged{}, err
	}
	out := operations.GitChanged{Project: p.ID, Repo: repo.ID, Base: cmp.Or(in.Base, repo.Branch)}
	files, err := tree.ChangedFiles(ctx, out.Base)
	out.Files, out.Count = fileNames(files)
	return out, gitError(err)
}

// author returns the git author for a caller.
func author(by operation.Caller) gitrepo.Person {
	who := by.Principal.Person()
	return gitrepo.Person{Name: cmp.Or(who.Name, who.ID)}
}

// GitCommit implements the operation of the same name.
func (h *Handler) GitCommit(ctx context.Context, by operation.Caller, in operations.GitMessage) (operations.GitCommitted, error) {
	tree, p, repo, err := h.checkout(ctx, by, in.GitPlace, true)
	if err != nil {
		return operations.GitCommitted{}, err
	}
	out := operations.GitCommitted{Project: p.ID, Repo: repo.ID}
	if out.Warning, err = h.disturbs(ctx, p.ID); err != nil {
		return out, err
	}
	s, err := tree.Status(ctx)
	if err != nil {
		return out, gitError(err)
	}
	done, err := tree.Commit(ctx, gitrepo.Commit{Message: in.Message, Author: author(by), At: h.o.Now()})
	if err != nil {
		return out, gitError(err)
	}
	out.Branch, out.Committed, out.Skipped = s.Branch, done.Made, done.Skipped
	if !done.Made {
		out.Status, out.Message, out.Warning = "nothing_to_commit", "Nothing to commit — working tree clean", ""
		return out, nil
	}
	out.Status, out.Commit, out.Text, out.Files = "committed", done.OID, in.Message, done.Files
	return out, h.happened(ctx, by, p.ID, "git.committed", repo.ID+" "+s.Branch+": "+in.Message)
}

// happened records what a command did in a repository.
func (h *Handler) happened(ctx context.Context, by operation.Caller, project, what, words string) error {
	return h.o.Projects.Record(ctx, work.Event{Type: what, Project: project, By: by.Principal.String(), Text: text.Clip(words, 500)})
}

// GitPush implements the operation of the same name.
func (h *Handler) GitPush(ctx context.Context, by operation.Caller, in operations.GitBranchChoice) (operations.GitBranch, error) {
	return h.push(ctx, by, in.GitPlace, in.Branch)
}

// PushBranch implements the operation of the same name.
func (h *Handler) PushBranch(ctx context.Context, by operation.Caller, in operations.GitPushed) (operations.GitBranch, error) {
	return h.push(ctx, by, in.GitPlace, in.Branch)
}

func (h *Handler) push(ctx context.Context, by operation.Caller, at operations.GitPlace, branch string) (operations.GitBranch, error) {
	tree, p, repo, err := h.checkout(ctx, by, at, false)
	if err != nil {
		return operations.GitBranch{}, err
	}
	out := operations.GitBranch{Project: p.ID, Repo: repo.ID, Status: "pushed"}
	if out.Branch, err = tree.Push(ctx, branch); err != nil {
		return out, gitError(err)
	}
	return out, h.happened(ctx, by, p.ID, "git.pushed", repo.ID+" "+out.Branch)
}

// GitCreateBranch implements the operation of the same name.
func (h *Handler) GitCreateBranch(ctx context.Context, by operation.Caller, in operations.GitBranchName) (operations.GitBranch, error) {
	return h.switched(ctx, by, in, func(tree *gitrepo.Tree, repo work.Repo, out *operations.GitBranch) error {
		if err := mayStandOn(repo, in.Branch); err != nil {
			return err
		}
		created, err := tree.CreateBranch(ctx, in.Branch)
		if out.Status = "checked_out"; created {
			out.Status = "created"
		}
		return err
	})
}

// GitCheckout implements the operation of the same name.
func (h *Handler) GitCheckout(ctx context.Context, by operation.Caller, in operations.GitBranchName) (operations.GitBranch, error) {
	return h.switched(ctx, by, in, func(tree *gitrepo.Tree, repo work.Repo, out *operations.GitBranch) error {
		if err := mayStandOn(repo, in.Branch); err != nil {
			return err
		}
		out.Status = "checked_out"
		_, err := tree.Checkout(ctx, in.Branch)
		if errors.Is(err, gitrepo.ErrNoSuchBranch) && tree.Repo().Fetch(ctx) == nil { // somebody may have pushed it since
			_, err = tree.Checkout(ctx, in.Branch)
		}
		return err
	})
}

// mayStandOn prevents checking out the default branch of a clone or a new repository. Merges move
// that branch without updating the files, so the next commit would undo them.
func mayStandOn(repo work.Repo, branch string) error {
	if repo.Kind != work.Link && branch == repo.Branch {
		return operation.Errorf(operation.Conflict, "only merges move %s of %s, so it cannot be checked out; the branch workspace follows it, and `git_merge` merges into it", branch, repo.ID)
	}
	return nil
}

func (h *Handler) switched(ctx context.Context, by operation.Caller, in operations.GitBranchName, change func(*gitrepo.Tree, work.Repo, *operations.GitBranch) error) (operations.GitBranch, error) {
	tree, p, repo, err := h.checkout(ctx, by, in.GitPlace, true)
	if err != nil {
		return operations.GitBranch{}, err
	}
	out := operations.GitBranch{Project: p.ID, Repo: repo.ID, Branch: in.Branch}
	if out.Warning, err = h.disturbs(ctx, p.ID); err != nil {
		return out, err
	}
	before, err := tree.Status(ctx)
	if err != nil {
		return out, gitError(err)
	}
	if out.Before = before.Branch; out.Before == in.Branch {
		out.Before = ""
	}
	if err := change(tree, repo, &out); err != nil {
		return out, gitError(err)
	}
	return out, h.happened(ctx, by, p.ID, "git."+out.Status, repo.ID+" "+in.Branch)
}

// mergeTries is how often a merge is recomputed because somebody else was faster.
const mergeTries = 3

// GitMerge implements the operation of the same name.
func (h *Handler) GitMerge(ctx context.Context, by operation.Caller, in operations.GitMergeRequest) (operations.GitMerged, error) {
	p, repos, err := h.place(ctx, by, in.Project, in.Repo)
	if err != nil {
		return operations.GitMerged{}, err
	}
	repo, known, err := h.o.Git.Repo(ctx, p.ID, repos[0].ID)
	if err != nil {
		return operations.GitMerged{}, gitError(err)
	}
	out := operations.GitMerged{Project: p.ID, Repo: known.ID, Branch: in.Branch, Target: cmp.Or(in.Into, known.Branch)}
	if out.Warning, err = h.disturbs(ctx, p.ID); err != nil {
		return out, err
	}
	if err := repo.Fetch(ctx); err != nil { // the branch may be new at the remote
		return out, gitError(err)
	}
	var done gitrepo.Prepared
	for try := range mergeTries {
		done, err = repo.Prepare(ctx, gitrepo.MergeRequest{Target: out.Target, Head: in.Branch, At: h.o.Now(), Message: fmt.Sprintf("Merge branch '%s' into %s", in.Branch, out.Target), By: author(by)})
		if err == nil {
			err = repo.Apply(ctx, done)
		}
		if !errors.Is(err, gitrepo.ErrMoved) || try == mergeTries-1 {
			break
		}
	}
	var ours *gitrepo.Error
	switch {
	case errors.As(err, &ours) && errors.Is(err, gitrepo.ErrConflict):
		out.Status, out.Conflicts, out.Message = "conflict", ours.Files, fmt.Sprintf("Merge conflict — merge of '%s' into '%s' was aborted: %s", in.Branch, out.Target, ours.Text)
		return out, nil
	case err != nil:
		return out, gitError(err)
	case done.OID == done.Base:
		out.Status, out.Commit, out.Message, out.Warning = "nothing_to_merge", done.Base, fmt.Sprintf("%s has all of %s already", out.Target, in.Branch), ""
		return out, nil
	}
	out.Merged, out.Status, out.Commit = true, "merged", done.OID
	return out, h.happened(ctx, by, p.ID, "git.merged", known.ID+" "+in.Branch+" into "+out.Target)
}

// GitCreatePR implements the operation of the same name.
func (h *Handler) GitCreatePR(ctx context.Context, by operation.Caller, in operations.NewPullRequest) (operations.PullRequest, error) {
	tree, p, repo, err := h.checkout(ctx, by, in.GitPlace, false)
	if err != nil {
		return operations.PullRequest{}, err
	}
	out := operations.PullRequest{Project: p.ID, Repo: repo.ID, Base: cmp.Or(in.Base, repo.Branch)}
	if out.Branch, err = tree.Push(ctx, in.Branch); err != nil {
		return out, gitError(err)
	}
	made, err := tree.Repo().CreatePR(ctx, gitrepo.NewPull{Head: out.Branch, Base: out.Base, Title: in.Title, Body: in.Body})
	if err != nil {
		return out, gitError(err)
	}
	out.URL, out.Number = made.URL, made.Number
	return out, h.happened(ctx, by, p.ID, "git.pull_request", repo.ID+" "+made.URL)
}
