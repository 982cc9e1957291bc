package gitrepo

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"chorus/internal/lockfile"
	"chorus/internal/plainfile"
)

// Worktree is a worktree of a repository as listed by git.
type Worktree struct {
	Path   string
	Branch string // "" if no branch is checked out
	Gone   bool   // its folder is missing
}

// Add creates a worktree for a branch at path and claims it: until the Tree is closed, nobody else
// gets it, in this or another process (ErrInUse). A branch that does not exist begins at base. An
// existing matching tree is used, including its uncommitted changes. One whose creation or removal
// was not completed is created again. A tree on another branch is ErrWrongBranch.
//
// The folder's name must be unique among the repository's worktrees and
// consist of letters, digits, dots and dashes.
func (r *Repo) Add(ctx context.Context, path, branch, base string) (tree *Tree, err error) {
	if err := r.checkPath(path); err != nil {
		return nil, err
	}
	if err := CheckBranch(branch); err != nil {
		return nil, err
	}
	claim, err := claimTree(path)
	if err != nil {
		return nil, err
	}
	defer func() {
		if tree == nil {
			claim.Release()
		}
	}()
	release, err := r.lock(ctx)
	if err != nil {
		return nil, err
	}
	defer release()
	t := r.tree(path)
	t.claim = claim
	whole, err := t.whole()
	if err != nil {
		return nil, err
	}
	if whole {
		return t, t.adopt(ctx, branch)
	}
	if err := t.discard(); err != nil {
		return nil, err
	}
	r.step("discarded")
	if err := t.make(ctx, branch, base); err != nil {
		return nil, explain(err)
	}
	return t, nil
}

// checkPath checks whether a worktree can be at path. Git derives the name of its own
// folder from the last part of the path. Only with a name that git keeps unchanged can
// that folder be found again without trusting the tree.
func (r *Repo) checkPath(path string) error {
	name := filepath.Base(path)
	switch {
	case !filepath.IsAbs(path) || filepath.Clean(path) != path:
		return fail(ErrBadName, "%q cannot be a worktree: give an absolute path without . and ..", path)
	case !folderForm().MatchString(name) || strings.HasSuffix(name, ".lock") || len(name) > 120:
		return fail(ErrBadName, "%q cannot be a worktree: the folder's name may have only letters, digits, dots and dashes", path)
	case path == r.dir || strings.HasPrefix(path+"/", r.common+"/"):
		return fail(ErrBadName, "%q cannot be a worktree: the repository itself is there", path)
	}
	return nil
}

// claimTree takes the lock of a tree, which is a file next to it.
func claimTree(path string) (*lockfile.Lock, error) {
	claim, err := lockfile.Try(path+".lock", fmt.Appendf(nil, "%d\n", os.Getpid()))
	if errors.Is(err, lockfile.ErrHeld) {
		return nil, fail(ErrInUse, "the worktree %s is in use: wait until the task that works there has ended, or stop it", path)
	}
	return claim, err
}

// tree returns the worktree at a path, whether it exists or not.
func (r *Repo) tree(path string) *Tree {
	return &Tree{repo: r, path: path, gitDir: filepath.Join(r.common, "worktrees", filepath.Base(path))}
}

// Tree opens a checkout: the linked one, or a worktree that Add made. It does
// not claim it, so it can be read while a task works there.
func (r *Repo) Tree(path string) (*Tree, error) {
	if r.kind == KindLink && filepath.Clean(path) == r.dir {
		return &Tree{repo: r, path: r.dir, gitDir: r.gitDir}, nil
	}
	if err := r.checkPath(path); err != nil {
		return nil, err
	}
	t := r.tree(path)
	whole, err := t.whole()
	if err != nil {
		return nil, err
	}
	if !whole {
		return nil, fail(ErrNoCheckout, "there is no worktree at %s", path)
	}
	return t, nil
}

// beingRemoved is the content of git's own lock file for trees while we remove one.
const beingRemoved = "chorus: being removed\n"

// smallFile is far more than the size of the files with which git points from one folder to another.
const smallFile = 8192

