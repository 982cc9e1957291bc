package workrun

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"chorus/internal/chat"
	"chorus/internal/gitrepo"
	"chorus/internal/journal"
	"chorus/internal/work"
)

// us is the author of commits of what agents left.
var us = gitrepo.Person{Name: "Chorus", Email: "chorus@localhost"}

// dir returns the folder of a task without a repository.
func (r *Runner) dir(t work.Task) string {
	return filepath.Join(r.Home.TaskDir(t.Project, ownerID(t)), "files")
}

// tree returns the checkout for a task, or nil if its project has no
// repository. The steps of a plan share their parent's.
func (r *Runner) tree(ctx context.Context, t work.Task) (*work.Worktree, error) {
	if t.Repo == "" {
		return nil, nil
	}
	owner, err := r.owner(ctx, t)
	if err != nil {
		return nil, err
	}
	branch := cmp.Or(owner.Branch, gitrepo.BranchName(owner.ID, owner.Title))
	return &work.Worktree{Task: owner.ID, Project: t.Project, Repo: t.Repo, Path: filepath.Join(r.Home.TaskDir(owner.Project, owner.ID), owner.ID), Branch: branch}, nil
}

// open opens the repository of a task, creating it if needed.
func (r *Runner) open(ctx context.Context, project, id string) (*gitrepo.Repo, work.Repo, error) {
	repos, err := r.Tasks.Repos(ctx, project)
	if err != nil {
		return nil, work.Repo{}, err
	}
	for _, known := range repos {
		if known.ID != id {
			continue
		}
		repo, err := r.openRepo(ctx, known)
		if err != nil {
			return nil, known, err
		}
		if known.Branch == "" {
			if known.Branch, err = repo.DefaultBranch(ctx); err == nil {
				err = r.Tasks.SetRepo(ctx, known)
			}
		}
		return repo, known, err
	}
	return nil, work.Repo{}, fmt.Errorf("project %s has %w %s any more; edit the task or add it again", project, errNoRepo, id)
}

// errNoRepo means that the repository was removed from its project, or with it.
var errNoRepo = errors.New("no repository")

func (r *Runner) openRepo(ctx context.Context, known work.Repo) (*gitrepo.Repo, error) {
	switch known.Kind {
	case work.Link:
		return gitrepo.Link(ctx, known.Path, r.Git)
	case work.Init:
		if err := os.MkdirAll(filepath.Dir(known.Path), 0o700); err != nil {
			return nil, err
		}
		branch := cmp.Or(known.Branch, "main")
		return gitrepo.Init(ctx, known.Path, branch, us, known.Created, r.Git)
	default:
		if err := os.MkdirAll(filepath.Dir(known.Path), 0o700); err != nil {
			return nil, err
		}
		repo, err := gitrepo.Clone(ctx, known.URL, known.Path, r.Git)
		if err != nil {
			return nil, err
		}
		if err := repo.VerifyRemote(ctx, known.URL); err != nil {
			return nil, err
		}
		return repo, nil
	}
}

