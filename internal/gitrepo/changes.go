package gitrepo

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"chorus/internal/plainfile"
)

// File is a file that changed.
type File struct {
	Path    string `json:"path"`
	From    string `json:"from,omitempty"` // its name before, if it was renamed
	Status  string `json:"status"`         // added, modified, deleted, renamed, copied, type changed
	Added   int    `json:"added"`          // lines
	Deleted int    `json:"deleted"`
	Binary  bool   `json:"binary,omitempty"` // then lines are not counted
}

var statuses = map[byte]string{'A': "added", 'M': "modified", 'D': "deleted", 'R': "renamed", 'C': "copied", 'T': "type changed"}

// Diff is the difference between two states.
type Diff struct {
	Files     []File
	Text      string // the patch, valid UTF-8, cut at the end of a line
	Truncated bool   // the patch is longer than Text
}

// safeDiff are options which ensure that a diff runs no program chosen by the repository.
var safeDiff = []string{"--no-ext-diff", "--no-textconv", "--no-color", "--ignore-submodules=dirty", "--find-renames", "-l1000"}

// ChangedFiles returns the files that differ between head and its fork
// point from base. Both are branches or commits.
func (r *Repo) ChangedFiles(ctx context.Context, base, head string) ([]File, error) {
	d, err := r.Diff(ctx, base, head, 0)
	return d.Files, err
}

// Diff returns what head has changed since it left base, with at most limit
// bytes of the patch. With 0 it only lists the files.
func (r *Repo) Diff(ctx context.Context, base, head string, limit int) (Diff, error) {
	to, err := r.commit(ctx, head)
	if err != nil {
		return Diff{}, err
	}
	from, err := r.forkPoint(ctx, base, to)
	if err != nil {
		return Diff{}, err
	}
	var d Diff
	return d, r.compare(ctx, &d, from, to, limit, nil)
}

// forkPoint returns where head left base: their best common ancestor, or base itself if they have none.
func (r *Repo) forkPoint(ctx context.Context, base, head string) (string, error) {
	from, err := r.commit(ctx, base)
	if err != nil {
		return "", err
	}
	fork, err := r.ask(ctx, "merge-base", from, head)
	if exited(err, 1) {
		return from, nil
	}
	return fork, explain(err)
}

// compare fills d with the difference between two trees or commits.
func (r *Repo) compare(ctx context.Context, d *Diff, from, to string, limit int, env []string) error {
	args := append([]string{"diff-tree", "-r", "-z", "--raw", "--numstat"}, safeDiff...)
	out, err := r.git(ctx, command{args: append(args, from, to), env: env})
	if err != nil {
		return explain(err)
	}
	d.Files = parseFiles(out)
	if limit <= 0 || len(d.Files) == 0 {
		return nil
	}
	args = append([]string{"diff-tree", "-r", "-p"}, safeDiff...)
	patch, cut, err := r.clipped(ctx, r.at(command{args: append(args, from, to), env: env, max: limit, clip: true}))
	if err != nil {
		return explain(err)
	}
	d.Text, d.Truncated = strings.ToValidUTF8(patch, "\uFFFD"), cut
	if end := strings.LastIndexByte(d.Text, '\n'); cut && end >= 0 {
		d.Text = d.Text[:end+1]
	}
	return nil
}

// parseFiles reads the output of --raw --numstat -z: first a record for each file that begins with
// a colon, then one with the line counts of each. The two names of a rename are separate records.
func parseFiles(out string) []File {
	var files []File
	at := map[string]int{}
	fields := split(out)
	for i := 0; i < len(fields); i++ {
		if raw, ok := strings.CutPrefix(fields[i], ":"); ok {
			parts := strings.Fields(raw)
			if len(parts) < 5 || i+1 >= len(fields) {
				break
			}
			f := File{Status: statuses[parts[4][0]]}
			if i++; parts[4][0] == 'R' || parts[4][0] == 'C' {
				f.From = fields[i]
				i++
			}
			if i < len(fields) {
				f.Path = fields[i]
				at[f.Path] = len(files)
				files = append(files, f)
			}
			continue
		}
		added, rest, _ := strings.Cut(fields[i], "\t")
		deleted, name, ok := strings.Cut(rest, "\t")
		if ok && name == "" && i+2 < len(fields) {
			name = fields[i+2]
			i += 2
		}
		if n, ok := at[name]; ok {
			files[n].Added, _ = strconv.Atoi(added)
			files[n].Deleted, _ = strconv.Atoi(deleted)
			files[n].Binary = added == "-"
		}
	}
	return files
}