// whole reports whether the tree is a complete worktree of this repository.
// If the folder is something else, it returns an error.
func (t *Tree) whole() (bool, error) {
	if err := t.trusted(); err != nil {
		return false, err
	}
	_, pathErr := os.Lstat(t.path)
	at, err := plainfile.Read(filepath.Join(t.gitDir, "gitdir"), smallFile)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if !exists(t.gitDir) && pathErr == nil && !emptyDir(t.path) {
			return false, fail(ErrExists, "%s exists and is not a worktree of %s: move it away, or choose another path", t.path, t.repo.dir)
		}
		return false, nil
	case err != nil:
		return false, err
	}
	if there := strings.TrimSuffix(strings.TrimSuffix(string(at), "\n"), "/.git"); there != t.path && !sameFile(there, t.path) {
		if exists(there) {
			return false, fail(ErrInUse, "the repository at %s has another worktree with this folder's name, %s: choose another name", t.repo.dir, there)
		}
		return false, nil
	}
	// Git locks a tree until it is complete and writes the index last.
	return pathErr == nil && !exists(filepath.Join(t.gitDir, "locked")) && exists(filepath.Join(t.gitDir, "index")), nil
}

// adopt takes over an existing tree.
func (t *Tree) adopt(ctx context.Context, branch string) error {
	dotGit := filepath.Join(t.path, ".git")
	data, err := plainfile.ReadNoLink(dotGit, smallFile)
	if errors.Is(err, fs.ErrNotExist) {
		err = os.WriteFile(dotGit, []byte("gitdir: "+t.gitDir+"\n"), 0o644)
		data = []byte("gitdir: " + t.gitDir)
	}
	if err != nil || !sameFile(strings.TrimSpace(strings.TrimPrefix(string(data), "gitdir: ")), t.gitDir) {
		return fail(ErrTampered, "the .git of the worktree %s was replaced: check what is in it, then remove the worktree", t.path)
	}
	t.dropLocks(branch)
	return t.on(ctx, branch)
}

// dropLocks removes the locks that a killed git left in the worktree. We
// hold the claim, so whoever made them is gone.
func (t *Tree) dropLocks(branch string) {
	for _, lock := range []string{filepath.Join(t.gitDir, "index.lock"), filepath.Join(t.gitDir, "HEAD.lock"), t.repo.refLock(branch)} {
		_ = os.Remove(lock)
	}
}

// refLock returns the file with which git locks a branch.
func (r *Repo) refLock(branch string) string {
	return filepath.Join(r.common, "refs/heads", filepath.FromSlash(branch)+".lock")
}

// discard removes what is left of a tree. It may be repeated.
func (t *Tree) discard() error {
	if exists(t.gitDir) {
		if err := os.WriteFile(filepath.Join(t.gitDir, "locked"), []byte(beingRemoved), 0o644); err != nil {
			return err
		}
	}
	t.repo.step("marked")
	if err := removeAll(t.path); err != nil {
		return err
	}
	t.repo.step("files removed")
	return removeAll(t.gitDir)
}

// removeAll removes a folder, even if an agent made folders in it that cannot be written.
func removeAll(path string) error {
	err := os.RemoveAll(path)
	if !errors.Is(err, fs.ErrPermission) {
		return err
	}
	_ = filepath.WalkDir(path, func(at string, d fs.DirEntry, err error) error {
		if d != nil && d.IsDir() {
			_ = os.Chmod(at, 0o700)
		}
		return nil
	})
	return os.RemoveAll(path)
}

// make checks out the branch.
func (t *Tree) make(ctx context.Context, branch, base string) error {
	r := t.repo
	config, err := r.noPrograms(ctx, true)
	if err != nil {
		return err
	}
	args := []string{"worktree", "add", "--quiet"}
	if _, err := r.ask(ctx, "rev-parse", "--verify", "--quiet", "--end-of-options", "refs/heads/"+branch+"^{commit}"); err == nil {
		args = append(args, "--", t.path, branch)
	} else {
		oid, err := r.commit(ctx, base)
		if err != nil {
			return err
		}
		args = append(args, "--no-track", "-b", branch, "--", t.path, oid)
	}
	if err := os.MkdirAll(filepath.Dir(t.path), 0o700); err != nil {
		return err
	}
	_, err = r.git(ctx, command{args: args, config: config})
	if err != nil {
		if strings.Contains(err.Error(), "already checked out at") {
			return fail(ErrInUse, "the branch %s is checked out in another worktree: %s", branch, err.Error())
		}
		_ = t.discard() // before anybody could work in it
		return err
	}
	if whole, err := t.whole(); err != nil || !whole {
		return errors.Join(fmt.Errorf("git made the worktree %s in another way than expected", t.path), err)
	}
	return nil
}

// Remove removes a worktree with everything in it. Its branch stays. It is no
// error if there is none; a claimed one is ErrInUse.
func (r *Repo) Remove(ctx context.Context, path string) error {
	if err := r.checkPath(path); err != nil {
		return err
	}
	claim, err := claimTree(path)
	if err != nil {
		return err
	}
	defer claim.Release()
	t := r.tree(path)
	t.claim = claim
	return t.Remove(ctx)
}

