// Package gitrepo works with git repositories for agents' tasks: it clones or
// links them, gives each task a worktree and a branch of its own, commits what an
// agent left, merges it, and creates pull requests.
//
// It guarantees:
//
//   - Every call ends: it takes a context and has a deadline, at which everything it started is killed.
//   - Nothing prompts, and nothing that a repository configures or contains is run: no hook, filter,
//     merge driver, diff program, pager or file system monitor. What the user's own configuration
//     names (credential helpers, large file storage) works.
//   - A worktree is not trusted: the agent in it may have changed its .git file, its HEAD and its
//     index. Git is told where everything is and does not look there.
//   - Every step can be repeated. After a kill at any point, repeating it gives the same commits,
//     refs and files.
//   - A linked repository, which is a person's own checkout, is never pushed, and only a merge that
//     finds it clean changes its files.
//
// It knows nothing about tasks, stores and models. A Repo and a Tree are safe for concurrent
// use; locks between processes prevent concurrent changes of one repository.
package gitrepo

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"chorus/internal/await"
	"chorus/internal/lockfile"
)

// Kind says where a repository comes from.
type Kind string

// The kinds.
const (
	KindClone Kind = "clone" // a bare copy of a remote; its branches are the remote's
	KindInit  Kind = "init"  // a bare repository of our own
	KindLink  Kind = "link"  // a person's checkout
)

// Person is an author or a committer.
type Person struct{ Name, Email string }

// Repo is a repository.
type Repo struct {
	*runner
	kind   Kind
	dir    string // the bare repository, or the top of the person's checkout
	gitDir string // git's directory; for a bare repository the same as dir
	common string // directory of refs, objects and the configuration
	stop   func(step string)
}

// Kind returns where the repository comes from.
func (r *Repo) Kind() Kind { return r.kind }

// Dir returns the bare repository, or the top of the linked checkout.
func (r *Repo) Dir() string { return r.dir }

// Open opens a repository made by Clone, Init or Link.
func Open(ctx context.Context, kind Kind, dir string, opt Options) (*Repo, error) {
	if !filepath.IsAbs(dir) {
		return nil, fail(ErrBadName, "%q is not an absolute path", dir)
	}
	dir = filepath.Clean(dir)
	if !isDir(dir) {
		return nil, fail(ErrNotARepository, "there is no folder %s: clone the repository again, or give another path", dir)
	}
	r := &Repo{runner: newRunner(opt), kind: kind, dir: dir}
	var where []string // a person's checkout is found from a folder in it, with git's ownership check
	if kind != KindLink {
		where = []string{"GIT_DIR=" + dir}
	}
	out, err := r.runner.git(ctx, command{dir: dir, env: where, args: []string{"rev-parse", "--is-bare-repository", "--absolute-git-dir", "--path-format=absolute", "--git-common-dir"}})
	if kind != KindLink && exited(err, 128) {
		return nil, fail(ErrNotARepository, "%s is not a bare repository: clone it again (%s)", dir, err.Error())
	}
	if err != nil {
		return nil, explain(err)
	}
	lines := strings.Split(strings.TrimSuffix(out, "\n"), "\n")
	if len(lines) != 3 {
		return nil, fail(ErrNotARepository, "git does not say where the repository at %s is", dir)
	}
	r.gitDir, r.common = lines[1], lines[2]
	bare := lines[0] == "true"
	if kind != KindLink {
		if !bare || r.gitDir != r.common {
			return nil, fail(ErrNotARepository, "%s is not a bare repository: clone it again", dir)
		}
		return r, nil
	}
	if bare {
		return nil, fail(ErrNoCheckout, "%s is a bare repository without files; link a checkout, or clone its url", dir)
	}
	top, err := r.runner.git(ctx, command{dir: dir, args: []string{"rev-parse", "--show-toplevel"}})
	if err != nil {
		return nil, explain(err)
	}
	r.dir = strings.TrimSuffix(top, "\n")
	return r, nil
}

// Link opens a person's checkout. The path may be below its top.
func Link(ctx context.Context, path string, opt Options) (*Repo, error) {
	return Open(ctx, KindLink, path, opt)
}

// Init makes a bare repository with an empty first commit on the branch, or opens an existing one.
func Init(ctx context.Context, dir, branch string, by Person, at time.Time, opt Options) (*Repo, error) {
	if err := CheckBranch(branch); err != nil {
		return nil, err
	}
	return build(ctx, KindInit, dir, opt, func(r *Repo) error {
		if _, err := r.runner.git(ctx, command{dir: filepath.Dir(r.dir), args: []string{"init", "-q", "--bare", "--template=", "--initial-branch=" + branch, "--", r.dir}}); err != nil {
			return err
		}
		tree, err := r.git(ctx, command{args: []string{"mktree"}})
		if err != nil {
			return err
		}
		oid, err := r.git(ctx, command{args: []string{"commit-tree", strings.TrimSpace(tree), "-F", "-"}, env: signature(by, by, at), stdin: "Initial commit\n"})
		if err != nil {
			return err
		}
		_, err = r.git(ctx, command{args: []string{"update-ref", "refs/heads/" + branch, strings.TrimSpace(oid), zeros(oid)}})
		return err
	})
}