// ChangedFiles returns the files that differ between the tree's current state,
// including new files that are not ignored, and where it left base.
func (t *Tree) ChangedFiles(ctx context.Context, base string) ([]File, error) {
	d, err := t.Diff(ctx, base, 0)
	return d.Files, err
}

// Diff returns what the tree's current state, including new files that are not
// ignored, has changed since it left base; "" is the last commit. It does not touch
// the tree's index, and stores nothing in the repository.
func (t *Tree) Diff(ctx context.Context, base string, limit int) (Diff, error) {
	if err := t.trusted(); err != nil {
		return Diff{}, err
	}
	from, err := t.ask(ctx, "rev-parse", "--verify", "--quiet", "HEAD^{commit}")
	switch {
	case exited(err, 1):
		if from, err = t.ask(ctx, "hash-object", "-t", "tree", "--stdin"); err != nil { // no commit yet: use an empty tree
			return Diff{}, explain(err)
		}
	case err != nil:
		return Diff{}, explain(err)
	case base != "":
		if from, err = t.repo.forkPoint(ctx, base, from); err != nil {
			return Diff{}, err
		}
	}
	snapshot, env, remove, err := t.snapshot(ctx)
	if err != nil {
		return Diff{}, explain(err)
	}
	defer remove()
	var d Diff
	return d, t.repo.compare(ctx, &d, from, snapshot, limit, env)
}

// snapshot makes a tree object of everything that is in the tree now, outside of the
// repository. Until remove is called, git finds it with the variables env.
func (t *Tree) snapshot(ctx context.Context) (oid string, env []string, remove func(), err error) {
	dir, err := os.MkdirTemp("", "chorus-git-")
	if err != nil {
		return "", nil, nil, err
	}
	defer func() {
		if err != nil {
			_ = os.RemoveAll(dir)
		}
	}()
	index := filepath.Join(dir, "index")
	if err := copyFile(filepath.Join(t.gitDir, "index"), index); err != nil && !os.IsNotExist(err) {
		return "", nil, nil, err
	}
	objects := filepath.Join(dir, "objects")
	if err := os.Mkdir(objects, 0o700); err != nil {
		return "", nil, nil, err
	}
	// Git would split a path at a colon or a quote; quoting prevents that.
	store := strconv.Quote(filepath.Join(t.repo.common, "objects"))
	env = []string{"GIT_OBJECT_DIRECTORY=" + objects, "GIT_ALTERNATE_OBJECT_DIRECTORIES=" + store}
	config, err := t.repo.noPrograms(ctx, false)
	if err != nil {
		return "", nil, nil, err
	}
	if _, err = t.stage(ctx, config, index, env...); err != nil {
		return "", nil, nil, err
	}
	out, err := t.git(ctx, command{args: []string{"write-tree"}, env: append([]string{"GIT_INDEX_FILE=" + index}, env...)})
	return strings.TrimSuffix(out, "\n"), env, func() { _ = os.RemoveAll(dir) }, err
}

// copyFile copies an index. The copy gets the original's time: git compares the
// contents of files that were written at the same moment as the index, since their
// times alone do not tell whether they changed afterwards.
func copyFile(from, to string) error {
	source, info, err := plainfile.Open(from)
	if err != nil {
		return err
	}
	defer source.Close()
	target, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(target, source)
	if err = errors.Join(err, target.Close()); err != nil {
		return err
	}
	return os.Chtimes(to, info.ModTime(), info.ModTime())
}