// Remove removes a worktree that this process has claimed. The caller must still close it.
func (t *Tree) Remove(ctx context.Context) error {
	if t.path == t.repo.dir {
		return fail(ErrBadName, "%s is a linked checkout, which Chorus does not remove", t.path)
	}
	if t.claim == nil {
		return fail(ErrInUse, "the worktree %s must be claimed before it is removed", t.path)
	}
	release, err := t.repo.lock(ctx)
	if err != nil {
		return err
	}
	defer release()
	if _, err := t.whole(); errors.Is(err, ErrExists) || errors.Is(err, ErrInUse) {
		return err
	}
	return t.discard()
}

// Grant returns what an agent must be able to read and write in the repository to work
// with git in its tree: commit, amend, rebase and merge on the branch. Everything else
// must be read-only for the agent; otherwise it could move other branches, or create
// settings from which git starts programs.
func (t *Tree) Grant(branch string) (readable, writable []string, err error) {
	if err := CheckBranch(branch); err != nil {
		return nil, nil, err
	}
	// Git creates its lock next to a ref, so the folder must be writable. The
	// folder belongs to the task: it is named by its id.
	folder, _, ok := strings.Cut(branch, "/")
	if !ok {
		return nil, nil, fail(ErrBadName, "%q has no folder of its own, so an agent could not be restricted to it: use a branch like task/%s", branch, branch)
	}
	writable = []string{
		filepath.Join(t.repo.common, "objects"), filepath.Join(t.repo.common, "refs", "heads", folder),
		filepath.Join(t.repo.common, "logs", "refs", "heads", folder), t.gitDir,
	}
	for _, dir := range writable {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return nil, nil, err
		}
	}
	return []string{t.repo.common}, writable, nil
}

// List returns the worktrees, without the repository itself.
func (r *Repo) List(ctx context.Context) ([]Worktree, error) {
	out, err := r.git(ctx, command{args: []string{"worktree", "list", "--porcelain", "-z"}})
	if err != nil {
		return nil, explain(err)
	}
	var all []Worktree
	for i, entry := range strings.Split(out, "\x00\x00") {
		if i == 0 || entry == "" { // the first is the repository
			continue
		}
		var w Worktree
		for line := range strings.SplitSeq(entry, "\x00") {
			key, value, _ := strings.Cut(line, " ")
			switch key {
			case "worktree":
				w.Path = value
			case "branch":
				w.Branch = strings.TrimPrefix(value, "refs/heads/")
			}
		}
		w.Gone = !isDir(w.Path)
		all = append(all, w)
	}
	return all, nil
}

// DeleteBranch deletes a branch here and, for a clone, at the remote. It is no
// error if there is none; one that is checked out is ErrInUse.
func (r *Repo) DeleteBranch(ctx context.Context, branch string) error {
	if err := CheckBranch(branch); err != nil {
		return err
	}
	release, err := r.lock(ctx)
	if err != nil {
		return err
	}
	defer release()
	trees, err := r.List(ctx)
	if err != nil {
		return err
	}
	for _, w := range trees {
		if w.Branch == branch && !w.Gone {
			return fail(ErrInUse, "the branch %s is checked out at %s: remove that worktree first", branch, w.Path)
		}
	}
	if r.kind == KindLink {
		if at, _ := r.ask(ctx, "symbolic-ref", "--quiet", "HEAD"); at == "refs/heads/"+branch {
			return fail(ErrInUse, "the branch %s is checked out at %s: type `git switch` there first", branch, r.dir)
		}
	}
	if r.kind == KindClone {
		_, err := r.git(ctx, command{args: []string{"push", "--quiet", "--no-verify", "--end-of-options", "origin", ":refs/heads/" + branch}, network: true})
		if err != nil && !strings.Contains(err.Error(), "remote ref does not exist") {
			return pushError(err, branch)
		}
		if _, err := r.git(ctx, command{args: []string{"update-ref", "--no-deref", "-d", remoteRefs + branch}}); err != nil {
			return explain(err)
		}
	}
	_ = os.Remove(r.refLock(branch)) // no worktree has the branch, so a killed git left it
	_, err = r.git(ctx, command{args: []string{"update-ref", "--no-deref", "-d", "refs/heads/" + branch}})
	return explain(err)
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

func emptyDir(path string) bool {
	entries, err := os.ReadDir(path)
	return err == nil && len(entries) == 0
}

func sameFile(a, b string) bool {
	one, err := os.Stat(a)
	if err != nil {
		return false
	}
	other, err := os.Stat(b)
	return err == nil && os.SameFile(one, other)
}