// prepare creates a task's checkout and gives its worker the prompt. It can be
// repeated: it keeps what exists and gives the prompt only once.
func (r *Runner) prepare(ctx context.Context, t work.Task) (moved bool) {
	now, err := r.Tasks.Task(ctx, t.ID)
	if err != nil || now.State != work.Assigned || now.Attempt != t.Attempt || now.Run != "" {
		return false // it moved meanwhile
	}
	if t = now; t.Repo == "" {
		if err := os.MkdirAll(r.dir(t), 0o700); err != nil {
			r.failed(ctx, t, work.ErrorUnexpected, err)
			return true
		}
	} else if err := r.checkout(ctx, t); err != nil {
		r.failed(ctx, t, work.ErrorGit, err)
		return true
	}
	if err := r.dropPlan(ctx, t); err != nil {
		r.failed(ctx, t, work.ErrorUnexpected, err)
		return true
	}
	words, err := r.prompt(ctx, t)
	if err != nil {
		r.failed(ctx, t, work.ErrorUnexpected, err)
		return true
	}
	refused, err := r.Say(ctx, t, words, fmt.Sprintf("work/%s/%d", t.ID, t.Attempt))
	if err == nil && refused != "" {
		err = errors.New(refused)
	}
	if err != nil {
		r.failed(ctx, t, work.ErrorUnexpected, err)
		return true
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.said[t.ID] = t.Attempt
	return false
}

func (r *Runner) dropPlan(ctx context.Context, t work.Task) error {
	dir := r.dir(t)
	if tree, err := r.tree(ctx, t); err != nil {
		return err
	} else if tree != nil {
		dir = tree.Path
	}
	return r.dropPlanFile(ctx, t, dir)
}

// checkout creates the worktree of a task.
func (r *Runner) checkout(ctx context.Context, t work.Task) error {
	want, err := r.tree(ctx, t)
	if err != nil {
		return err
	}
	repo, known, err := r.open(ctx, t.Project, t.Repo)
	if err != nil {
		return err
	}
	if repo.Kind() == gitrepo.KindClone {
		if err := repo.Fetch(ctx); err != nil {
			return err
		}
	}
	if err := os.MkdirAll(filepath.Dir(want.Path), 0o700); err != nil {
		return err
	}
	tree, err := repo.Add(ctx, want.Path, want.Branch, known.Branch)
	if err != nil {
		return err
	}
	tree.Close()
	want.State, want.Base = "ready", known.Branch
	return r.Tasks.SetWorktree(ctx, *want)
}

// prompt returns what the worker is told. It sees only this and the files.
func (r *Runner) prompt(ctx context.Context, t work.Task) (string, error) {
	var b strings.Builder
	p, err := r.Tasks.Project(ctx, t.Project)
	if err != nil {
		return "", err
	}
	fmt.Fprintf(&b, "# %s\n\n%s\n\n## How to work\n\n", t.Title, t.Description)
	fmt.Fprintf(&b, "- This is task `%s` of project %s (`%s`), attempt %d.\n", t.ID, p.Name, p.ID, t.Attempt)
	if t.Branch != "" {
		fmt.Fprintf(&b, "- Your workspace is a checkout of your own, on the branch `%s`. Stay on it. Commit what belongs together; what you leave is committed for you. Do not push and do not merge: that is done when you have finished.\n", t.Branch)
	} else {
		b.WriteString("- Your workspace is an empty folder of your own. Put there what should be kept.\n")
	}
	b.WriteString("- Nobody reads along. Decide what you can decide; ask only where a wrong guess would do harm.\n")
	if t.Parent == "" {
		b.WriteString("- If the task asks for a plan, write it to `.chorus/plan.md` with a heading `## Phase N: title` for each step, and what applies to all of them before the first. Each step becomes a task of its own.\n")
	} else {
		fmt.Fprintf(&b, "- It is a step of a plan: do this step alone, and write no plan.\n")
	}
	b.WriteString("- End with a short summary: what you changed, what you checked, what is left.\n")
	if t.Attempt > 1 {
		b.WriteString("- An earlier attempt ended before it was done. Look at what is there before you begin.\n")
	}
	needs, err := r.Tasks.Needs(ctx, t.ID)
	if err != nil {
		return "", err
	}
	for i, n := range needs {
		if i == 0 {
			b.WriteString("\n## What was done before\n\n")
		}
		results, err := r.Tasks.Results(ctx, n.ID)
		if err != nil {
			return "", err
		}
		summary := ""
		if len(results) > 0 {
			summary = results[0].Summary
		}
		fmt.Fprintf(&b, "- `%s` %s: %s\n", n.ID, n.Title, oneParagraph(summary))
	}
	return b.String(), nil
}

func oneParagraph(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	if runes := []rune(text); len(runes) > 500 {
		return string(runes[:500]) + "…"
	}
	return text
}

// Grant returns what the commands of a task's worker may read and write of its
// checkout's repository, or nothing for a task without a repository.
func (r *Runner) Grant(ctx context.Context, thread chat.ThreadID) (readable, writable []string, err error) {
	t, err := r.Tasks.Task(ctx, thread.Thread())
	if errors.Is(err, journal.ErrUnknown) {
		return nil, nil, nil // it was deleted, but its conversation remains
	}
	if err != nil || t.Repo == "" {
		return nil, nil, err
	}
	want, err := r.tree(ctx, t)
	if err != nil {
		return nil, nil, err
	}
	repo, _, err := r.open(ctx, t.Project, t.Repo)
	if err != nil {
		return nil, nil, err
	}
	tree, err := repo.Tree(want.Path)
	if err != nil {
		return nil, nil, err
	}
	return tree.Grant(want.Branch)
}
