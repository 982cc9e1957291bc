package gitrepo

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// applyLink merges into a branch of a person's repository. If the branch is checked out, its
// files must follow: if only the ref moved, they would look like changes that undo the merge. So
// it changes first the files, then the index, then the ref, with the index locked. A process
// that was killed may already have done some of these.
func (r *Repo) applyLink(ctx context.Context, p Prepared) error {
	out, err := r.ask(ctx, "symbolic-ref", "--quiet", "HEAD")
	if err != nil && !exited(err, 1) {
		return explain(err)
	}
	if out != "refs/heads/"+p.Target {
		return r.moveElsewhere(ctx, p)
	}
	if err := r.lockIndex(); err != nil {
		return err
	}
	defer r.unlockIndex()
	c, err := r.compareCheckout(ctx, p)
	if err != nil {
		return err
	}
	if len(c.dirty) > 0 {
		return r.dirty(p, c.dirty)
	}
	if err := c.update(ctx); err != nil {
		return err
	}
	return r.move(ctx, p)
}

// moveElsewhere moves a branch that is not checked out, or says that another worktree has it.
func (r *Repo) moveElsewhere(ctx context.Context, p Prepared) error {
	trees, err := r.List(ctx)
	if err != nil {
		return err
	}
	for _, w := range trees {
		if w.Branch == p.Target && !w.Gone {
			e := r.dirty(p, nil)
			e.Text = fmt.Sprintf("%s is checked out at %s, which Chorus does not touch: type `git -C %s merge %s`", p.Target, w.Path, w.Path, p.name())
			e.Command = "git -C " + w.Path + " merge " + p.name()
			return e
		}
	}
	return r.move(ctx, p)
}

// name returns what is merged, as a person would say it.
func (p Prepared) name() string { return cmp.Or(p.Branch, p.Head) }

// dirty returns the error that a person must merge by hand.
func (r *Repo) dirty(p Prepared, files []string) *Error {
	typed := "git -C " + r.dir + " merge " + p.name()
	return &Error{
		Kind: ErrDirty, Files: files, Command: typed,
		Text: fmt.Sprintf("%s has uncommitted changes in %s, so Chorus does not merge there: commit or stash them, then type `%s`", r.dir, names(files), typed),
	}
}

// The names of our lock of the index and of the index being built. They are next to git's own.
const (
	ownLock  = "chorus-merging"
	ownIndex = "chorus-index"
)