// build makes a bare repository under a temporary name and renames it when it is complete,
// so that the remains of a crash are never taken for a repository.
func build(ctx context.Context, kind Kind, dir string, opt Options, fill func(*Repo) error) (*Repo, error) {
	if !filepath.IsAbs(dir) {
		return nil, fail(ErrBadName, "%q is not an absolute path", dir)
	}
	dir = filepath.Clean(dir)
	if err := os.MkdirAll(filepath.Dir(dir), 0o700); err != nil {
		return nil, err
	}
	release, err := lock(ctx, dir+".lock")
	if err != nil {
		return nil, err
	}
	defer release()
	if _, err := os.Lstat(dir); err == nil {
		return Open(ctx, kind, dir, opt)
	}
	part := dir + ".part"
	if err := os.RemoveAll(part); err != nil {
		return nil, err
	}
	r := &Repo{runner: newRunner(opt), kind: kind, dir: part, gitDir: part, common: part}
	if err := fill(r); err != nil {
		_ = os.RemoveAll(part)
		return nil, explain(err)
	}
	if err := os.Rename(part, dir); err != nil {
		return nil, err
	}
	return Open(ctx, kind, dir, opt)
}

// git runs git on the repository, without searching for it.
func (r *Repo) git(ctx context.Context, c command) (string, error) {
	return r.runner.git(ctx, r.at(c))
}

func (r *Repo) at(c command) command {
	c.env = append([]string{"GIT_DIR=" + r.gitDir, "GIT_COMMON_DIR=" + r.common}, c.env...)
	if r.kind == KindLink {
		c.env = append(c.env, "GIT_WORK_TREE="+r.dir)
	}
	c.dir = cmp.Or(c.dir, r.dir)
	return c
}

// ask runs git and returns its single line of output.
func (r *Repo) ask(ctx context.Context, args ...string) (string, error) {
	out, err := r.git(ctx, command{args: args})
	return strings.TrimSuffix(out, "\n"), err
}

// lockWait is how long a change of a repository waits for another one: as long as a push may take.
const lockWait = networkTimeout

// lock prevents other changes of the repository's refs, by any process, until release is
// called. Apply, Add and the other changes of refs call it themselves.
func (r *Repo) lock(ctx context.Context) (release func(), err error) {
	if r.kind == KindLink {
		return lock(ctx, filepath.Join(r.common, "chorus.lock"))
	}
	return lock(ctx, r.common+".lock")
}

// lock waits for a lock file. These locks are held for milliseconds, or during communication with a remote.
func lock(ctx context.Context, path string) (release func(), err error) {
	limited, cancel := context.WithTimeout(ctx, lockWait)
	defer cancel()
	for pause := 5 * time.Millisecond; ; pause = min(2*pause, 200*time.Millisecond) {
		l, err := lockfile.Try(path, fmt.Appendf(nil, "%d\n", os.Getpid()))
		if err == nil {
			return l.Release, nil
		}
		if !errors.Is(err, lockfile.ErrHeld) {
			return nil, err
		}
		if !await.For(limited, pause) {
			if ctx.Err() != nil {
				return nil, context.Cause(ctx)
			}
			return nil, fail(ErrInUse, "another process has changed this repository for more than %s: try again later (%s)", lockWait, path)
		}
	}
}

// step is where a test may end the process.
func (r *Repo) step(name string) {
	if r.stop != nil {
		r.stop(name)
	}
}

// signature returns the variables that say who commits, and when.
func signature(author, committer Person, at time.Time) []string {
	date := fmt.Sprintf("@%d +0000", at.Unix())
	return []string{
		"GIT_AUTHOR_NAME=" + author.name(), "GIT_AUTHOR_EMAIL=" + author.email(), "GIT_AUTHOR_DATE=" + date,
		"GIT_COMMITTER_NAME=" + committer.name(), "GIT_COMMITTER_EMAIL=" + committer.email(), "GIT_COMMITTER_DATE=" + date,
	}
}

// name returns the person's name, or ours, because git refuses commits without a name.
func (p Person) name() string { return cmp.Or(plainName(p.Name), "Chorus") }

func (p Person) email() string { return cmp.Or(plainName(p.Email), "chorus@localhost") }

// plainName removes what git interprets as its own syntax.
func plainName(s string) string {
	s = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r == '<' || r == '>' {
			return -1
		}
		return r
	}, strings.ToValidUTF8(s, ""))
	return strings.Trim(s, " .,:;\"'")
}

func zeros(oid string) string { return strings.Repeat("0", len(strings.TrimSpace(oid))) }
