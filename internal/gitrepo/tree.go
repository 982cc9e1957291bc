package gitrepo

import (
	"cmp"
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"chorus/internal/lockfile"
	"chorus/internal/pattern"
	"chorus/internal/text"
)

// Tree is a checkout: a linked one, or a worktree.
type Tree struct {
	repo   *Repo
	path   string
	gitDir string
	claim  *lockfile.Lock
}

// Path returns the folder of its files.
func (t *Tree) Path() string { return t.path }

// Repo returns the repository that it belongs to.
func (t *Tree) Repo() *Repo { return t.repo }

// Close releases the claim that Add made. It may be called twice.
func (t *Tree) Close() {
	if t.claim != nil {
		t.claim.Release()
		t.claim = nil
	}
}

// trusted checks that git's own folder for a worktree contains only regular files. The agent that
// worked there can write it, and git follows links when it appends to a log.
func (t *Tree) trusted() error {
	if t.gitDir == t.repo.gitDir {
		return nil
	}
	return onlyPlain(t.gitDir, t.path)
}

func onlyPlain(dir, tree string) error {
	return filepath.WalkDir(dir, func(at string, d fs.DirEntry, err error) error {
		if err != nil {
			if os.IsNotExist(err) {
				return nil
			}
			return err
		}
		if !d.IsDir() && !d.Type().IsRegular() {
			return fail(ErrTampered, "git's own files of the worktree %s were replaced by something else (%s): remove the worktree and begin the task again", tree, text.OneLine(at))
		}
		return nil
	})
}

// git runs git in the tree. It does not trust what the tree says about itself.
func (t *Tree) git(ctx context.Context, c command) (string, error) {
	return t.repo.runner.git(ctx, t.at(c))
}

func (t *Tree) at(c command) command {
	c.env = append([]string{"GIT_DIR=" + t.gitDir, "GIT_COMMON_DIR=" + t.repo.common, "GIT_WORK_TREE=" + t.path}, c.env...)
	c.dir = cmp.Or(c.dir, t.path)
	return c
}

func (t *Tree) ask(ctx context.Context, args ...string) (string, error) {
	out, err := t.git(ctx, command{args: args})
	return strings.TrimSuffix(out, "\n"), err
}

// branch returns the current branch, or "" if no branch is checked out.
func (t *Tree) branch(ctx context.Context) (string, error) {
	ref, err := t.ask(ctx, "symbolic-ref", "--quiet", "HEAD")
	if exited(err, 1) {
		return "", nil
	}
	return strings.TrimPrefix(ref, "refs/heads/"), explain(err)
}

// on fails with ErrWrongBranch if another branch is checked out. It follows HEAD
// to its end, so that a commit here moves only this branch.
func (t *Tree) on(ctx context.Context, branch string) error {
	at, err := t.branch(ctx)
	if err != nil {
		return err
	}
	if at == branch && at != "" {
		return onlyPlain(filepath.Join(t.repo.common, "logs", "refs", "heads", filepath.FromSlash(branch)), t.path)
	}
	if at == "" {
		return fail(ErrWrongBranch, "no branch is checked out at %s, perhaps because a rebase was not finished: type `git -C %s status`, then finish or abort it", t.path, t.path)
	}
	return fail(ErrWrongBranch, "the branch %s is checked out at %s instead of %s: type `git -C %s switch %s`", at, t.path, branch, t.path, branch)
}

var programKey = pattern.Lazy(`^(filter|merge)\.(.+)\.(clean|smudge|process|required|driver)$`)

// noPrograms returns settings that disable filters and merge drivers configured by the repository
// itself. Those of the user's own configuration stay, because large file storage needs them. A
// command that only reads works without the filter; one that writes fails (ErrFilter), because it
// would store the wrong content. A merge driver causes a conflict.
func (r *Repo) noPrograms(ctx context.Context, writes bool) ([]string, error) {
	out, err := r.git(ctx, command{args: []string{"config", "-z", "--show-scope", "--name-only", "--get-regexp", `^(filter|merge)\..*\.(clean|smudge|process|required|driver)$`}})
	if exited(err, 1) {
		return nil, nil
	}
	if err != nil {
		return nil, explain(err)
	}
	var settings []string
	fields := strings.Split(out, "\x00")
	for i := 0; i+1 < len(fields); i += 2 {
		scope, m := fields[i], programKey().FindStringSubmatch(fields[i+1])
		if m == nil || scope != "local" && scope != "worktree" {
			continue
		}
		if m[1] == "merge" {
			settings = append(settings, "merge."+m[2]+".driver=false")
			continue
		}
		for _, key := range []string{"clean", "smudge", "process"} {
			settings = append(settings, "filter."+m[2]+"."+key+"=")
		}
		settings = append(settings, fmt.Sprintf("filter.%s.required=%v", m[2], writes))
	}
	return settings, nil
}

// Trailer is a line at the end of a message for programs: "Task-Id: brave-otter".
type Trailer struct{ Key, Value string }

// Commit describes a commit to make.
type Commit struct {
	Branch            string // the branch that must be checked out; "": any
	Message           string
	Trailers          []Trailer
	Author, Committer Person // ours if there is no name
	At                time.Time
}

// Committed is the result of a commit.
type Committed struct {
	OID   string // of the branch afterwards
	Made  bool   // false: there was nothing to commit
	Files int    // number of files that differ from the previous commit
	// Skipped are folders that were left out because they are separate repositories.
	Skipped []string
}