// lockIndex takes git's own lock of the index, so that none of the person's git
// commands changes it meanwhile. After a crash our lock can be recognised: it is
// a second name of a file that only we have.
func (r *Repo) lockIndex() error {
	own, lock := filepath.Join(r.gitDir, ownLock), filepath.Join(r.gitDir, "index.lock")
	for _, left := range []string{ownIndex, ownIndex + ".lock"} {
		if err := os.Remove(filepath.Join(r.gitDir, left)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	if !sameFile(own, lock) {
		if err := os.WriteFile(own, []byte("Chorus is merging here.\n"), 0o600); err != nil {
			return err
		}
		if err := os.Link(own, lock); err != nil {
			_ = os.Remove(own)
			if errors.Is(err, fs.ErrExist) {
				return fail(ErrInUse, "another git command is working in %s: wait until it ends; if there is none, remove %s", r.dir, lock)
			}
			return err
		}
	}
	r.step("index locked")
	return nil
}

// unlockIndex releases our lock of the index, or that of an earlier process of ours,
// and nobody else's. The caller holds the repository's lock.
func (r *Repo) unlockIndex() {
	own, lock := filepath.Join(r.gitDir, ownLock), filepath.Join(r.gitDir, "index.lock")
	_ = os.Remove(filepath.Join(r.gitDir, ownIndex))
	if sameFile(own, lock) {
		_ = os.Remove(lock)
	}
	_ = os.Remove(own)
}

// checkout compares a checkout with the two sides of a merge.
type checkout struct {
	r      *Repo
	p      Prepared
	index  string   // the index being built
	config []string // settings that disable the repository's own programs
	dirty  []string // files that are in neither the old nor the merged state
}

// entry is a file that the merge changes, as in the index.
type entry struct {
	path          string
	before, after string // mode and object; "" if there is no file
}

func (c *checkout) git(ctx context.Context, stdin string, args ...string) (string, error) {
	return c.r.git(ctx, command{args: args, stdin: stdin, config: c.config, env: []string{"GIT_INDEX_FILE=" + c.index}})
}

// compareCheckout finds the files that are in the way, and builds an index in which every file that
// the merge changes is in its state on disk: before the merge or after it.
func (r *Repo) compareCheckout(ctx context.Context, p Prepared) (*checkout, error) {
	config, err := r.noPrograms(ctx, true)
	if err != nil {
		return nil, err
	}
	c := &checkout{r: r, p: p, index: filepath.Join(r.gitDir, ownIndex), config: config}
	entries, err := c.entries(ctx)
	if err != nil {
		return nil, err
	}
	if err := c.reset(); err != nil {
		return nil, err
	}
	if err := c.staged(ctx); err != nil {
		return nil, err
	}
	// First find the files that are already merged.
	differ, err := c.differing(ctx, entries, func(e entry) string { return e.after })
	if err != nil {
		return nil, err
	}
	mine := map[string]bool{}
	after := map[string]bool{}
	for _, e := range entries {
		mine[e.path] = true
		after[e.path] = !differ[e.path] && (e.after != "" || !exists(filepath.Join(r.dir, filepath.FromSlash(e.path))))
	}
	for path := range differ {
		if !mine[path] {
			c.dirty = append(c.dirty, path)
		}
	}
	// The others must be unchanged.
	if err := c.reset(); err != nil {
		return nil, err
	}
	differ, err = c.differing(ctx, entries, func(e entry) string {
		if after[e.path] {
			return e.after
		}
		return e.before
	})
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		if !after[e.path] && (differ[e.path] || e.before == "" && exists(filepath.Join(r.dir, filepath.FromSlash(e.path)))) {
			c.dirty = append(c.dirty, e.path)
		}
	}
	slices.Sort(c.dirty)
	c.dirty = slices.Compact(c.dirty)
	return c, nil
}

// entries returns the files that the merge changes.
func (c *checkout) entries(ctx context.Context) ([]entry, error) {
	out, err := c.git(ctx, "", "diff-tree", "-r", "-z", "--raw", "--no-renames", "--no-abbrev", c.p.Base, c.p.OID)
	if err != nil {
		return nil, explain(err)
	}
	var all []entry
	fields := split(out)
	for i := 0; i+1 < len(fields); i += 2 {
		parts := strings.Fields(strings.TrimPrefix(fields[i], ":"))
		if len(parts) < 5 {
			return nil, fmt.Errorf("git diff-tree gave %q", fields[i])
		}
		e := entry{path: fields[i+1]}
		if parts[0] != "000000" {
			e.before = parts[0] + " " + parts[2]
		}
		if parts[1] != "000000" {
			e.after = parts[1] + " " + parts[3]
		}
		all = append(all, e)
	}
	return all, nil
}

// reset starts again with the person's index.
func (c *checkout) reset() error { return copyFile(filepath.Join(c.r.gitDir, "index"), c.index) }

// staged finds what the person has added to the index: whatever differs from both sides of the merge.
func (c *checkout) staged(ctx context.Context) error {
	var differs [2][]string
	for i, side := range []string{c.p.Base, c.p.OID} {
		out, err := c.git(ctx, "", "diff-index", "--cached", "-z", "--name-only", "--no-renames", "--ignore-submodules=none", side)
		if err != nil {
			return explain(err)
		}
		differs[i] = split(out)
	}
	for _, path := range differs[0] {
		if slices.Contains(differs[1], path) {
			c.dirty = append(c.dirty, path)
		}
	}
	return nil
}

// differing puts one side of the merged files into the index and returns the files that differ from it on disk.
func (c *checkout) differing(ctx context.Context, entries []entry, side func(entry) string) (map[string]bool, error) {
	var b strings.Builder
	for _, e := range entries {
		b.WriteString(cmp.Or(side(e), "0 "+zeros(c.p.OID)) + "\t" + e.path + "\x00")
	}
	if _, err := c.git(ctx, b.String(), "update-index", "-z", "--index-info"); err != nil {
		return nil, explain(err)
	}
	// It exits with 1 when something differs, which the next command determines.
	if _, err := c.git(ctx, "", "update-index", "-q", "--ignore-submodules", "--refresh"); err != nil && !exited(err, 1) {
		return nil, explain(err)
	}
	out, err := c.git(ctx, "", "diff-files", "-z", "--name-only", "--ignore-submodules=dirty")
	if err != nil {
		return nil, explain(err)
	}
	paths := map[string]bool{}
	for _, path := range split(out) {
		paths[path] = true
	}
	return paths, nil
}

// update brings files and index to the merged state. Git itself checks
// again that it overwrites only unchanged files.
func (c *checkout) update(ctx context.Context) error {
	if _, err := c.git(ctx, "", "read-tree", "-m", "-u", c.p.Base, c.p.OID); err != nil {
		if e, ok := errors.AsType[*exitError](err); ok && (strings.Contains(e.said, "not uptodate") || strings.Contains(e.said, "would be overwritten") || strings.Contains(e.said, "would be removed")) {
			return c.r.dirty(c.p, []string{oneLine(e.said)})
		}
		return explain(err)
	}
	c.r.step("files updated")
	if err := os.Rename(c.index, filepath.Join(c.r.gitDir, "index")); err != nil {
		return err
	}
	c.r.step("index updated")
	return nil
}
