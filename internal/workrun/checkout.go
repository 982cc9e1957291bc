package workrun

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	"chorus/internal/gitrepo"
	"chorus/internal/work"
)

// workspaceBranch is what the checkout of a project stands on at first. The default branch itself is not checked out there: merges
// move it, and would leave the files behind.
const workspaceBranch = "workspace"

// Repo opens a repository of a project, and makes it where it is not there yet.
func (r *Runner) Repo(ctx context.Context, project, id string) (*gitrepo.Repo, work.Repo, error) {
	return r.open(ctx, project, id)
}

// Checkout is where people and agents look at a repository of a project and change it beside its tasks: a linked one where it is, of
// a bare one a worktree of its own. While nothing was done there it follows the default branch.
func (r *Runner) Checkout(ctx context.Context, project, id string) (*gitrepo.Tree, work.Repo, error) {
	repo, known, err := r.open(ctx, project, id)
	if err != nil {
		return nil, known, err
	}
	if repo.Kind() == gitrepo.KindLink {
		tree, err := repo.Tree(repo.Dir())
		return tree, known, err
	}
	path := r.Home.ProjectCheckout(project, id)
	tree, err := repo.Tree(path)
	if errors.Is(err, gitrepo.ErrNoCheckout) {
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return nil, known, err
		}
		if tree, err = repo.Add(ctx, path, workspaceBranch, known.Branch); err == nil {
			tree.Close() // commands are short; git's own lock of the index keeps them apart
		}
	}
	if err != nil {
		return nil, known, err
	}
	return tree, known, tree.FastForward(ctx, known.Branch)
}