var trailerForm = pattern.Lazy(`^[A-Za-z][A-Za-z0-9-]{0,60}$`)

// message returns the text of a commit, with the trailers as its last paragraph.
func message(text string, trailers []Trailer) (string, error) {
	text = strings.TrimSpace(strings.ReplaceAll(strings.ToValidUTF8(text, "\uFFFD"), "\x00", ""))
	if text == "" {
		return "", fail(ErrBadName, "a commit needs a message")
	}
	var b strings.Builder
	b.WriteString(text + "\n")
	for i, t := range trailers {
		if !trailerForm().MatchString(t.Key) {
			return "", fail(ErrBadName, "%q cannot be the key of a trailer", t.Key)
		}
		if i == 0 {
			b.WriteByte('\n')
		}
		b.WriteString(t.Key + ": " + oneLine(t.Value) + "\n")
	}
	return b.String(), nil
}

func oneLine(s string) string { return text.Clip(text.OneLine(s), 500) }

// Commit commits everything that differs from the last commit, including new files that are not
// ignored. A clean tree gives no commit. An unfinished merge gives ErrConflict with its files.
func (t *Tree) Commit(ctx context.Context, c Commit) (Committed, error) {
	words, err := message(c.Message, c.Trailers)
	if err != nil {
		return Committed{}, err
	}
	if err := t.trusted(); err != nil {
		return Committed{}, err
	}
	if c.Branch == "" {
		if c.Branch, err = t.branch(ctx); err != nil {
			return Committed{}, err
		}
	}
	if err := t.on(ctx, c.Branch); err != nil {
		return Committed{}, err
	}
	if t.claim != nil {
		t.dropLocks(c.Branch)
	}
	out, err := t.commit(ctx, c, words)
	return out, explain(err)
}

func (t *Tree) commit(ctx context.Context, c Commit, words string) (Committed, error) {
	var out Committed
	files, err := t.unmerged(ctx)
	if err != nil {
		return out, err
	}
	if len(files) > 0 {
		return out, &Error{Kind: ErrConflict, Files: files, Text: fmt.Sprintf("a merge was not finished at %s: resolve %s first", t.path, names(files))}
	}
	config, err := t.repo.noPrograms(ctx, true)
	if err != nil {
		return out, err
	}
	if out.Skipped, err = t.stage(ctx, config, ""); err != nil {
		return out, err
	}
	t.repo.step("staged")
	head, err := t.ask(ctx, "rev-parse", "--verify", "--quiet", "HEAD^{commit}")
	if err != nil && !exited(err, 1) {
		return out, err
	}
	against := head
	if against == "" {
		empty, err := t.ask(ctx, "mktree") // an empty tree, because this is the first commit
		if err != nil {
			return out, err
		}
		against = empty
	}
	staged, err := t.git(ctx, command{args: []string{"diff-index", "--cached", "--name-only", "-z", "--no-renames", against}})
	if err != nil {
		return out, err
	}
	out.OID, out.Files = head, len(split(staged))
	if out.Files == 0 && !exists(filepath.Join(t.gitDir, "MERGE_HEAD")) {
		return out, nil
	}
	_, err = t.git(ctx, command{
		args:   []string{"commit", "--quiet", "--no-verify", "--no-gpg-sign", "--cleanup=verbatim", "--file=-"},
		config: config, stdin: words, env: signature(c.Author, c.Committer, c.At),
	})
	if err != nil {
		return out, err
	}
	t.repo.step("committed")
	out.Made = true
	out.OID, err = t.ask(ctx, "rev-parse", "--verify", "HEAD^{commit}")
	return out, err
}

// unmerged returns the files of an unfinished merge.
func (t *Tree) unmerged(ctx context.Context) ([]string, error) {
	out, err := t.git(ctx, command{args: []string{"ls-files", "-z", "--unmerged"}})
	var files []string
	for _, entry := range split(out) { // mode, object, stage and name, once for each stage
		if _, name, ok := strings.Cut(entry, "\t"); ok && !slices.Contains(files, name) {
			files = append(files, name)
		}
	}
	return files, err
}

// stage puts everything that differs into the index, like `git add --all`. That command
// would read nested repositories with their own settings, which could start programs.
// index names an index other than the tree's, if not "".
func (t *Tree) stage(ctx context.Context, config []string, index string, env ...string) (skipped []string, err error) {
	if index != "" {
		env = append(env, "GIT_INDEX_FILE="+index)
	}
	changed, err := t.git(ctx, command{args: []string{"ls-files", "-z", "--modified", "--deleted"}, config: config, env: env})
	if err != nil {
		return nil, err
	}
	added, err := t.git(ctx, command{args: []string{"ls-files", "-z", "--others", "--exclude-standard"}, config: config, env: env})
	if err != nil {
		return nil, err
	}
	var b strings.Builder
	b.WriteString(changed)
	for _, name := range split(added) {
		if strings.HasSuffix(name, "/") {
			skipped = append(skipped, strings.TrimSuffix(name, "/"))
			continue
		}
		b.WriteString(name + "\x00")
	}
	if b.Len() == 0 {
		return skipped, nil
	}
	_, err = t.git(ctx, command{args: []string{"update-index", "--add", "--remove", "--replace", "-z", "--stdin"}, config: config, env: env, stdin: b.String()})
	return skipped, err
}

// split splits a list whose items git ended with zero bytes.
func split(out string) []string {
	out = strings.TrimSuffix(out, "\x00")
	if out == "" {
		return nil
	}
	return strings.Split(out, "\x00")
}
