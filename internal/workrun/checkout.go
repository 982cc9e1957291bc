package workrun

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	"chorus/internal/gitrepo"
	"chorus/internal/work"
)

// workspaceBranch is the initial branch of a project's checkout. The default branch itself is
// not checked out there, because merges move it without updating the files.
const workspaceBranch = "workspace"

// Repo opens a repository of a project, creating it if needed.
func (r *Runner) Repo(ctx context.Context, project, id string) (*gitrepo.Repo, work.Repo, error) {
	return r.open(ctx, project, id)
}

// Checkout opens the checkout in which people and agents read and change a repository of a project
// outside of tasks. For a linked repository it is the original, for a bare one a separate worktree.
// Until something is changed there, it follows the default branch.
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
			tree.Close() // commands are short; git's own index lock keeps them apart
		}
	}
	if err != nil {
		return nil, known, err
	}
	return tree, known, tree.FastForward(ctx, known.Branch)
}
